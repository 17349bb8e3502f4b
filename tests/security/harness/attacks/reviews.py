"""Reviews: of access, of tokens, of who one is. Everybody may send some of them."""

from __future__ import annotations

from tests.security.harness.attack import Target, attack, many
from tests.security.harness.exchange import Answer

_SELF = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
_SUBJECT = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@attack(by="nobody")
async def requirements(on: Target) -> Answer:
    """A review with a selector of a hundred thousand requirements."""
    requirement = {"key": "a", "operator": "In", "values": ["b"]}
    attributes = {
        "verb": "list",
        "resource": "pods",
        "labelSelector": {"requirements": [requirement] * many(50, values=5)},
    }
    return await on.post(_SELF, {"spec": {"resourceAttributes": attributes}})


@attack(by="nobody")
async def empty_requirements(on: Target) -> Answer:
    """The same with empty ones, all wrong."""
    attributes = {"verb": "list", "resource": "pods", "fieldSelector": {"requirements": [{}] * many(3, values=2)}}
    return await on.post(_SELF, {"spec": {"resourceAttributes": attributes}})


@attack(by="nobody")
async def a_raw_selector(on: Target) -> Answer:
    """A selector of three megabytes as text."""
    attributes = {
        "verb": "list",
        "resource": "pods",
        "labelSelector": {"rawSelector": ",".join(["a in (b)"] * 250_000)},
    }
    return await on.post(_SELF, {"spec": {"resourceAttributes": attributes}})


@attack(by="nobody")
async def raw_parentheses(on: Target) -> Answer:
    """A selector of three megabytes of parentheses."""
    attributes = {"verb": "list", "resource": "pods", "labelSelector": {"rawSelector": "a in (" + "(" * 2_900_000}}
    return await on.post(_SELF, {"spec": {"resourceAttributes": attributes}})


@attack(by="nobody")
async def a_raw_field_selector(on: Target) -> Answer:
    """A selector of fields of three megabytes as text."""
    attributes = {"verb": "list", "resource": "pods", "fieldSelector": {"rawSelector": ",".join(["a=b"] * 700_000)}}
    return await on.post(_SELF, {"spec": {"resourceAttributes": attributes}})


@attack(by="nobody")
async def a_long_path(on: Target) -> Answer:
    """A review of a path of three megabytes."""
    return await on.post(_SELF, {"spec": {"nonResourceAttributes": {"verb": "get", "path": "/" * 2_900_000}}})


@attack(by="nobody")
async def rules_of_a_namespace(on: Target) -> Answer:
    """All rights in a namespace."""
    return await on.post(_RULES, {"spec": {"namespace": "edited"}})


@attack(by="admin")
async def groups_and_extras(on: Target) -> Answer:
    """A review of somebody in three hundred thousand groups."""
    spec = {
        "user": "a",
        "groups": [f"g{n}" for n in range(many(11))],
        "resourceAttributes": {"verb": "get", "resource": "pods"},
    }
    return await on.post(_SUBJECT, {"spec": spec})


@attack(by="admin")
async def a_long_token(on: Target) -> Answer:
    """A review of a token of three megabytes, and of one with a million parts."""
    await on.post(_TOKENS, {"spec": {"token": "a." * 1_400_000}})
    return await on.post(_TOKENS, {"spec": {"token": "a.b." + "c" * 2_900_000}})


@attack(by="admin")
async def audiences(on: Target) -> Answer:
    """A review of a token for half a million audiences."""
    return await on.post(_TOKENS, {"spec": {"token": "a.b.c", "audiences": ["a"] * many(4)}})


@attack(by="nobody")
async def who_one_is(on: Target) -> Answer:
    """A review without a spec, of the largest size."""
    return await on.post(_WHO, {"metadata": {"annotations": {f"{n}": "" for n in range(many(14))}}})


@attack(by="admin")
async def impersonated_groups(on: Target) -> Answer:
    """A request in the name of somebody in ten thousand groups."""
    headers = b"Impersonate-User: a\r\n" + b"".join(b"Impersonate-Group: g%d\r\n" % n for n in range(2_000))
    return await (await on.connect()).ask(b"GET /api HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")


@attack(by="admin")
async def a_role_of_many_rules(on: Target) -> Answer:
    """A role with a hundred thousand rules, and a review that is answered by it."""
    rules = [{"apiGroups": ["*"], "resources": [f"r{n}"], "verbs": ["get"]} for n in range(12_000)]
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/edited"
    answer = await on.post(f"{path}/roles", {"metadata": {"name": "wide"}, "rules": rules})
    binding = {
        "metadata": {"name": "wide"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "wide"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"u{n}"} for n in range(5_000)],
    }
    await on.post(f"{path}/rolebindings", binding)
    await on.as_user("editor").get("/api/v1/namespaces/edited/configmaps/x")
    await on.ask("DELETE", f"{path}/rolebindings/wide")
    return answer


@attack(by="admin")
async def a_role_that_may_not_be_given(on: Target) -> Answer:
    """A role whose rules are compared with one's own: forty thousand of them."""
    rules = [
        {"apiGroups": ["a", "b", "c"], "resources": [f"r{n}", "x", "y"], "verbs": ["get", "put"]} for n in range(10_000)
    ]
    return await on.post(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "rules"}, "rules": rules}
    )
