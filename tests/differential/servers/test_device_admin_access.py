"""Devices that others use are given to claims of marked namespaces alone.

Covers: kubewright.apiserver.admission
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.differential.servers.server_pair import Request, ServerPair, get, merge, post, run_case

pytestmark = pytest.mark.real

NS = "/api/v1/namespaces/{ns}"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaimtemplates"
MARKED = merge(NS, {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}})
RESULT = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "d"}


def claim(*, admin: bool | None = True) -> dict[str, Any]:
    """The spec of a claim for one device of any kind, and for one more with these rights."""
    exactly = {"deviceClassName": "any.example.com"}
    more = exactly if admin is None else {**exactly, "adminAccess": admin}
    return {"devices": {"requests": [{"name": "q", "exactly": exactly}, {"name": "r", "exactly": more}]}}


def claimed(name: str, *, admin: bool | None = True) -> Request:
    return post(CLAIMS, {"metadata": {"name": name}, "spec": claim(admin=admin)})


def template(name: str, *, admin: bool | None = True) -> Request:
    return post(TEMPLATES, {"metadata": {"name": name}, "spec": {"spec": claim(admin=admin)}})


def granted(*, admin: bool) -> Request:
    results = {"results": [RESULT | ({"adminAccess": True} if admin else {})]}
    return merge(f"{CLAIMS}/plain/status", {"status": {"allocation": {"devices": results}}})


CASES: dict[str, Sequence[Request]] = {
    "a namespace like others": [
        claimed("one"),
        template("one"),
        claimed("plain", admin=None),
        claimed("no", admin=False),
    ],
    "a marked namespace": [MARKED, claimed("one"), template("one"), get(f"{CLAIMS}/one")],
    "what is granted": [claimed("plain", admin=None), granted(admin=True), granted(admin=False)],
}


@pytest.mark.parametrize("case", CASES)
async def test_admin_access_is_for_marked_namespaces(pair: ServerPair, case: str) -> None:
    await run_case(pair, CASES[case])
