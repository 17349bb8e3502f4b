"""Custom resource definitions at work: from an object in a table to routes that answer.

Watches the table of definitions. A definition whose names clash with nobody's is established and served; a changed one
is served as it now says; a deleted one is terminated: its objects are deleted, waited for, and then its routes go. The
conditions are written into the definition's status, as the real controllers do. Rules about the definition object
itself are in `crds`.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final, final

import msgspec

from kubewright._base.clock import Clock
from kubewright._base.tasks import cancel_and_wait
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.times import format_time
from kubewright.apiserver.admission.crd_termination import TerminatingCrds
from kubewright.apiserver.apiextensions.definitions.conditions import (
    CLEANUP_FINALIZER,
    is_true,
    set_condition,
    settle,
    terminating,
)
from kubewright.apiserver.apiextensions.resource_strategy import Converter, CustomResourceStrategy
from kubewright.apiserver.apiextensions.versions import CustomVersion, versions_of
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Resource, Subresource, Tree
from kubewright.apiserver.managedfields.types import FieldType, type_of_schema
from kubewright.apiserver.storage.store import Change, Entry, Store
from kubewright.apiserver.verbs.delete import DeleteHandler
from kubewright.apiserver.verbs.write import WriteHandler
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.negotiation import MediaType
from kubewright.apiserver.wire.options import DeleteOptions
from kubewright.apiserver.wire.requests import Peer, Request, RequestInfo
from kubewright.apiserver.wire.responses import encode_json
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.apiserver.wire.users import User

__all__ = ("CrdController",)

_KIND: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_READ_WRITE: Final = ("get", "patch", "update")
_SYSTEM: Final = User("system:apiserver", ("system:masters",))
_SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")
_LOG: Final = logging.getLogger(__name__)


class _Glance(msgspec.Struct):
    """What one definition has to know of another: all else is large, and there may be hundreds."""

    status: dict[str, Any] | None = None


_glance: Final = msgspec.json.Decoder(_Glance).decode


@final
class CrdController:
    """Keeps the catalog in step with the definitions in the store."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        writes: WriteHandler,
        deletes: DeleteHandler,
        clock: Clock,
        *,
        terminating: TerminatingCrds,
        converter_for: Callable[[Mapping[str, Any]], Converter | None],
    ) -> None:
        """`converter_for` makes the converter of a definition's conversion stanza; None only rewrites apiVersion."""
        self._store = store
        self._catalog = catalog
        self._writes = writes
        self._deletes = deletes
        self._clock = clock
        found = catalog.of_kind(_KIND)
        assert found is not None
        self._resource = found
        self._table = store.table(found.table)
        self._changed: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._leave: Callable[[], None] | None = None
        self._instances: dict[str, _Instances] = {}
        self._terminating = terminating
        self._converter_for = converter_for

    def start(self) -> None:
        """Serve what is there, and follow."""
        if self._task is not None:
            return
        self._leave = self._table.watch(self)
        self._changed = {entry.key: None for entry in self._table.entries()}
        self._wake.set()
        self._task = asyncio.get_running_loop().create_task(self._work(), name="custom resource definitions")

    @property
    def running(self) -> bool:
        """Whether definitions are followed."""
        return self._task is not None and not self._task.done()

    @property
    def settled(self) -> bool:
        """Whether nothing is left to look at."""
        return not self._changed

    async def stop(self) -> None:
        """Follow no longer."""
        if self._leave is not None:
            self._leave()
        if self._task is not None:
            await cancel_and_wait(self._task)
            self._task = None

    def deliver(self, change: Change) -> None:
        """A definition came, changed or went."""
        self._look_at(change.key)

    def table_gone(self) -> None:
        """Never: the table of definitions stays."""

    def _look_at(self, name: str) -> None:
        self._changed[name] = None
        self._wake.set()

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._changed:
                name = next(iter(self._changed))
                del self._changed[name]
                try:
                    await self._settle(name)
                except StatusError as exc:
                    if exc.reason == "Conflict":  # somebody wrote meanwhile: the change they made is looked at
                        self._look_at(name)
                    else:
                        _LOG.warning("a definition could not be served", extra={"definition": name, "error": str(exc)})
                except Exception:
                    _LOG.exception("a definition could not be served", extra={"definition": name})

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
        status = settle(crd, others, now=format_time(self._clock.now()))
        before, crd["status"] = crd.get("status"), status
        if is_true(crd, "Established"):
            self._serve(name, crd)
        if status != before:
            # What others may wait for is written last: when it can be read, the routes answer.
            await self._write_status(entry, crd)
            self._look_at_rivals(others)

    def _others(self, name: str) -> list[Tree]:
        """The other definitions of a definition's group, as far as their names go."""
        group = name.partition(".")[2]
        return [
            {"metadata": {"name": entry.key}, "spec": {"group": group}, "status": _glance(entry.value).status or {}}
            for entry in self._table.entries()
            if entry.key != name and entry.key.partition(".")[2] == group
        ]

    async def _write_status(self, entry: Entry, crd: Tree) -> None:
        """Store a status this server has worked out, as its own."""
        self._writes.record_own(self._resource, decode_json(entry.value), crd, "status")
        await self._writes.put_back(self._resource, entry, crd)

    def _look_at_rivals(self, others: list[Tree]) -> None:
        """Names a definition took or gave up may be another's."""
        for other in others:
            if not is_true(other, "NamesAccepted"):
                self._look_at(other["metadata"]["name"])

    def _serve(self, name: str, crd: Tree) -> None:
        converter = self._converter_for(crd["spec"].get("conversion") or {})
        self._catalog.serve(name, _resources_of(crd, converter))

    def _withdraw(self, name: str) -> None:
        self._terminating.discard(name)
        watches = self._instances.pop(name, None)
        if watches is not None:
            watches.leave()
        plural, _, group = name.partition(".")
        self._look_at_rivals(self._others(name))
        self._catalog.withdraw(name)
        self._store.drop(f"{group}/{plural}")

    # the end of a definition

    async def _terminate(self, name: str, entry: Entry, crd: Tree) -> None:
        if CLEANUP_FINALIZER not in (crd["metadata"].get("finalizers") or ()):
            return
        self._terminating.add(name)
        if not _is_being_emptied(crd):
            self._note_deletion(crd)
            await self._write_status(entry, crd)
            return  # the change brings us back
        # In the version they are stored in: who would convert them may be gone already.
        versions = [item for item in self._catalog.custom() if _is_of(item, crd)]
        storage = min(versions, key=lambda item: item.kind.api_version != item.storage_version, default=None)
        if storage is not None:
            await self._delete_instances(storage)
            table = self._store.table(storage.table)
            if len(table):
                if name not in self._instances:
                    self._instances[name] = _Instances(lambda: self._look_at(name), table.watch)
                return
        finalizers = [item for item in crd["metadata"]["finalizers"] if item != CLEANUP_FINALIZER]
        if finalizers:
            crd["metadata"]["finalizers"] = finalizers
            await self._writes.put_back(self._resource, entry, crd)
        else:
            del crd["metadata"]["finalizers"]
            self._writes.remove(self._resource, entry.key, crd)

    def _note_deletion(self, crd: Tree) -> None:
        text = "CustomResource deletion is in progress"
        condition = terminating("InstanceDeletionInProgress", text, status="True")
        status = crd["status"] = crd.get("status") or {}
        conditions = status["conditions"] = status.get("conditions") or []
        set_condition(conditions, condition, now=format_time(self._clock.now()))

    async def _delete_instances(self, resource: Resource) -> None:
        for entry in list(self._store.table(resource.table).entries()):
            namespace, _, name = entry.key.rpartition("/")
            target = RequestInfo(
                "delete", "", resource.kind.group, resource.kind.version, resource.plural, "", namespace, name
            )
            request = Request("DELETE", "", {}, {}, b"", Peer())
            call = Call(request, target, resource, _SYSTEM, MediaType())
            try:
                await self._deletes.delete_key(call, entry.key, DeleteOptions())
            except StatusError as exc:
                if exc.reason != "NotFound":
                    _LOG.warning("an object of a deleted kind stays", extra={"key": entry.key, "error": str(exc)})


@final
class _Instances:
    """Waits for the last object of a kind that is being deleted."""

    def __init__(self, tell: Callable[[], None], watch: Callable[[Any], Callable[[], None]]) -> None:
        self._tell = tell
        self.leave = watch(self)

    def deliver(self, change: Change) -> None:
        if change.new is None:
            self._tell()

    def table_gone(self) -> None:
        self._tell()


def _is_being_emptied(crd: Tree) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    ends = (one for one in conditions if one.get("type") == "Terminating")
    return any(one.get("reason") != "InstanceDeletionPending" for one in ends)


def _is_of(resource: Resource, crd: Tree) -> bool:
    return (resource.kind.group, resource.plural) == (crd["spec"]["group"], crd["spec"]["names"]["plural"])


def _resources_of(crd: Tree, converter: Converter | None) -> list[Resource]:
    versions = versions_of(crd)
    storage = next(version for version in versions if version.storage)
    types = {
        version.gvk.api_version: type_of_schema(version.schema, preserve_unknown=version.preserves_unknown)
        for version in versions
    }
    return [_resource(crd, version, storage, converter, types) for version in versions if version.served]


def _resource(
    crd: Tree,
    version: CustomVersion,
    storage: CustomVersion,
    converter: Converter | None,
    types: Mapping[str, FieldType],
) -> Resource:
    names = crd["spec"]["names"]
    kind, storage_version = version.gvk, storage.gvk.api_version
    strategy = CustomResourceStrategy(
        version, kind=kind, storage_version=storage_version, converter=converter, field_types=types
    )
    subresources = {}
    if version.has_status:
        subresources["status"] = Subresource("status", kind, _READ_WRITE)
    if version.scale is not None:
        subresources["scale"] = Subresource("scale", _SCALE, _READ_WRITE)
    return Resource(
        kind=kind,
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=version.namespaced,
        verbs=_VERBS,
        strategy=strategy,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        subresources=subresources,
        storage_version=storage_version,
        schema_id=_schema_id(version),
        storage_schema=_schema_id(storage),
        custom=True,
        columns=version.columns,
        deprecation=version.warning,
        scale=version.scale,
    )


def _schema_id(version: CustomVersion) -> int:
    """A number for what bytes written under this schema look like: the same schema, the same number."""
    return 2 + zlib.crc32(encode_json([version.gvk.api_version, version.schema]))
