"""Cluster roles that are made of others."""

from __future__ import annotations

import asyncio
from typing import Any

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def _role(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": fields.pop("labels", {})}, **fields}


def _rule(verb: str) -> dict[str, Any]:
    return {"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}


async def _verbs(server: Any, name: str) -> list[str]:
    _, role = await server.ask("GET", f"{ROLES}/{name}")
    return [rule["verbs"][0] for rule in role.get("rules") or ()]


async def _settled(server: Any, *names: str, count: int) -> None:
    for _ in range(1000):  # turns of the loop, not time
        if all([len(await _verbs(server, name)) == count for name in names]):
            return
        await asyncio.sleep(0)
    raise AssertionError("the roles do not come to rest")


async def test_a_role_aggregates_the_rules_of_those_it_selects(server: Any) -> None:
    await server.make(ROLES, _role("part", labels={"to": "all"}, rules=[_rule("get"), _rule("list")]))
    await server.make(ROLES, _role("all", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}))

    await _settled(server, "all", count=2)

    assert await _verbs(server, "all") == ["get", "list"]


async def test_roles_that_aggregate_each_other_converge(server: Any) -> None:
    around = {"clusterRoleSelectors": [{"matchLabels": {"ring": "1"}}]}
    orders = {"a": ("get", "list", "watch"), "b": ("watch", "list", "get"), "c": ("list", "get", "watch")}
    for name, verbs in orders.items():
        rules = [_rule(verb) for verb in verbs]
        await server.make(ROLES, _role(name, labels={"ring": "1"}, rules=rules, aggregationRule=around))
    await _settled(server, *orders, count=3)

    before = server.api.store.version
    for _ in range(100):
        await asyncio.sleep(0)

    assert server.api.store.version == before
