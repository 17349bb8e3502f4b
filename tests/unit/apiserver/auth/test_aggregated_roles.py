"""Cluster roles that are made of others."""

from __future__ import annotations

import asyncio
from typing import Any

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def _role(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": fields.pop("labels", {})}, **fields}


def _rule(verb: str) -> dict[str, Any]:
    return {"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}


async def _verbs(desk: Any, name: str) -> list[str]:
    _, role = await desk.ask("GET", f"{ROLES}/{name}")
    return [rule["verbs"][0] for rule in role.get("rules") or ()]


async def _settled(desk: Any, *names: str, count: int) -> None:
    for _ in range(1000):  # turns of the loop, not time
        if all([len(await _verbs(desk, name)) == count for name in names]):
            return
        await asyncio.sleep(0)
    raise AssertionError("the roles do not come to rest")


async def test_a_role_gathers_the_rules_of_those_it_selects(desk: Any) -> None:
    await desk.make(ROLES, _role("part", labels={"to": "all"}, rules=[_rule("get"), _rule("list")]))
    await desk.make(ROLES, _role("all", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}))

    await _settled(desk, "all", count=2)

    assert await _verbs(desk, "all") == ["get", "list"]


async def test_roles_that_gather_each_other_come_to_rest_in_whatever_order(desk: Any) -> None:
    around = {"clusterRoleSelectors": [{"matchLabels": {"ring": "1"}}]}
    orders = {"a": ("get", "list", "watch"), "b": ("watch", "list", "get"), "c": ("list", "get", "watch")}
    for name, verbs in orders.items():
        rules = [_rule(verb) for verb in verbs]
        await desk.make(ROLES, _role(name, labels={"ring": "1"}, rules=rules, aggregationRule=around))
    await _settled(desk, *orders, count=3)

    before = desk.server.store.version
    for _ in range(100):
        await asyncio.sleep(0)

    assert desk.server.store.version == before
