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
async def maker(server: Any) -> str:
    """A user who may write roles and bindings, and read pods."""
    writes = {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "create", "update", "patch"]}
    await server.make(ROLES, _role("maker", writes, GET_PODS))
    await server.make(BINDINGS, _binding("maker", "maker", "max"))
    return "max"


async def test_a_role_that_escalates_is_rejected(server: Any, maker: str) -> None:
    code, error = await server.ask("POST", ROLES, _role("all", EVERYTHING), user=maker)

    assert code == 403
    assert error["message"].endswith(
        'user "max" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'
    )


async def test_a_role_that_does_not_escalate_is_created(server: Any, maker: str) -> None:
    assert (await server.ask("POST", ROLES, _role("some", GET_PODS), user=maker))[0] == 201


async def test_an_update_that_escalates_is_rejected(server: Any, maker: str) -> None:
    await server.make(ROLES, _role("grows", GET_PODS))

    code, _ = await server.ask("PUT", f"{ROLES}/grows", _role("grows", EVERYTHING), user=maker)

    assert code == 403


async def test_a_binding_that_escalates_is_rejected(server: Any, maker: str) -> None:
    assert (await server.ask("POST", BINDINGS, _binding("b", "cluster-admin", maker), user=maker))[0] == 403
    assert (await server.ask("POST", BINDINGS, _binding("b", "maker", "ann"), user=maker))[0] == 201


async def test_the_verbs_bind_and_escalate_exempt(server: Any, maker: str) -> None:
    trust = {"apiGroups": [GROUP], "resources": ["clusterroles"], "verbs": ["bind", "escalate"]}
    await server.make(ROLES, _role("trusted", trust))
    await server.make(BINDINGS, _binding("trusted", "trusted", maker))

    assert (await server.ask("POST", ROLES, _role("all", EVERYTHING), user=maker))[0] == 201
    assert (await server.ask("POST", BINDINGS, _binding("b", "cluster-admin", maker), user=maker))[0] == 201


async def test_only_an_administrator_creates_an_aggregated_role(server: Any, maker: str) -> None:
    gathers = _role("gathers", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})

    code, error = await server.ask("POST", ROLES, gathers, user=maker)

    assert code == 403
    assert error["message"].endswith("must have cluster-admin privileges to use the aggregationRule")


async def test_an_update_that_changes_nothing_is_allowed(server: Any, maker: str) -> None:
    await server.make(ROLES, _role("strong", EVERYTHING))
    _, strong = await server.ask("GET", f"{ROLES}/strong")

    assert (await server.ask("PUT", f"{ROLES}/strong", strong, user=maker))[0] == 200
