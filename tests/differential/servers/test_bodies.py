"""What is wrong with a body or an option is said alike by both servers, and never with a 500 where the other has a 400.

Found by fuzzing: bodies of kinds that are never kept (Binding, Eviction, Scale, DeleteOptions), names of types that are
no text, and options of lists that contradict each other.

Covers: kubewright.apiserver.wire, kubewright.apiserver.verbs
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.differential.servers.server_pair import Request, ServerPair, delete, get, merge, post, put, run_case

pytestmark = pytest.mark.real

PODS = "/api/v1/namespaces/{ns}/pods"
CMS = "/api/v1/namespaces/{ns}/configmaps"
WEB = "/apis/apps/v1/namespaces/{ns}/deployments/web"
SCALES = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
NOWHERE = "/api/v1/namespaces/{ns}-none/pods/x"
ACCOUNT = post("/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "default"}}, quiet=True)
POD = post(PODS, {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "a", "image": "i"}]}})
DEPLOYMENT = post(
    "/apis/apps/v1/namespaces/{ns}/deployments",
    {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 0,
            "paused": True,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "a", "image": "i"}]},
            },
        },
    },
)


def evict(*changes: dict[str, Any], path: str = PODS + "/x") -> list[Request]:
    """Dry evictions, each with something odd."""
    plain = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "x"}}
    return [post(f"{path}/eviction?dryRun=All", {**plain, **change}) for change in changes]


def bind(*changes: dict[str, Any], path: str = PODS + "/x") -> list[Request]:
    """Dry bindings, each with something odd."""
    plain: dict[str, Any] = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "x"}, "target": {}}
    return [post(f"{path}/binding?dryRun=All", {**plain, **change}) for change in changes]


def scale(*changes: dict[str, Any]) -> list[Request]:
    """Dry changes of a scale, each with something odd."""
    plain = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "web", "namespace": "{ns}"},
        "spec": {"replicas": 0},
    }
    return [put(f"{WEB}/scale?dryRun=All", {**plain, **change}) for change in changes]


def remove(*bodies: Any) -> list[Request]:
    """Deletions of one that is not there, and dry ones of all, by odd options."""
    all_of_them = CMS + "?dryRun=All&labelSelector=none%3Dsuch"
    return [delete(path, body=body) for body in bodies for path in (CMS + "/none", all_of_them)]


def autoscaler(**target: str) -> Request:
    """A dry autoscaler of something."""
    spec = {"maxReplicas": 3, "scaleTargetRef": {"name": "w", **target}}
    return post(SCALES + "?dryRun=All", {"metadata": {"name": "h"}, "spec": spec})


CASES: dict[str, Sequence[Request]] = {
    "evictions of wrong types": [
        ACCOUNT,
        POD,
        *evict({"metadata": []}, {"metadata": "A"}, {"metadata": {"name": 3}}, {"metadata": {"labels": {"a": 1}}}),
        *evict({"deleteOptions": False}, {"deleteOptions": 0}, {"deleteOptions": {"gracePeriodSeconds": "a"}}),
        *evict({"deleteOptions": {"preconditions": []}}, {"deleteOptions": {"dryRun": "All"}}),
        get(PODS + "/x"),
    ],
    "evictions of other kinds and names": [
        ACCOUNT,
        POD,
        *evict({"kind": "Pod"}, {"apiVersion": "v9"}, {"metadata": {"name": "other"}}, {"metadata": {}}),
        *evict({"metadata": {"name": "x"}}, path=NOWHERE),
        post(PODS + "/x/eviction?dryRun=", {"metadata": []}),
    ],
    "a dry eviction with options of its own leaves the pod": [
        ACCOUNT,
        POD,
        *evict({"deleteOptions": {"gracePeriodSeconds": 0}}),
        get(PODS + "/x"),
    ],
    "bindings of wrong types": [
        ACCOUNT,
        POD,
        *bind({"metadata": []}, {"target": []}, {"target": {"name": 3}}, {"target": "x"}, {"metadata": {"uid": 1}}),
    ],
    "bindings of other kinds and names": [
        ACCOUNT,
        POD,
        *bind({"kind": "Pod"}, {"apiVersion": "v9"}, {"metadata": {}}, {"metadata": {"name": "other"}}),
        *bind({}, {"target": {"kind": "ConfigMapList"}}, {"metadata": {"name": "other"}}, path=NOWHERE),
    ],
    "scales of wrong types": [
        DEPLOYMENT,
        *scale({"metadata": []}, {"spec": []}, {"spec": "x"}, {"status": []}, {"spec": {"replicas": "3"}}),
        *scale({"spec": {"replicas": None}}, {"spec": {"replicas": 1.5}}, {"spec": {"replicas": 1 << 40}}),
    ],
    "scales of other kinds and names": [
        DEPLOYMENT,
        *scale({"kind": "Pod"}, {"apiVersion": "v9"}, {"metadata": {"name": "other"}}),
        *scale({"metadata": {"name": "web", "uid": "u"}}),
        merge(WEB + "/scale?dryRun=All", {"metadata": {"uid": "u"}}),
    ],
    "patches that leave no scale": [
        DEPLOYMENT,
        merge(f"{WEB}/scale?dryRun=All", {"metadata": []}),
        merge(f"{WEB}/scale?dryRun=All", {"spec": []}),
        merge(f"{WEB}/scale?dryRun=All", {"kind": "Pod"}),
    ],
    "options of a deletion of wrong types": remove(
        {"preconditions": []},
        {"preconditions": {"uid": 3}},
        {"gracePeriodSeconds": 1.5},
        {"dryRun": "All"},
        {"dryRun": [1]},
        {"orphanDependents": "x"},
        {"propagationPolicy": 3},
    ),
    "options of a deletion of other types": remove({"kind": "Pod"}, {"kind": 3}, {"apiVersion": 3}, {"unknown": 3}),
    "names of types that are no text": [
        post(CMS, {"apiVersion": "v1", "kind": 3, "metadata": {"name": "a"}}),
        post(CMS, {"apiVersion": [], "kind": "ConfigMap", "metadata": {"name": "a"}}),
        post(CMS, {"apiVersion": "a/b/c", "kind": "ConfigMap", "metadata": {"name": "a"}}),
        post(CMS, {"apiVersion": "v9", "kind": "ConfigMap", "metadata": {"name": "a"}}),
    ],
    "options of a watch that contradict each other": [
        get(f"{CMS}?watch=true&timeoutSeconds=1&resourceVersion=null&sendInitialEvents=true&resourceVersionMatch="),
        get(f"{CMS}?watch=true&timeoutSeconds=1&resourceVersion=x&resourceVersionMatch=Exact&sendInitialEvents=true"),
        get(f"{CMS}?watch=true&timeoutSeconds=1&resourceVersionMatch=Exact&continue=abc"),
        get(f"{CMS}?watch=true&timeoutSeconds=1&resourceVersion=x&labelSelector=a%20b%20c"),
        get(f"{CMS}?watch=true&timeoutSeconds=1&resourceVersion=%01%C2%85"),
    ],
    "options of a list that contradict each other": [
        get(f"{CMS}?resourceVersion=x&resourceVersionMatch=Exactly"),
        get(f"{CMS}?resourceVersion=0&resourceVersionMatch=Exact"),
        get(f"{CMS}?resourceVersion=x&fieldSelector=%21%21"),
        get(f"{CMS}?resourceVersion=%01x"),
    ],
    "autoscalers of the core group": [
        autoscaler(kind="Deployment", apiVersion="v1"),
        autoscaler(kind="Deployment"),
        autoscaler(kind="X", apiVersion="/v1"),
        autoscaler(kind="X", apiVersion="apps/"),
        autoscaler(kind="ReplicationController", apiVersion="v1"),
        autoscaler(kind="Deployment", apiVersion="apps/v1"),
    ],
}


@pytest.mark.parametrize("requests", [pytest.param(requests, id=name) for name, requests in CASES.items()])
async def test_a_wrong_body_is_answered_alike(quiet_pair: ServerPair, requests: Sequence[Request]) -> None:
    await run_case(quiet_pair, requests)
