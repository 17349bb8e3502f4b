"""Nobody grants more than they hold."""

from __future__ import annotations

from typing import Any

import pytest

GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
ROLES = f"{RBAC}/clusterroles"
BINDINGS = f"{RBAC}/clusterrolebindings"
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
GET_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


def _role(name: str, *rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def _binding(name: str, role: str, user: str) -> dict[str, Any]:
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    return {"metadata": {"name": name}, "roleRef": ref, "subjects": [{"kind": "User", "name": user, "apiGroup": GROUP}]}


@pytest.fixture
async def maker(desk: Any) -> str:
    """A user who may write roles and bindings, and read pods."""
    writes = {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "create", "update", "patch"]}
    await desk.make(ROLES, _role("maker", writes, GET_PODS))
    await desk.make(BINDINGS, _binding("maker", "maker", "max"))
    return "max"


async def test_a_role_with_more_than_its_maker_has_is_refused(desk: Any, maker: str) -> None:
    code, refused = await desk.ask("POST", ROLES, _role("all", EVERYTHING), user=maker)

    assert code == 403
    assert refused["message"].endswith(
        'user "max" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'
    )


async def test_a_role_with_what_its_maker_has_is_made(desk: Any, maker: str) -> None:
    assert (await desk.ask("POST", ROLES, _role("some", GET_PODS), user=maker))[0] == 201


async def test_a_role_does_not_grow_by_an_update_either(desk: Any, maker: str) -> None:
    await desk.make(ROLES, _role("grows", GET_PODS))

    code, _ = await desk.ask("PUT", f"{ROLES}/grows", _role("grows", EVERYTHING), user=maker)

    assert code == 403


async def test_a_binding_to_more_than_its_maker_has_is_refused(desk: Any, maker: str) -> None:
    assert (await desk.ask("POST", BINDINGS, _binding("b", "cluster-admin", maker), user=maker))[0] == 403
    assert (await desk.ask("POST", BINDINGS, _binding("b", "maker", "ann"), user=maker))[0] == 201


async def test_who_may_bind_or_escalate_is_exempt(desk: Any, maker: str) -> None:
    trust = {"apiGroups": [GROUP], "resources": ["clusterroles"], "verbs": ["bind", "escalate"]}
    await desk.make(ROLES, _role("trusted", trust))
    await desk.make(BINDINGS, _binding("trusted", "trusted", maker))

    assert (await desk.ask("POST", ROLES, _role("all", EVERYTHING), user=maker))[0] == 201
    assert (await desk.ask("POST", BINDINGS, _binding("b", "cluster-admin", maker), user=maker))[0] == 201


async def test_only_who_has_everything_makes_a_role_that_gathers(desk: Any, maker: str) -> None:
    gathers = _role("gathers", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})

    code, refused = await desk.ask("POST", ROLES, gathers, user=maker)

    assert code == 403
    assert refused["message"].endswith("must have cluster-admin privileges to use the aggregationRule")


async def test_an_update_that_changes_nothing_is_let_pass(desk: Any, maker: str) -> None:
    await desk.make(ROLES, _role("strong", EVERYTHING))
    _, strong = await desk.ask("GET", f"{ROLES}/strong")

    assert (await desk.ask("PUT", f"{ROLES}/strong", strong, user=maker))[0] == 200
