"""Cluster roles made of others: the rules of each role with an `aggregationRule` are gathered from those it selects.

A controller of kube-controller-manager in a cluster; here a part of the server, so that roles work without any
controller running.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, final

import msgspec

from kubewright.api.selectors import Selector
from kubewright.apiserver.auth.rbac import GROUP
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.verbs.loopback import Loopback
from kubewright.apiserver.verbs.table_controller import TableController
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("AggregatedRoles",)

_MANAGER: Final = "clusterrole-aggregation-controller"
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


@final
class AggregatedRoles:
    """Keeps the rules of aggregated roles up to date."""

    def __init__(self, store: Store, catalog: Catalog, loopback: Loopback) -> None:
        self._table = store.table(f"{GROUP}/clusterroles")
        self._resource = catalog.builtin(GROUP, "clusterroles")
        self._loopback = loopback
        self._controller = TableController("aggregated roles", self._sync)
        # Any role may aggregate others or be aggregated: one key stands for all of them, so they are read once.
        self._controller.watch(self._table, lambda key: "roles")

    def start(self) -> None:
        """Begin; roles that are there already are looked at."""
        self._controller.start()

    async def stop(self) -> None:
        """End."""
        await self._controller.stop()

    async def _sync(self, _key: str) -> None:
        roles = {entry.key: decode_json(entry.value) for entry in self._table.entries()}
        for name, role in roles.items():
            wanted = _gathered(role, roles)
            # The order is not compared: roles that gather each other would hand theirs round for ever.
            if wanted is not None and _as_set(wanted) != _as_set(role.get("rules") or ()):
                await self._write(name, wanted)

    async def _write(self, name: str, rules: list[Any]) -> None:
        kind = self._resource.kind
        tree: Tree = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
        if rules:
            tree["rules"] = rules
        await self._loopback.apply(self._resource, tree, manager=_MANAGER)


def _as_set(rules: Iterable[Any]) -> set[bytes]:
    return {_encode(rule) for rule in rules}


def _gathered(role: dict[str, Any], roles: dict[str, dict[str, Any]]) -> list[Any] | None:
    """The rules an aggregated role should have; None for one that is not."""
    aggregation = role.get("aggregationRule")
    if aggregation is None:
        return None
    found: list[Any] = []
    for structured in aggregation.get("clusterRoleSelectors") or ():
        selector = Selector.from_structured(structured)
        for name in sorted(roles):
            other = roles[name]
            if name != role["metadata"]["name"] and selector.matches(other["metadata"].get("labels") or {}):
                found.extend(rule for rule in other.get("rules") or () if rule not in found)
    return found
