"""GarbageCollector: deletes objects whose owners are gone, and handles foreground deletion and orphaning.

It watches the metadata of every resource that can be listed, watched and deleted, and resyncs these monitors when
CustomResourceDefinitions or APIServices change. `graph` turns each change into work items. Before it deletes an object,
a worker reads the object and each owner from the server, and the deletion has uid and resource version as
preconditions: a stale graph costs a request, never an object. After
pkg/controller/garbagecollector/garbagecollector.go. Registered by `controllers`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, final

import msgspec

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger
from kubewright._base.tasks import within
from kubewright.api.codec import to_tree
from kubewright.api.dynamic import PartialObjectMetadata
from kubewright.api.kinds import GroupVersion
from kubewright.api.metadata import ObjectMeta, OwnerReference
from kubewright.api.names import ObjectKey
from kubewright.cache.cache import Cache
from kubewright.cache.changes import Change
from kubewright.cache.informer import Informer
from kubewright.cache.scope import Scope
from kubewright.cache.subscriptions import Subscription
from kubewright.client.client import Client
from kubewright.client.discovery import ApiResource
from kubewright.client.routes import Propagation
from kubewright.cluster.controller_manager.garbage.graph import (
    FOREGROUND,
    ORPHAN,
    Graph,
    GraphNode,
    ObjectReference,
    WorkItem,
)
from kubewright.cluster.controller_manager.garbage.resources import deletable_resources, metadata_class
from kubewright.controllers.event_recorder import EventRecorder
from kubewright.errors import ApiError, Conflict, KubewrightError, NotFound, TransportError
from kubewright.workqueue.queue import WorkQueue
from kubewright.workqueue.rate_limiters import ExponentialFailureRateLimiter

__all__ = ("GarbageCollector",)

_DEFINITIONS: Final = ("apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1")
"""The group versions of CustomResourceDefinition and APIService."""
_RESYNC_DELAYS: Final = (0.05, 0.3, 1.0, 3.0)
"""Seconds after a definition changed: discovery follows a definition with some delay."""
_RESYNC_PERIOD: Final = 30.0
"""Seconds between periodic resyncs; upstream resyncs every 30 seconds too."""
_MAX_ABSENT_OWNERS: Final = 10_000
_SYNC_POLL: Final = 0.5

_log = Logger("kubewright.cluster.garbage")

Kind = type[PartialObjectMetadata]


@final
class GarbageCollector:
    """The garbage collector; a runnable. It also finds objects whose owners were deleted before it started."""

    name = "garbage-collector-controller"

    def __init__(self, client: Client, *, workers: int = 10, clock: Clock | None = None) -> None:
        self.graph = Graph()
        self._client = client
        self._clock = clock or SystemClock()
        self._workers = workers
        self._cache = Cache(client, default_scope=Scope(resync=0), clock=self._clock)
        self._queue: WorkQueue[WorkItem] = WorkQueue(limiter=ExponentialFailureRateLimiter(), clock=self._clock)
        self._recorder = EventRecorder(client, controller=self.name, clock=self._clock)
        self._monitors: dict[Kind, tuple[Informer[PartialObjectMetadata], Subscription[PartialObjectMetadata]]] = {}
        self._absent_owners: OrderedDict[tuple[str, ...], None] = OrderedDict()
        """absentOwnerCache of upstream: coordinates at which the server had no owner. By coordinates, not by uid: a
        child may refer to a living owner by the wrong namespace or kind."""
        self._kinds_by_definition: dict[str, tuple[str, str]] = {}
        """Group and kind of every discovered resource, by `plural.group`, the name of its definition."""
        self._removed_kinds: set[tuple[str, str]] = set()
        """Kinds whose definition was deleted: all their objects are deleted too."""
        self._definitions_changed = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.run(), name="garbage collector cache")
            group.create_task(self._recorder.run(), name="garbage collector events")
            await self._sync_monitors_until_success()
            await self._wait_for_cache_sync()
            for number in range(self._workers):
                group.create_task(self._run_worker(), name=f"garbage collector {number}")
            group.create_task(self._resync_monitors(), name="garbage collector kinds")

    # --- monitors ---

    async def _sync_monitors_until_success(self) -> None:
        while True:
            try:
                await self._sync_monitors()
                return
            except (ApiError, TransportError) as error:
                _log.warning("discovery failed; it is retried", error=str(error))
                await self._clock.sleep(1.0)

    async def _sync_monitors(self) -> None:
        """Start monitors of new resources and stop those of resources that discovery does not list any more."""
        api_resources = await self._client.discovery.resources(refresh=True)
        wanted = {self._metadata_class(resource) for resource in deletable_resources(api_resources)}
        for kind in [kind for kind in self._monitors if kind not in wanted]:
            informer, subscription = self._monitors.pop(kind)
            subscription.close()
            self._cache.release(informer)
            for uid in self.graph.uids_of_kind(kind.api_version, kind.kind):
                # The resource may return, for example when its aggregated API server restarts: its objects may exist.
                self._enqueue(self.graph.make_virtual(uid))
        for kind in wanted - self._monitors.keys():
            informer = self._cache.informer(kind)
            self._monitors[kind] = (informer, informer.subscribe(self._process_graph_change))

    async def _wait_for_cache_sync(self) -> None:
        """Wait until all monitors have synced, except those that fail: they must not stop the others."""
        sync_tasks = [asyncio.create_task(informer.wait_for_sync()) for informer, _ in self._monitors.values()]
        try:
            pending = set(sync_tasks)
            while pending:
                _, pending = await asyncio.wait(pending, timeout=_SYNC_POLL)
                unsynced = [informer for informer, _ in self._monitors.values() if not informer.synced]
                if all(informer.problem is not None for informer in unsynced):
                    return
        finally:
            for task in sync_tasks:
                task.cancel()
            await asyncio.gather(*sync_tasks, return_exceptions=True)

    async def _resync_monitors(self) -> None:
        while True:
            with suppress(TimeoutError):
                await within(self._definitions_changed.wait(), _RESYNC_PERIOD, clock=self._clock)
            delays = _RESYNC_DELAYS if self._definitions_changed.is_set() else (0.0,)
            self._definitions_changed.clear()
            for delay in delays:
                await self._clock.sleep(delay)
                try:
                    await self._sync_monitors()
                except (ApiError, TransportError) as error:
                    _log.warning("the monitors could not be resynced", error=str(error))
                if self._definitions_changed.is_set():
                    break

    def _process_definition_change(self, change: Change[PartialObjectMetadata]) -> None:
        """Resync when a definition changes; one of the initial list matters only if its kind is unknown."""
        if change.kind.kind == "CustomResourceDefinition":
            known = self._kinds_by_definition.get(change.key.name)
            if known is not None and change.type == "deleted":
                self._removed_kinds.add(known)
            elif known is not None:
                self._removed_kinds.discard(known)
                if change.initial:
                    return
        elif change.initial:
            return
        self._definitions_changed.set()

    def _metadata_class(self, resource: ApiResource) -> Kind:
        group = resource.gvr.group
        self._kinds_by_definition[f"{resource.gvr.resource}.{group}"] = (group, resource.gvk.kind)
        return metadata_class(resource)

    def _is_removed_kind(self, api_version: str, kind: str) -> bool:
        return (GroupVersion.parse(api_version).group, kind) in self._removed_kinds

    # --- graph changes ---

    def _process_graph_change(self, change: Change[PartialObjectMetadata]) -> None:  # hot
        if change.kind.api_version in _DEFINITIONS:
            self._process_definition_change(change)
        metadata = change.new_metadata
        if metadata is None:
            before = change.old_metadata
            if before is not None:
                self._object_deleted(before.uid)
            return
        self._enqueue(self.graph.add_or_update(_reference(change.kind, metadata), metadata))
        self._report_invalid_namespaces()

    def _object_deleted(self, uid: str) -> None:
        node = self.graph.nodes.get(uid)
        if node is not None and node.dependents:
            self._add_absent_owner(node.ref)
        self._enqueue(self.graph.remove(uid))

    def _enqueue(self, items: Sequence[WorkItem]) -> None:
        for item in items:
            self._queue.add(item)

    def _add_absent_owner(self, ref: ObjectReference) -> None:
        self._absent_owners[ref.coordinates] = None
        if len(self._absent_owners) > _MAX_ABSENT_OWNERS:
            self._absent_owners.popitem(last=False)

    def _report_invalid_namespaces(self) -> None:
        for child, owner in self.graph.invalid_namespace_references:
            kind = next(
                (kind for kind in self._monitors if (kind.api_version, kind.kind) == (child.api_version, child.kind)),
                None,
            )
            if kind is not None:
                regarding = kind(metadata=ObjectMeta(name=child.name, namespace=child.namespace, uid=child.uid))
                note = f'ownerRef {owner} does not exist in namespace "{child.namespace}"'
                self._recorder.record(regarding, "OwnerRefInvalidNamespace", note, type="Warning", action="Collect")
        self.graph.invalid_namespace_references.clear()

    # --- workers ---

    async def _run_worker(self) -> None:
        while (item := await self._queue.get()) is not None:
            action, uid = item.key
            try:
                finished = await (self._attempt_to_delete(uid) if action == "delete" else self._attempt_to_orphan(uid))
                if finished:
                    self._queue.forget(item.key)
                else:
                    self._queue.add_rate_limited(item.key)
            except (NotFound, Conflict):
                self._queue.add_rate_limited(item.key)  # the object changed meanwhile: retry
            except (KubewrightError, TimeoutError) as error:
                _log.info(
                    "an object could not be collected; it is retried", object=str(self._describe(uid)), error=str(error)
                )
                self._queue.add_rate_limited(item.key)
            finally:
                self._queue.done(item.key)

    def _describe(self, uid: str) -> str:
        node = self.graph.nodes.get(uid)
        return uid if node is None else str(node.ref)

    async def _attempt_to_delete(self, uid: str) -> bool:
        """attemptToDeleteItem of upstream: delete an object whose owners are gone; whether the item is finished."""
        node = self.graph.nodes.get(uid)
        if node is None or (node.being_deleted and not node.deleting_dependents):
            return True
        if not (node.owners or node.virtual or node.deleting_dependents):
            return True
        ref = node.ref
        latest: PartialObjectMetadata | None = None
        if not self._is_removed_kind(ref.api_version, ref.kind):
            kind = await self._find_kind(ref.api_version, ref.kind)
            if kind.__definition__.namespaced and not ref.namespace:
                return True  # a cluster-scoped child cannot have a namespaced owner, whose namespace is unknown
            latest = await self._get_live(kind, ref)
            if not kind.__definition__.namespaced:
                ref = msgspec.structs.replace(ref, namespace="")
        if latest is None or latest.metadata.uid != uid:
            self._add_absent_owner(ref)
            self._enqueue(self.graph.owner_absent(ref))
            return uid not in self.graph.nodes
        if node.deleting_dependents:
            await self._process_deleting_dependents(node, latest)
        elif latest.metadata.owner_references:
            await self._process_owner_references(node, latest)
        return not node.virtual

    async def _process_owner_references(self, node: GraphNode, latest: PartialObjectMetadata) -> None:
        """Delete the object if no owner is solid; else remove the references to other owners (classifyReferences)."""
        solid: list[OwnerReference] = []
        dangling: list[OwnerReference] = []
        waiting_for_dependents: list[OwnerReference] = []
        for reference in latest.metadata.owner_references:
            try:
                owner = await self._get_live_owner(node.ref, reference)
            except _InvalidOwnerScope:
                return  # a namespaced owner cannot own a cluster-scoped object: keep the object
            if owner is None:
                dangling.append(reference)
            elif owner.metadata.deletion_timestamp is not None and FOREGROUND in owner.metadata.finalizers:
                waiting_for_dependents.append(reference)
            else:
                solid.append(reference)
        if solid:
            if dangling or waiting_for_dependents:
                await self._patch_owner_references(latest, solid)
            return
        if waiting_for_dependents and node.dependents:
            # An owner waits for this object, which has dependents of its own. If one of those waits for its dependents
            # too, the references may form a circle of foreground deletions: unblock it, as upstream.
            if any(dependent.deleting_dependents for dependent in node.dependents.values()):
                await self._unblock_owner_references(latest)
            await self._delete(latest, "Foreground")
            return
        finalizers = latest.metadata.finalizers
        policy: Propagation = "Background"
        if ORPHAN in finalizers:
            policy = "Orphan"
        elif FOREGROUND in finalizers:
            policy = "Foreground"
        await self._delete(latest, policy)

    async def _get_live_owner(self, child: ObjectReference, reference: OwnerReference) -> PartialObjectMetadata | None:
        """The owner from the server; None if it does not exist."""
        if self._is_removed_kind(reference.api_version, reference.kind):
            return None
        group = GroupVersion.parse(reference.api_version).group
        for namespace in {"", child.namespace}:  # before discovery: its kind may be deleted too
            if (group, reference.kind, namespace, reference.name, reference.uid) in self._absent_owners:
                return None
        kind = await self._find_kind(reference.api_version, reference.kind)
        namespaced = kind.__definition__.namespaced
        if namespaced and not child.namespace:
            raise _InvalidOwnerScope
        ref = ObjectReference(
            reference.api_version, reference.kind, child.namespace if namespaced else "", reference.name, reference.uid
        )
        owner = await self._get_live(kind, ref)
        if owner is None or owner.metadata.uid != reference.uid:
            self._add_absent_owner(ref)
            return None
        return owner

    async def _process_deleting_dependents(self, node: GraphNode, latest: PartialObjectMetadata) -> None:
        blocking_dependents = list(node.blocking_dependents())
        for dependent in blocking_dependents:
            if not dependent.deleting_dependents:
                self._queue.add(("delete", dependent.ref.uid))
        if not blocking_dependents:
            await self._remove_finalizer(latest, FOREGROUND)

    async def _attempt_to_orphan(self, uid: str) -> bool:
        """Remove the owner from the references of its dependents, then remove its finalizer `orphan`."""
        node = self.graph.nodes.get(uid)
        if node is None:
            return True
        for dependent in list(node.dependents.values()):
            child = await self._get_live(
                await self._find_kind(dependent.ref.api_version, dependent.ref.kind), dependent.ref
            )
            if child is not None and child.metadata.uid == dependent.ref.uid:
                remaining = [item for item in child.metadata.owner_references if item.uid != uid]
                await self._patch_owner_references(child, remaining)
        owner = await self._get_live(await self._find_kind(node.ref.api_version, node.ref.kind), node.ref)
        if owner is not None and owner.metadata.uid == uid:
            await self._remove_finalizer(owner, ORPHAN)
        return True

    # --- requests ---

    async def _find_kind(self, api_version: str, kind: str) -> Kind:
        """The metadata class of a kind; NotFound if discovery does not list it."""
        return self._metadata_class(await self._client.discovery.find(GroupVersion.parse(api_version).with_kind(kind)))

    async def _get_live(self, kind: Kind, ref: ObjectReference) -> PartialObjectMetadata | None:
        namespace = ref.namespace if kind.__definition__.namespaced else ""
        if kind.__definition__.namespaced and not namespace:
            return None
        try:
            return await self._client.get(kind, ObjectKey(namespace, ref.name))
        except NotFound:
            return None

    async def _delete(self, latest: PartialObjectMetadata, policy: Propagation) -> None:
        kind, metadata = type(latest), latest.metadata
        try:
            await self._client.delete(
                kind, latest.key, uid=metadata.uid, resource_version=metadata.resource_version, propagation=policy
            )
        except NotFound:
            return
        except Conflict:
            # The object changed meanwhile. With the same owner references the decision stands.
            current = await self._client.get(kind, latest.key)
            if current.metadata.owner_references != metadata.owner_references:
                raise
            await self._client.delete(kind, latest.key, uid=metadata.uid, propagation=policy)

    async def _patch_owner_references(self, obj: PartialObjectMetadata, owners: Sequence[OwnerReference]) -> None:
        if list(owners) != obj.metadata.owner_references:
            await self._patch(obj, {"ownerReferences": [to_tree(owner) for owner in owners] or None})

    async def _unblock_owner_references(self, obj: PartialObjectMetadata) -> None:
        owners = [{**to_tree(owner), "blockOwnerDeletion": False} for owner in obj.metadata.owner_references]
        await self._patch(obj, {"ownerReferences": owners})
        # The patch changed the resource version: delete without that precondition.
        obj.metadata.resource_version = ""

    async def _remove_finalizer(self, obj: PartialObjectMetadata, finalizer: str) -> None:
        if finalizer in obj.metadata.finalizers:
            remaining = [item for item in obj.metadata.finalizers if item != finalizer]
            await self._patch(obj, {"finalizers": remaining or None})

    async def _patch(self, obj: PartialObjectMetadata, changes: dict[str, object]) -> None:
        preconditions = {"uid": obj.metadata.uid, "resourceVersion": obj.metadata.resource_version}
        await self._client.patch_by_name(type(obj), obj.key, {"metadata": {**preconditions, **changes}})


class _InvalidOwnerScope(Exception):
    """A cluster-scoped object refers to a namespaced owner."""


def _reference(kind: Kind, metadata: ObjectMeta) -> ObjectReference:
    return ObjectReference(kind.api_version, kind.kind, metadata.namespace, metadata.name, metadata.uid)
