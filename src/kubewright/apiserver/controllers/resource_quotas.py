"""Writes the status of ResourceQuotas: what is limited, and how much of it is used.

The work of kube-controller-manager's resource quota controller. The server does it itself, because it can count every
kind it serves straight from the store. The plugin that refuses what exceeds a quota is `admission.resource_quota`.
"""

from __future__ import annotations

from typing import final

from kubewright._base.clock import Clock
from kubewright.apiserver.admission.quota_evaluator import counted_by
from kubewright.apiserver.admission.resource_quota import QuotaUsage
from kubewright.apiserver.builtin.trees import peek
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.storage.store import Entry, Store
from kubewright.apiserver.verbs.registry import Registry
from kubewright.apiserver.verbs.table_controller import TableController
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("ResourceQuotaController",)


@final
class ResourceQuotaController:
    """Watches the quotas and the tables of everything they count."""

    def __init__(self, store: Store, catalog: Catalog, registry: Registry, clock: Clock) -> None:
        self._store = store
        self._registry = registry
        self._usage = QuotaUsage(store, catalog, clock)
        self._resource = catalog.builtin("", "resourcequotas")
        self._quotas = store.table(self._resource.table)
        self._controller = TableController("resource quotas", self._sync)
        self._controller.watch(self._quotas, self._namespace_of)

    def start(self) -> None:
        """Write the status of the quotas in the store, and keep it true from now on."""
        self._controller.start()

    async def stop(self) -> None:
        """Stop watching."""
        await self._controller.stop()

    def _namespace_of(self, key: str) -> str:
        """The namespace whose quotas have to be counted when an object changes; empty without quotas."""
        namespace = key.partition("/")[0]
        return "" if next(self._quotas.entries(namespace), None) is None else namespace

    async def _sync(self, namespace: str) -> None:
        for entry in tuple(self._quotas.entries(namespace)):
            await self._write_status(entry)

    async def _write_status(self, entry: Entry) -> None:
        quota: Tree = decode_json(entry.value)
        hard = peek(quota, "spec", "hard") or {}
        for group, plural in dict.fromkeys(counted_by(name) for name in hard):
            resource = self._usage.resource(group, plural)
            if resource is not None:
                self._controller.watch(self._store.table(resource.table), self._namespace_of)
        used = {name: amount.canonical for name, amount in self._usage.used_by(quota, hard).items()} if hard else {}
        status = {"hard": dict(hard), "used": used} if hard else {}
        if (quota.get("status") or {}) != status:
            quota["status"] = status
            await self._registry.put_if_unchanged(self._resource, entry, quota)
