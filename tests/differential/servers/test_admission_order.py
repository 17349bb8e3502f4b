"""Objects that more than one part of a server refuses: the same part speaks first on both servers.

Covers: kubewright.apiserver.admission, kubewright.apiserver.verbs
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.differential.servers.server_pair import Request, ServerPair, post, put, run_case

pytestmark = pytest.mark.real

NS = "/api/v1/namespaces/{ns}"
PODS = f"{NS}/pods"
CLAIMS = f"{NS}/persistentvolumeclaims"
ACCOUNT = post(f"{NS}/serviceaccounts", {"metadata": {"name": "default"}}, quiet=True)
LIMITS = [
    {"type": "Container", "max": {"cpu": "1"}},
    {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
]
LIMITED = post(f"{NS}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": LIMITS}})


def pod(cpu: str = "", metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    resources = {"resources": {"limits": {"cpu": cpu}}} if cpu else {}
    containers = [{"name": "a", "image": "b", **resources}]
    return {"metadata": metadata or {"name": "p"}, "spec": {"containers": containers, **spec}}


def claim(storage: str, **spec: Any) -> dict[str, Any]:
    requests = {"resources": {"requests": {"storage": storage}}}
    return {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], **requests, **spec}}


CASES: dict[str, Sequence[Request]] = {
    "limits and validation": [
        ACCOUNT,
        LIMITED,
        post(PODS, pod("2", restartPolicy="Sometimes")),
        post(PODS, pod("2", serviceAccountName="nobody")),
        post(PODS, pod("2", priorityClassName="nothing")),
        post(PODS, pod("2")),
        post(CLAIMS, claim("2Gi", accessModes=[])),
        post(CLAIMS, claim("2Gi")),
        post(CLAIMS, claim("1Gi")),
    ],
    "limits and pod security": [
        put(NS, {"metadata": {"name": "{ns}", "labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}),
        ACCOUNT,
        LIMITED,
        post(PODS, pod("2", hostNetwork=True)),
        post(PODS, pod("1", hostNetwork=True)),
    ],
    "names that are not yet generated": [
        post(PODS, pod(metadata={"generateName": "p-"}, serviceAccountName="nobody")),
        post(PODS, pod(metadata={"generateName": "p-"}, priorityClassName="nothing")),
    ],
    "overhead": [
        ACCOUNT,
        post(PODS, pod(overhead={"cpu": "1"})),
        post(PODS, pod(runtimeClassName="nothing")),
        post(PODS, pod(runtimeClassName="nothing", restartPolicy="Sometimes")),
    ],
}


@pytest.mark.parametrize("case", CASES)
async def test_the_same_part_refuses_first(pair: ServerPair, case: str) -> None:
    await run_case(pair, CASES[case])
