"""Lifecycles in which controllers take part: both control planes must bring objects to the same end.

Covers: kubewright.cluster.controller_manager
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.differential.servers.server_pair import (
    Request,
    ServerClient,
    delete,
    fresh_pair,
    get,
    merge,
    post,
    put,
    run_case,
)

pytestmark = pytest.mark.real

NS = "/api/v1/namespaces/{ns}-x"
CMS = f"{NS}/configmaps"
STATUS = ("status", "metadata.managedFields", "metadata.resourceVersion")
"""How far a controller has come is chance."""


def is_gone(tree: Any) -> bool:
    """Whether there is no such object."""
    return bool(tree.get("reason") == "NotFound")


def has(name: str) -> Any:
    """A condition on a list: an object of that name is in it."""
    return lambda tree: any(item["metadata"]["name"] == name for item in tree["items"])


NEW = [
    post("/api/v1/namespaces", {"metadata": {"name": "{ns}-x"}}),
    get(f"{NS}/serviceaccounts", until=has("default"), quiet=True),
    get(CMS, until=has("kube-root-ca.crt"), quiet=True),
]


def owned(name: str, **options: Any) -> dict[str, Any]:
    """A ConfigMap that belongs to another."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "${uid}", **options}
    return {"metadata": {"name": name, "ownerReferences": [owner]}}


OWNER = post(CMS, {"metadata": {"name": "owner"}}, keep={"uid": "metadata.uid"})

LIVES: dict[str, Sequence[Request]] = {
    "a namespace": [
        *NEW,
        get(f"{NS}/serviceaccounts/default"),
        get(f"{CMS}/kube-root-ca.crt", ignore=("data", "metadata.managedFields")),
        get(NS),
    ],
    "a namespace and all in it": [
        *NEW,
        post(CMS, {"metadata": {"name": "a"}}),
        delete(NS),
        get(NS, until=is_gone),
        get(f"{CMS}/a"),
        post(CMS, {"metadata": {"name": "b"}}),
    ],
    "a namespace that cannot be emptied": [
        *NEW,
        post(CMS, {"metadata": {"name": "a", "finalizers": ["a.io/b"]}}),
        delete(NS, ignore=STATUS),
        get(
            f"{CMS}/a", until=lambda tree: "deletionTimestamp" in tree["metadata"], ignore=("metadata.resourceVersion",)
        ),
        post(CMS, {"metadata": {"name": "b"}}),
        put(f"{CMS}/a", {"metadata": {"name": "a", "finalizers": ["a.io/b"], "labels": {"x": "y"}}}),
        delete(NS, ignore=STATUS),
        merge(f"{CMS}/a", {"metadata": {"finalizers": None}}),
        get(NS, until=is_gone),
    ],
    "namespaces that stay": [delete("/api/v1/namespaces/default"), delete("/api/v1/namespaces/kube-system")],
    "the account of a namespace comes back": [
        *NEW,
        delete(f"{NS}/serviceaccounts/default"),
        get(f"{NS}/serviceaccounts", until=has("default"), quiet=True),
        get(f"{NS}/serviceaccounts/default"),
    ],
    "dependents go": [
        *NEW,
        OWNER,
        post(CMS, owned("child")),
        delete(f"{CMS}/owner"),
        get(f"{CMS}/child", until=is_gone),
    ],
    "dependents go first": [
        *NEW,
        OWNER,
        post(CMS, owned("child", blockOwnerDeletion=True)),
        delete(f"{CMS}/owner", {"propagationPolicy": "Foreground"}),
        get(f"{CMS}/owner", until=is_gone),
        get(f"{CMS}/child", until=is_gone),
    ],
    "dependents stay": [
        *NEW,
        OWNER,
        post(CMS, owned("child")),
        delete(f"{CMS}/owner", {"propagationPolicy": "Orphan"}),
        get(f"{CMS}/owner", until=is_gone),
        get(f"{CMS}/child", ignore=("metadata.managedFields",)),
    ],
    "dependents of nobody go": [
        *NEW,
        post(CMS, {"metadata": {**owned("child")["metadata"]}}, keep={}, quiet=True),
        get(f"{CMS}/child", until=is_gone),
    ],
}


@pytest.fixture(scope="module")
async def ended(both_servers: tuple[ServerClient, ServerClient]) -> dict[str, BaseException | None]:
    """How each case of `LIVES` went. Each waits for controllers, so all are run at the same time."""
    pair = [await fresh_pair(both_servers) for _ in LIVES]
    outcomes = await asyncio.gather(*map(run_case, pair, LIVES.values()), return_exceptions=True)
    for one in pair:
        await one.both("DELETE", f"/api/v1/namespaces/{one.namespace}")
        await one.both("DELETE", f"/api/v1/namespaces/{one.namespace}-x")
    return dict(zip(LIVES, outcomes, strict=True))


@pytest.mark.parametrize("name", LIVES)
async def test_an_object_comes_to_the_same_end(ended: dict[str, BaseException | None], name: str) -> None:
    if (outcome := ended[name]) is not None:
        raise outcome
