"""What roles and bindings in the store come to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubewright.apiserver.auth.rbac import RbacAuthorizer, RoleRef
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.requests import RequestInfo, decode_path, parse_query, request_info
from kubewright.apiserver.wire.users import User

GROUP = "rbac.authorization.k8s.io"
ANN = User("ann", ("dev",))
ROBOT = User("system:serviceaccount:shop:robot", ("system:serviceaccounts",))


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def roles(store: Store) -> RbacAuthorizer:
    return RbacAuthorizer(store)


def write(store: Store, plural: str, name: str, namespace: str = "", **tree: Any) -> None:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    key = f"{namespace}/{name}" if namespace else name
    value = json.dumps({"metadata": meta, **tree}).encode()
    store.table(f"{GROUP}/{plural}").put(key, value, store.next_version())


def rule(verbs: str, resources: str = "", groups: str = "", **more: list[str]) -> dict[str, list[str]]:
    found = {"verbs": verbs.split(), **more}
    return found if more.get("nonResourceURLs") else {**found, "resources": resources.split(), "apiGroups": [groups]}


def bind(store: Store, role: str, kind: str, subject: str, namespace: str = "", **more: str) -> None:
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    plural = "rolebindings" if namespace else "clusterrolebindings"
    write(
        store, plural, f"{role}-{subject}", namespace, roleRef=ref, subjects=[{"kind": kind, "name": subject, **more}]
    )


def asked(method: str, uri: str) -> RequestInfo:
    path, _, query = uri.partition("?")
    return request_info(method, decode_path(path), parse_query(query))


PODS = "/api/v1/namespaces/shop/pods"


@pytest.mark.parametrize(
    ("allowed", "method", "uri"),
    [
        (rule("get", "pods"), "GET", f"{PODS}/x"),
        (rule("list", "pods"), "GET", PODS),
        (rule("watch", "pods"), "GET", f"{PODS}?watch=true"),
        (rule("deletecollection", "pods"), "DELETE", PODS),
        (rule("*", "pods"), "PATCH", f"{PODS}/x"),
        (rule("get", "*"), "GET", f"{PODS}/x"),
        (rule("get", "*"), "GET", f"{PODS}/x/log"),
        (rule("get", "pods/log"), "GET", f"{PODS}/x/log"),
        (rule("get", "*/log"), "GET", f"{PODS}/x/log"),
        (rule("get", "deployments", "*"), "GET", "/apis/apps/v1/namespaces/shop/deployments/x"),
        (rule("get", "pods", resourceNames=["x"]), "GET", f"{PODS}/x"),
        (rule("list", "pods", resourceNames=["x"]), "GET", f"{PODS}?fieldSelector=metadata.name%3Dx"),
        (rule("get", nonResourceURLs=["/metrics"]), "GET", "/metrics"),
        (rule("get", nonResourceURLs=["/logs/*"]), "GET", "/logs/a/b"),
        (rule("get", nonResourceURLs=["*"]), "GET", "/anything"),
        (rule("get", nonResourceURLs=["/a b"]), "GET", "/a%20b"),
    ],
)  # fmt: skip
def test_a_rule_allows_what_it_says(store: Store, roles: RbacAuthorizer, allowed: Any, method: str, uri: str) -> None:
    write(store, "clusterroles", "r", rules=[allowed])
    bind(store, "r", "User", "ann")

    decision = roles.decide(ANN, asked(method, uri))

    assert decision.allowed
    assert decision.reason == 'RBAC: allowed by ClusterRoleBinding "r-ann" of ClusterRole "r" to User "ann"'


@pytest.mark.parametrize(
    ("held", "method", "uri"),
    [
        (rule("list", "pods"), "GET", f"{PODS}/x"),
        (rule("get", "pods"), "GET", f"{PODS}/x/log"),
        (rule("get", "pods/log"), "GET", f"{PODS}/x"),
        (rule("get", "pods/*"), "GET", f"{PODS}/x/log"),
        (rule("get", "*/lo"), "GET", f"{PODS}/x/log"),
        (rule("get", "pods", "apps"), "GET", f"{PODS}/x"),
        (rule("get list", "pods", resourceNames=["x"]), "GET", f"{PODS}/y"),
        (rule("list", "pods", resourceNames=["x"]), "GET", PODS),
        (rule("get", nonResourceURLs=["/metrics"]), "GET", "/metrics/x"),
        (rule("post", nonResourceURLs=["/metrics"]), "GET", "/metrics"),
        (rule("*", "*", "*"), "GET", "/metrics"),
        (rule("*", nonResourceURLs=["*"]), "GET", PODS),
    ],
)
def test_a_rule_allows_no_more_than_it_says(
    store: Store, roles: RbacAuthorizer, held: Any, method: str, uri: str
) -> None:
    write(store, "clusterroles", "r", rules=[held])
    bind(store, "r", "User", "ann")

    decision = roles.decide(ANN, asked(method, uri))

    assert not decision.allowed
    assert decision.reason == ""


def test_a_binding_in_a_namespace_counts_there_alone(store: Store, roles: RbacAuthorizer) -> None:
    write(store, "clusterroles", "r", rules=[rule("get list", "pods")])
    bind(store, "r", "Group", "dev", "shop")

    assert roles.decide(ANN, asked("GET", PODS)).allowed
    assert not roles.decide(ANN, asked("GET", "/api/v1/namespaces/other/pods")).allowed
    assert not roles.decide(ANN, asked("GET", "/api/v1/pods")).allowed


def test_an_account_without_a_namespace_is_of_the_bindings_namespace(store: Store, roles: RbacAuthorizer) -> None:
    write(store, "clusterroles", "r", rules=[rule("list", "pods")])
    bind(store, "r", "ServiceAccount", "robot", "shop")

    decision = roles.decide(ROBOT, asked("GET", PODS))

    assert decision.reason.endswith('RoleBinding "r-robot/shop" of ClusterRole "r" to ServiceAccount "robot/shop"')


def test_a_change_of_a_role_or_a_binding_counts_at_once(store: Store, roles: RbacAuthorizer) -> None:
    wanted = asked("GET", PODS)
    assert not roles.decide(ANN, wanted).allowed

    write(store, "clusterroles", "r", rules=[rule("list", "pods")])
    bind(store, "r", "User", "ann")
    assert roles.decide(ANN, wanted).allowed

    write(store, "clusterroles", "r", rules=None)
    assert not roles.decide(ANN, wanted).allowed

    write(store, "clusterroles", "r", rules=[rule("list", "pods")])
    store.table(f"{GROUP}/clusterrolebindings").delete("r-ann", b"{}", store.next_version())
    assert not roles.decide(ANN, wanted).allowed


def test_existing_objects_count(store: Store) -> None:
    write(store, "clusterroles", "r", rules=[rule("list", "pods")])
    bind(store, "r", "User", "ann")

    assert RbacAuthorizer(store).decide(ANN, asked("GET", PODS)).allowed


def test_a_missing_role_is_in_the_reason(store: Store, roles: RbacAuthorizer) -> None:
    bind(store, "lost", "User", "ann")
    bind(store, "gone", "User", "ann", "shop")

    decision = roles.decide(ANN, asked("GET", PODS))

    assert decision.reason == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "lost" not found,'
        ' clusterrole.rbac.authorization.k8s.io "gone" not found]'
    )


def test_masters_need_no_role(roles: RbacAuthorizer) -> None:
    assert roles.decide(User("root", ("system:masters",)), asked("DELETE", PODS)).allowed


def test_the_rules_of_a_role_are_none_when_there_is_no_role(store: Store, roles: RbacAuthorizer) -> None:
    write(store, "roles", "r", "shop", rules=None)

    assert roles.role_reference_rules(RoleRef("Role", "r"), "shop") == ()
    assert roles.role_reference_rules(RoleRef("Role", "r"), "other") is None
    assert roles.role_reference_rules(RoleRef("ClusterRole", "r"), "shop") is None
