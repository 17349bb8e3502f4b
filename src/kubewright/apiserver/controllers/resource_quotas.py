"""Writes the status of ResourceQuotas: what is limited, and how much of it is used.

The work of kube-controller-manager's resource quota controller. The server does it itself, because it can count every
kind it serves straight from the store. The plugin that refuses what exceeds a quota is `admission.resource_quota`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, final

from kubewright._base.clock import Clock
from kubewright._base.tasks import cancel_and_wait
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.admission.quota_evaluator import counted_by
from kubewright.apiserver.admission.resource_quota import QuotaUsage
from kubewright.apiserver.builtin.trees import peek
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.storage.store import Change, Store, Table
from kubewright.apiserver.verbs.write import WriteHandler
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.status_errors import StatusError

__all__ = ("ResourceQuotaController",)

_LOG: Final = logging.getLogger(__name__)


@final
class ResourceQuotaController:
    """Watches the quotas and the tables of everything they count."""

    def __init__(self, store: Store, catalog: Catalog, writes: WriteHandler, clock: Clock) -> None:
        self._store = store
        self._writes = writes
        self._usage = QuotaUsage(store, catalog, clock)
        found = catalog.of_kind(GroupVersionKind("", "v1", "ResourceQuota"))
        assert found is not None
        self._resource = found
        self._quotas = store.table(found.table)
        self._watched: dict[str, tuple[Table, Callable[[], None]]] = {}
        self._namespaces: dict[str, None] = {}
        """Namespaces whose quotas are to be counted again."""
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Write the status of the quotas in the store, and keep it true from now on."""
        if self._task is not None:
            return
        self._watch(self._resource.table)
        for entry in self._quotas.entries():
            self._enqueue(entry.key.partition("/")[0])
        self._task = asyncio.get_running_loop().create_task(self._work(), name="resource quotas")

    async def stop(self) -> None:
        """Stop watching."""
        for _, unwatch in self._watched.values():
            unwatch()
        self._watched.clear()
        if self._task is not None:
            await cancel_and_wait(self._task)
            self._task = None

    def deliver(self, change: Change) -> None:
        """A counted object or a quota was created, changed or deleted."""
        self._enqueue(change.key.partition("/")[0])

    def table_gone(self) -> None:
        """A kind is served no more; it is counted again when it comes back."""

    def _enqueue(self, namespace: str) -> None:
        if next(self._quotas.entries(namespace), None) is not None:
            self._namespaces[namespace] = None
            self._wake.set()

    def _watch(self, name: str) -> None:
        # A table that was dropped and is served again is another one.
        table = self._store.table(name)
        known = self._watched.get(name)
        if known is None or known[0] is not table:
            self._watched[name] = (table, table.watch(self))

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._namespaces:
                namespace = next(iter(self._namespaces))
                del self._namespaces[namespace]
                for entry in tuple(self._quotas.entries(namespace)):
                    try:
                        await self._sync(entry.key)
                    except StatusError:  # somebody else wrote the quota meanwhile, which has enqueued it again
                        continue
                    except Exception:
                        _LOG.exception("the status of a quota was not written", extra={"quota": entry.key})

    async def _sync(self, key: str) -> None:
        entry = self._quotas.get(key)
        if entry is None:
            return
        quota: Tree = decode_json(entry.value)
        hard = peek(quota, "spec", "hard") or {}
        for group, plural in dict.fromkeys(counted_by(name) for name in hard):
            resource = self._usage.resource(group, plural)
            if resource is not None:
                self._watch(resource.table)
        used = {name: amount.canonical for name, amount in self._usage.used_by(quota, hard).items()} if hard else {}
        status = {"hard": dict(hard), "used": used} if hard else {}
        if (quota.get("status") or {}) != status:
            quota["status"] = status
            await self._writes.put_back(self._resource, entry, quota)
