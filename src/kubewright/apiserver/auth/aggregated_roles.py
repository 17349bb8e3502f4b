"""The ClusterRole aggregation controller: sets the rules of each ClusterRole with an `aggregationRule`.

In a cluster it runs in kube-controller-manager (k8s.io/kubernetes/pkg/controller/clusterroleaggregation); here it is
part of the server, so that the default roles work without a controller manager.
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

__all__ = ("ClusterRoleAggregationController",)

_MANAGER: Final = "clusterrole-aggregation-controller"
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


@final
class ClusterRoleAggregationController:
    """Keeps the rules of aggregated ClusterRoles up to date."""

    def __init__(self, store: Store, catalog: Catalog, loopback: Loopback) -> None:
        self._table = store.table(f"{GROUP}/clusterroles")
        self._resource = catalog.builtin(GROUP, "clusterroles")
        self._loopback = loopback
        self._controller = TableController("aggregated roles", self._sync)
        # Any role may aggregate others or be aggregated: one key stands for all of them, so they are read once.
        self._controller.watch(self._table, lambda key: "roles")

    def start(self) -> None:
        """Start; existing roles are synced."""
        self._controller.start()

    async def stop(self) -> None:
        """Stop."""
        await self._controller.stop()

    async def _sync(self, _key: str) -> None:
        roles = {entry.key: decode_json(entry.value) for entry in self._table.entries()}
        for name, role in roles.items():
            wanted = _aggregate_rules(role, roles)
            # Compared as sets: two roles that aggregate each other would change each other's order for ever.
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


def _aggregate_rules(role: dict[str, Any], roles: dict[str, dict[str, Any]]) -> list[Any] | None:
    """The rules of an aggregated role; None for a role without an aggregationRule."""
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
