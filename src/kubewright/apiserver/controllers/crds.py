"""The CRD controller: serves the custom resources that CustomResourceDefinitions define.

It does the work of four controllers of kube-apiserver (staging/src/k8s.io/apiextensions-apiserver/pkg/controller/):
naming, establish, finalizer, and the handler's informer. A definition whose names no other definition of its group has
taken is established and goes into the catalog. A deleted one is terminated: the controller deletes its objects, waits
for their finalizers, and withdraws it from the catalog. The rules for the definition object itself are in
`apiextensions.definitions`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, final

import msgspec

from kubewright._base.clock import Clock
from kubewright.api.times import format_time
from kubewright.apiserver.admission.crd_termination import TerminatingCrds
from kubewright.apiserver.apiextensions.definitions.conditions import (
    CLEANUP_FINALIZER,
    compute_status,
    is_true,
    set_condition,
    terminating_condition,
)
from kubewright.apiserver.apiextensions.resource_strategy import Converter
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.controllers.crd_resources import resources_of
from kubewright.apiserver.kinds.large_requests import LARGE, off_loop
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.storage.store import Change, Entry, Store, Table
from kubewright.apiserver.verbs.loopback import Loopback
from kubewright.apiserver.verbs.registry import Registry
from kubewright.apiserver.verbs.table_controller import TableController
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.status_errors import StatusError

__all__ = ("CrdController",)

_LOG: Final = logging.getLogger(__name__)


class _StatusOnly(msgspec.Struct):
    """The part of a definition that others of its group are compared with; its schemas may be very large."""

    status: dict[str, Any] | None = None


_decode_status: Final = msgspec.json.Decoder(_StatusOnly).decode


@final
class CrdController:
    """Keeps the catalog in step with the definitions in the store."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        registry: Registry,
        loopback: Loopback,
        clock: Clock,
        *,
        terminating: TerminatingCrds,
        converter_for: Callable[[Mapping[str, Any]], Converter | None],
    ) -> None:
        """`converter_for` makes the converter of a definition's conversion stanza; None only rewrites apiVersion."""
        self._store = store
        self._catalog = catalog
        self._registry = registry
        self._loopback = loopback
        self._clock = clock
        self._resource = catalog.builtin("apiextensions.k8s.io", "customresourcedefinitions")
        self._table = store.table(self._resource.table)
        self._controller = TableController("custom resource definitions", self._sync)
        self._controller.watch(self._table)
        self._instances: dict[str, _InstanceWatch] = {}
        self._terminating = terminating
        self._converter_for = converter_for

    def start(self) -> None:
        """Serve the definitions in the store, and watch them."""
        self._controller.start()

    async def stop(self) -> None:
        """Stop watching."""
        await self._controller.stop()

    @property
    def running(self) -> bool:
        """Whether it watches definitions."""
        return self._controller.running

    @property
    def has_synced(self) -> bool:
        """Whether every change of a definition so far has been handled."""
        return self._controller.is_idle

    async def _sync(self, name: str) -> None:
        try:
            await self._settle(name)
        except StatusError as exc:
            if exc.reason != "Conflict":
                _LOG.warning("a definition is not served", extra={"definition": name, "error": str(exc)})
                return
            # Somebody wrote the definition between our read and our write: handle what they wrote.
            self._controller.add(name)

    async def _settle(self, name: str) -> None:
        entry = self._table.get(name)
        if entry is None:
            self._withdraw(name)
            return
        crd: Tree = decode_json(entry.value)
        if crd["metadata"].get("deletionTimestamp"):
            await self._terminate(name, entry, crd)
            return
        others = self._others(name)
        size, now = len(entry.value), format_time(self._clock.now())
        status = await off_loop(size, lambda: compute_status(crd, others, now=now))
        before, crd["status"] = crd.get("status"), status
        if is_true(crd, "Established"):
            converter = self._converter_for(crd["spec"].get("conversion") or {})
            resources = await off_loop(size, lambda: resources_of(crd, converter, compiled=size >= LARGE))
            if self._table.get(name) is not entry:
                return  # whoever wrote it meanwhile has added it again
            self._catalog.serve(name, resources)
        if status != before:
            # The status is written last: a client that waits for Established must then find the resource served.
            await self._registry.put_own_status(self._resource, entry, crd)
            self._add_rivals(others)

    def _others(self, name: str) -> list[Tree]:
        """The other definitions of a definition's group, with their names and status."""
        group = name.partition(".")[2]
        return [
            {
                "metadata": {"name": entry.key},
                "spec": {"group": group},
                "status": _decode_status(entry.value).status or {},
            }
            for entry in self._table.entries()
            if entry.key != name and entry.key.partition(".")[2] == group
        ]

    def _add_rivals(self, others: list[Tree]) -> None:
        """Handle the definitions that lack names again: this one may have taken or released them."""
        for other in others:
            if not is_true(other, "NamesAccepted"):
                self._controller.add(other["metadata"]["name"])

    def _withdraw(self, name: str) -> None:
        self._terminating.discard(name)
        instances = self._instances.pop(name, None)
        if instances is not None:
            instances.stop()
        plural, _, group = name.partition(".")
        self._add_rivals(self._others(name))
        self._catalog.withdraw(name)
        if not self._catalog.has_built_in(group):  # where it has had no objects, and the table is not its own
            self._store.drop(f"{group}/{plural}")

    # termination

    async def _terminate(self, name: str, entry: Entry, crd: Tree) -> None:
        if CLEANUP_FINALIZER not in (crd["metadata"].get("finalizers") or ()):
            return
        self._terminating.add(name)
        if not _is_in_progress(crd):
            self._set_in_progress(crd)
            await self._registry.put_own_status(self._resource, entry, crd)
            return  # the write adds the definition again
        # Delete the objects in the version they are stored in: the webhook that converts them may be gone already.
        versions = [item for item in self._catalog.custom() if _is_of(item, crd)]
        storage = min(versions, key=lambda item: item.kind.api_version != item.storage_version, default=None)
        if storage is not None:
            await self._delete_instances(storage)
            table = self._store.table(storage.table)
            if len(table):
                if name not in self._instances:
                    self._instances[name] = _InstanceWatch(table, lambda: self._controller.add(name))
                return
        finalizers = [item for item in crd["metadata"]["finalizers"] if item != CLEANUP_FINALIZER]
        if finalizers:
            crd["metadata"]["finalizers"] = finalizers
            await self._registry.put_if_unchanged(self._resource, entry, crd)
        else:
            del crd["metadata"]["finalizers"]
            self._registry.remove(self._resource, entry.key, crd)

    def _set_in_progress(self, crd: Tree) -> None:
        text = "CustomResource deletion is in progress"
        condition = terminating_condition("InstanceDeletionInProgress", text, status="True")
        status = crd["status"] = crd.get("status") or {}
        conditions = status["conditions"] = status.get("conditions") or []
        set_condition(conditions, condition, now=format_time(self._clock.now()))

    async def _delete_instances(self, resource: Resource) -> None:
        for entry in list(self._store.table(resource.table).entries()):
            try:
                await self._loopback.delete(resource, entry.key)
            except StatusError as exc:
                if exc.reason != "NotFound":
                    _LOG.warning(
                        "an object of a terminating definition was not deleted",
                        extra={"key": entry.key, "error": str(exc)},
                    )


@final
class _InstanceWatch:
    """Calls a function when an object of a terminating definition is removed."""

    def __init__(self, table: Table, on_removal: Callable[[], None]) -> None:
        self._on_removal = on_removal
        self.stop = table.watch(self)

    def deliver(self, change: Change) -> None:
        if change.new is None:
            self._on_removal()

    def table_gone(self) -> None:
        self._on_removal()


def _is_in_progress(crd: Tree) -> bool:
    """Whether the status says already that the objects of a definition are being deleted."""
    conditions = (crd.get("status") or {}).get("conditions") or ()
    found = (one for one in conditions if one.get("type") == "Terminating")
    return any(one.get("reason") != "InstanceDeletionPending" for one in found)


def _is_of(resource: Resource, crd: Tree) -> bool:
    return (resource.kind.group, resource.plural) == (crd["spec"]["group"], crd["spec"]["names"]["plural"])
