"""What RBAC, reviews and tokens answer to somebody who tries to get more: both servers, in the same words.

Covers: kubewright.apiserver.auth
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from tests.planes import Plane
from tests.security.callers import APPLY, Answer, Caller, anonymous, caller

from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster

GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
SPACE = f"{RBAC}/namespaces/{{ns}}"
CORE = "/api/v1/namespaces/{ns}"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
_RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=\.\./)[a-z0-9]{5}\b|(?<=\"a%)[a-z0-9]{5}\b")
ALL = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]


class Step(NamedTuple):
    """One request, as the administrator or as `mallory`."""

    who: str
    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"


def named(title: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": title}, **more}


def role(title: str, *rules: dict[str, Any], kind: str = "Role") -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": title}, "rules": list(rules)}


def rule(verbs: str, resources: str, group: str = "", *names: str) -> dict[str, Any]:
    found = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return {**found, "resourceNames": list(names)} if names else found


def binding(title: str, to: str, *, kind: str = "Role", user: str = "mallory-{ns}") -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": title},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": to},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
    }


def given(*rules: dict[str, Any]) -> list[Step]:
    """The steps that give mallory these rights in the namespace."""
    return [
        Step("admin", "POST", f"{SPACE}/roles", role("given", *rules)),
        Step("admin", "POST", f"{SPACE}/rolebindings", binding("given", "given")),
    ]


def review(**resource: Any) -> dict[str, Any]:
    return {"spec": {"user": "mallory-{ns}", "resourceAttributes": {"namespace": "{ns}", **resource}}}


def token(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


CASES: dict[str, list[Step]] = {
    "names in bodies": [
        Step("admin", "POST", f"{place}", body)
        for place in (f"{CORE}/configmaps", f"{SPACE}/roles", f"{RBAC}/clusterroles", "/api/v1/namespaces")
        for body in (
            *(named(title) for title in (".", "..", "a/b", "a%b", "a\0b", "")),
            {"metadata": {"generateName": "../"}},
            {"metadata": {"generateName": "a%"}},
        )
    ],
    "a body of another namespace": [
        Step("admin", "POST", f"{CORE}/configmaps", {"metadata": {"name": "a", "namespace": "kube-system"}}),
        Step("admin", "POST", f"{CORE}/configmaps", {"metadata": {"name": "a", "namespace": ".."}}),
        Step("admin", "PUT", f"{CORE}/configmaps/a", {"metadata": {"name": "a", "namespace": "kube-system"}}),
    ],
    "names of one object": [
        *given(rule("get list watch delete deletecollection", "configmaps", "", "mine")),
        Step("admin", "POST", f"{CORE}/configmaps", named("mine")),
        Step("admin", "POST", f"{CORE}/configmaps", named("other")),
        Step("mallory", "GET", f"{CORE}/configmaps/mine"),
        Step("mallory", "GET", f"{CORE}/configmaps/other"),
        Step("mallory", "GET", f"{CORE}/configmaps"),
        Step("mallory", "GET", f"{CORE}/configmaps?fieldSelector=metadata.name=mine"),
        Step("mallory", "GET", f"{CORE}/configmaps?fieldSelector=metadata.name=other"),
        Step("mallory", "GET", f"{CORE}/configmaps?fieldSelector=metadata.name!=mine"),
        Step("mallory", "GET", f"{CORE}/configmaps?fieldSelector=metadata.name=mine,metadata.name=other"),
        Step("mallory", "DELETE", f"{CORE}/configmaps"),
        Step("mallory", "DELETE", f"{CORE}/configmaps?fieldSelector=metadata.name=mine"),
        Step("mallory", "DELETE", f"{CORE}/configmaps/other"),
        Step("mallory", "DELETE", f"{CORE}/configmaps/mine"),
    ],
    "verbs": [
        *given(rule("get", "configmaps"), rule("update", "*/scale", "apps"), rule("get", "pods/log")),
        Step("mallory", "GET", f"{CORE}/configmaps"),
        Step("mallory", "GET", f"{CORE}/configmaps?watch=true&timeoutSeconds=1"),
        Step("mallory", "GET", f"{CORE}/configmaps?watch=&timeoutSeconds=1"),
        Step("mallory", "GET", f"{CORE}/configmaps/none?watch=true"),
        Step("mallory", "GET", "/api/v1/watch/namespaces/{ns}/configmaps/none"),
        Step("mallory", "GET", f"{CORE}/pods/none"),
        Step("mallory", "GET", f"{CORE}/pods/none/log"),
        Step("mallory", "GET", f"{CORE}/pods/none/status"),
        Step("mallory", "GET", "/apis/apps/v1/namespaces/{ns}/deployments/none/scale"),
        Step("mallory", "PUT", "/apis/apps/v1/namespaces/{ns}/deployments/none/scale", named("none")),
        Step("mallory", "PUT", "/apis/apps/v1/namespaces/{ns}/deployments/none", named("none")),
    ],
    "escalation": [
        *given(rule("create update patch get", "roles rolebindings", GROUP), rule("get", "configmaps")),
        Step("mallory", "POST", f"{SPACE}/roles", role("wide", *ALL)),
        Step("mallory", "PUT", f"{SPACE}/roles/wide", role("wide", *ALL)),
        Step("mallory", "PATCH", f"{SPACE}/roles/wide?fieldManager=m", role("wide", *ALL), APPLY),
        Step("mallory", "PATCH", f"{SPACE}/roles/given", {"rules": ALL}, MERGE),
        Step("mallory", "PATCH", f"{SPACE}/roles/given",
             [{"op": "replace", "path": "/rules", "value": ALL}], JSON_PATCH),
        Step("mallory", "POST", f"{SPACE}/roles?dryRun=All", role("wide", *ALL)),
        Step("mallory", "POST", f"{SPACE}/rolebindings", binding("wide", "cluster-admin", kind="ClusterRole")),
        Step("mallory", "PUT", f"{SPACE}/rolebindings/wide", binding("wide", "cluster-admin", kind="ClusterRole")),
        Step("mallory", "PATCH", f"{SPACE}/rolebindings/wide?fieldManager=m",
             binding("wide", "cluster-admin", kind="ClusterRole"), APPLY),
        Step("mallory", "POST", f"{SPACE}/rolebindings", binding("wide", "given")),
        Step("mallory", "PATCH", f"{SPACE}/rolebindings/wide",
             {"roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"}}, MERGE),
        Step("admin", "PATCH", f"{SPACE}/rolebindings/wide",
             {"roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"}}, MERGE),
        Step("admin", "PUT", f"{SPACE}/rolebindings/wide", binding("wide", "view", kind="ClusterRole")),
        Step("mallory", "POST", f"{SPACE}/rolebindings", binding("odd", "none")),
        Step("mallory", "POST", f"{SPACE}/rolebindings", binding("odd", "none", kind="Pod")),
    ],
    "reviews": [
        *given(rule("get", "configmaps", "", "mine")),
        Step("mallory", "POST", REVIEWS, review(verb="get", resource="configmaps", name="mine")),
        *(
            Step("admin", "POST", REVIEWS, body)
            for body in (
                review(verb="get", resource="configmaps", name="mine"),
                review(verb="get", resource="configmaps"),
                review(verb="*", resource="configmaps"),
                review(verb="get", resource="*"),
                review(verb="get", resource=""),
                review(verb="", resource="configmaps"),
                review(verb="get", resource="configmaps/mine"),
                review(),
                {"spec": {"user": "mallory-{ns}"}},
                {"spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}},
                {"spec": {"user": "x", "nonResourceAttributes": {"path": "/api%2F", "verb": "get"}}},
                {"spec": {"user": "x", "groups": ["system:masters"], "resourceAttributes": {"verb": "get"}}},
                {"spec": {"user": "x", "resourceAttributes": {}, "nonResourceAttributes": {}}},
                {"metadata": {"name": "x"}, **review(verb="get")},
            )
        ),
    ],
    "token requests": [
        Step("admin", "POST", f"{CORE}/serviceaccounts", named("robot")),
        *(
            Step("admin", "POST", f"{CORE}/serviceaccounts/{account}/token", body)
            for account, body in (
                ("none", token()),
                ("robot", token(expirationSeconds=0)),
                ("robot", token(expirationSeconds=599)),
                ("robot", token(expirationSeconds=2**32 + 1)),
                ("robot", token(expirationSeconds=-1)),
                ("robot", token(boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "none"})),
                ("robot", token(boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "../kube-system/x"})),
                ("robot", token(boundObjectRef={"apiVersion": "v1", "kind": "ConfigMap", "name": "a"})),
                ("robot", token(boundObjectRef={"apiVersion": "v1", "kind": "Secret", "name": "none"})),
                ("robot", {"metadata": {"name": "default"}, "spec": {}}),
                ("robot", {"metadata": {"namespace": "kube-system"}, "spec": {}}),
            )
        ),
        Step("mallory", "POST", f"{CORE}/serviceaccounts/robot/token", token()),
        Step("mallory", "POST", "/api/v1/namespaces/kube-system/serviceaccounts/default/token", token()),
    ],
}  # fmt: skip


@pytest.fixture
def pair(embedded_cluster: EmbeddedCluster, real_cluster: RealCluster) -> tuple[Plane, Plane]:
    return embedded_cluster, real_cluster


async def callers(plane: Plane, namespace: str) -> dict[str, Caller]:
    admin = await caller(plane, "", kubeconfig=plane.kubeconfig)
    assert (await admin.send("POST", "/api/v1/namespaces", named(namespace))).code == 201
    return {"admin": admin, "mallory": await caller(plane, f"mallory-{namespace}")}


def shown(answer: Answer) -> tuple[int, str]:
    """What is compared: the code, and the message of an error or the verdict of a review."""
    if answer.code >= 400:
        return answer.code, _RANDOM.sub("<random>", answer.message)
    return answer.code, str(answer.body.get("status")) if "AccessReview" in str(answer.body)[:60] else ""


@pytest.mark.real
@pytest.mark.parametrize("title", CASES)
async def test_both_servers_refuse_alike(pair: tuple[Plane, Plane], title: str) -> None:
    namespace = f"rights-{uuid4().hex[:8]}"
    planes = [await callers(plane, namespace) for plane in pair]
    for step in CASES[title]:
        body = None if step.body is None else json.loads(json.dumps(step.body).replace("{ns}", namespace))
        path = step.path.replace("{ns}", namespace)
        answers = [
            shown(await users[step.who].send(step.method, path, body, content_type=step.content_type))
            for users in planes
        ]
        assert answers[0] == answers[1], (step, *answers)


async def test_a_token_ends_with_what_it_is_bound_to(embedded_cluster: EmbeddedCluster) -> None:
    """At once: kube-apiserver remembers a good token for ten seconds."""
    namespace = f"rights-{uuid4().hex[:8]}"
    admin = (await callers(embedded_cluster, namespace))["admin"]
    accounts, pods = (f"/api/v1/namespaces/{namespace}/{kind}" for kind in ("serviceaccounts", "pods"))

    async def get(*, is_bound: bool) -> str:
        reference = {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "web"}} if is_bound else {}
        answer = await admin.send("POST", f"{accounts}/robot/token", token(expirationSeconds=3600, **reference))
        return str(answer.body["status"]["token"])

    async def code(text: str) -> int:
        headers = [("Authorization", f"Bearer {text}")]
        return (await anonymous(embedded_cluster).send("GET", "/api", headers=headers)).code

    assert (await admin.send("POST", accounts, named("robot"))).code == 201
    containers = [{"name": "main", "image": "registry.example.io/app:1"}]
    web = named("web", spec={"serviceAccountName": "robot", "containers": containers})
    assert (await admin.send("POST", pods, web)).code == 201
    free, bound = await get(is_bound=False), await get(is_bound=True)
    assert [await code(free), await code(bound)] == [200, 200]

    await admin.send("DELETE", f"{pods}/web?gracePeriodSeconds=0")
    assert [await code(free), await code(bound)] == [200, 401]
    await admin.send("DELETE", f"{accounts}/robot")
    assert await code(free) == 401
    assert (await admin.send("POST", accounts, named("robot"))).code == 201
    assert await code(free) == 401  # a namesake is another account


@pytest.mark.parametrize("subresource", ["binding", "eviction"])
async def test_a_pod_is_bound_and_evicted_in_the_namespace_that_was_authorized(
    plane: Plane, namespace: str, subresource: str
) -> None:
    """Webhooks and policies see the namespace in the body, too."""
    admin = await caller(plane, "mover", "system:masters")
    pods = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "pause"}]}
    assert (await admin.send("POST", pods, {"metadata": {"name": "held"}, "spec": spec})).code == 201
    body = {"metadata": {"name": "held", "namespace": "kube-system"}, "target": {"kind": "Node", "name": "nowhere"}}
    if subresource == "eviction":
        del body["target"]

    answer = await admin.send("POST", f"{pods}/held/{subresource}", body)

    assert answer.code == 400
    assert answer.message == "the namespace of the provided object does not match the namespace sent on the request"
