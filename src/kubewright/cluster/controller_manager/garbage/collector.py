"""The garbage collector: deletes what has lost its last owner, and lets owners wait for, or let go of, their children.

It watches the metadata of every kind the server lists and deletes, and looks for new kinds when definitions change.
What is to be looked at comes from the graph (`ownership`); before anything is deleted, the server itself is asked about
the object and about each owner, and the deletion names uid and version, so a graph that lags behind costs a request and
never an object. The rules are those of kube-controller-manager, background, foreground and orphan. Registered by
`housekeeping_controllers`.
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
from kubewright.cluster.controller_manager.garbage.graph import FOREGROUND, ORPHAN, Graph, Member, Ref, Work
from kubewright.cluster.controller_manager.garbage.resources import class_of, collectable
from kubewright.controllers.event_recorder import EventRecorder
from kubewright.errors import ApiError, Conflict, KubewrightError, NotFound, TransportError
from kubewright.workqueue.queue import WorkQueue
from kubewright.workqueue.rate_limiters import ExponentialFailureRateLimiter

__all__ = ("GarbageCollector",)

_DEFINITIONS: Final = ("apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1")
"""Where kinds are defined: CustomResourceDefinition and APIService."""
_RESCANS: Final = (0.05, 0.3, 1.0, 3.0)
"""Seconds after a definition changed: a server needs a moment to serve, or to stop serving, what it defines."""
_REGULARLY: Final = 30.0
"""Seconds between looks for new kinds all the same, as a busy server may need longer."""
_REMEMBERED: Final = 10_000
_LOOK_AGAIN: Final = 0.5

_log = Logger("kubewright.cluster.garbage")

Kind = type[PartialObjectMetadata]


@final
class GarbageCollector:
    """One for a cluster. A runnable that nobody has to wait for: what went while it started is found all the same."""

    name = "garbage-collector-controller"

    def __init__(self, client: Client, *, workers: int = 10, clock: Clock | None = None) -> None:
        self.graph = Graph()
        self._client = client
        self._clock = clock or SystemClock()
        self._workers = workers
        self._cache = Cache(client, default_scope=Scope(resync=0), clock=self._clock)
        self._queue: WorkQueue[Work] = WorkQueue(limiter=ExponentialFailureRateLimiter(), clock=self._clock)
        self._recorder = EventRecorder(client, controller=self.name, clock=self._clock)
        self._watched: dict[Kind, tuple[Informer[PartialObjectMetadata], Subscription[PartialObjectMetadata]]] = {}
        self._absent: OrderedDict[tuple[str, ...], None] = OrderedDict()
        """Owners that are known to be gone, by their coordinates: a child may name a living one by wrong ones."""
        self._kinds: dict[str, tuple[str, str]] = {}
        """Group and kind of everything ever met, by plural and group, which is how definitions are named."""
        self._removed: set[tuple[str, str]] = set()
        """Kinds whose definition was seen to go: all their objects went with it."""
        self._definitions_changed = asyncio.Event()

    async def run(self) -> None:
        """Collect until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.run(), name="garbage collector cache")
            group.create_task(self._recorder.run(), name="garbage collector events")
            await self._scan_until_it_works()
            await self._in_sync()
            for number in range(self._workers):
                group.create_task(self._work(), name=f"garbage collector {number}")
            group.create_task(self._follow_definitions(), name="garbage collector kinds")

    # --- which kinds ---

    async def _scan_until_it_works(self) -> None:
        while True:
            try:
                await self._scan()
                return
            except (ApiError, TransportError) as error:
                _log.warning("the kinds of the server are not known yet", error=str(error))
                await self._clock.sleep(1.0)

    async def _scan(self) -> None:
        """Watch every kind there is, and no other."""
        resource_list = await self._client.discovery.resources(refresh=True)
        wanted = {self._class_of(resource) for resource in collectable(resource_list)}
        for kind in [kind for kind in self._watched if kind not in wanted]:
            informer, subscription = self._watched.pop(kind)
            subscription.close()
            self._cache.release(informer)
            for uid in self.graph.of_kind(kind.api_version, kind.kind):
                # The kind may be back soon, such as when its API server restarts: nothing is known to be gone.
                self._queue_all(self.graph.lost_sight(uid))
        for kind in wanted - self._watched.keys():
            informer = self._cache.informer(kind)
            self._watched[kind] = (informer, informer.subscribe(self._changed))

    async def _in_sync(self) -> None:
        """Every kind has been listed, but for those that cannot be: they must not stop the others."""
        waits = [asyncio.create_task(informer.wait_for_sync()) for informer, _ in self._watched.values()]
        try:
            left = set(waits)
            while left:
                _, left = await asyncio.wait(left, timeout=_LOOK_AGAIN)
                late = [informer for informer, _ in self._watched.values() if not informer.synced]
                if all(informer.problem is not None for informer in late):
                    return
        finally:
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _follow_definitions(self) -> None:
        while True:
            with suppress(TimeoutError):
                await within(self._definitions_changed.wait(), _REGULARLY, clock=self._clock)
            delays = _RESCANS if self._definitions_changed.is_set() else (0.0,)
            self._definitions_changed.clear()
            for delay in delays:
                await self._clock.sleep(delay)
                try:
                    await self._scan()
                except (ApiError, TransportError) as error:
                    _log.warning("new kinds could not be looked for", error=str(error))
                if self._definitions_changed.is_set():
                    break

    def _definition_changed(self, change: Change[PartialObjectMetadata]) -> None:
        """One has come, gone or changed; those that were there from the start are news if their kind is not known."""
        if change.kind.kind == "CustomResourceDefinition":
            known = self._kinds.get(change.key.name)
            if known is not None and change.type == "deleted":
                self._removed.add(known)
            elif known is not None:
                self._removed.discard(known)
                if change.initial:
                    return
        elif change.initial:
            return
        self._definitions_changed.set()

    def _class_of(self, resource: ApiResource) -> Kind:
        group = resource.gvr.group
        self._kinds[f"{resource.gvr.resource}.{group}"] = (group, resource.gvk.kind)
        return class_of(resource)

    def _is_removed(self, api_version: str, kind: str) -> bool:
        return (GroupVersion.parse(api_version).group, kind) in self._removed

    # --- what happens ---

    def _changed(self, change: Change[PartialObjectMetadata]) -> None:  # hot
        if change.kind.api_version in _DEFINITIONS:
            self._definition_changed(change)
        metadata = change.new_metadata
        if metadata is None:
            before = change.old_metadata
            if before is not None:
                self._went(before.uid)
            return
        self._queue_all(self.graph.observe(_ref(change.kind, metadata), metadata))
        self._report_misplaced()

    def _went(self, uid: str) -> None:
        member = self.graph.members.get(uid)
        if member is not None and member.dependents:
            self._remember_absent(member.ref)
        self._queue_all(self.graph.gone(uid))

    def _queue_all(self, work: Sequence[Work]) -> None:
        for item in work:
            self._queue.add(item)

    def _remember_absent(self, ref: Ref) -> None:
        self._absent[ref.place] = None
        if len(self._absent) > _REMEMBERED:
            self._absent.popitem(last=False)

    def _report_misplaced(self) -> None:
        for child, owner in self.graph.misplaced:
            kind = next(
                (kind for kind in self._watched if (kind.api_version, kind.kind) == (child.api_version, child.kind)),
                None,
            )
            if kind is not None:
                regarding = kind(metadata=ObjectMeta(name=child.name, namespace=child.namespace, uid=child.uid))
                note = f'ownerRef {owner} does not exist in namespace "{child.namespace}"'
                self._recorder.record(regarding, "OwnerRefInvalidNamespace", note, type="Warning", action="Collect")
        self.graph.misplaced.clear()

    # --- work ---

    async def _work(self) -> None:
        while (item := await self._queue.get()) is not None:
            what, uid = item.key
            try:
                settled = await (self._look(uid) if what == "delete" else self._orphan(uid))
                if settled:
                    self._queue.forget(item.key)
                else:
                    self._queue.add_rate_limited(item.key)
            except (NotFound, Conflict):
                self._queue.add_rate_limited(item.key)  # somebody was faster; look once more
            except (KubewrightError, TimeoutError) as error:
                _log.info("to be collected later", object=str(self._name(uid)), error=str(error))
                self._queue.add_rate_limited(item.key)
            finally:
                self._queue.done(item.key)

    def _name(self, uid: str) -> str:
        member = self.graph.members.get(uid)
        return uid if member is None else str(member.ref)

    async def _look(self, uid: str) -> bool:
        """Delete an object if it has lost its owners; whether there is nothing more to find out."""
        member = self.graph.members.get(uid)
        if member is None or (member.leaving and not member.foreground):
            return True
        if not (member.owners or member.virtual or member.foreground):
            return True
        ref = member.ref
        latest: PartialObjectMetadata | None = None
        if not self._is_removed(ref.api_version, ref.kind):
            kind = await self._kind(ref.api_version, ref.kind)
            if kind.__definition__.namespaced and not ref.namespace:
                return True  # named by what is in no namespace: it cannot own that, and nobody knows where it is
            latest = await self._find(kind, ref)
            if not kind.__definition__.namespaced:
                ref = msgspec.structs.replace(ref, namespace="")
        if latest is None or latest.metadata.uid != uid:
            self._remember_absent(ref)
            self._queue_all(self.graph.never_was(ref))
            return uid not in self.graph.members
        if member.foreground:
            await self._wait_for_dependents(member, latest)
        elif latest.metadata.owner_references:
            await self._judge(member, latest)
        return not member.virtual

    async def _judge(self, member: Member, latest: PartialObjectMetadata) -> None:
        solid: list[OwnerReference] = []
        lost: list[OwnerReference] = []
        waiting: list[OwnerReference] = []
        for reference in latest.metadata.owner_references:
            try:
                owner = await self._owner(member.ref, reference)
            except _Undecidable:
                return  # an owner in a namespace cannot own what is in none: leave it alone
            if owner is None:
                lost.append(reference)
            elif owner.metadata.deletion_timestamp is not None and FOREGROUND in owner.metadata.finalizers:
                waiting.append(reference)
            else:
                solid.append(reference)
        if solid:
            if lost or waiting:
                await self._set_owners(latest, [item for item in latest.metadata.owner_references if item in solid])
            return
        if waiting and member.dependents:
            if any(dependent.foreground for dependent in member.dependents.values()):
                await self._unblock(latest)
            await self._delete(latest, "Foreground")
            return
        finalizers = latest.metadata.finalizers
        policy: Propagation = "Background"
        if ORPHAN in finalizers:
            policy = "Orphan"
        elif FOREGROUND in finalizers:
            policy = "Foreground"
        await self._delete(latest, policy)

    async def _owner(self, child: Ref, reference: OwnerReference) -> PartialObjectMetadata | None:
        """The owner as it is now, None if it is gone."""
        if self._is_removed(reference.api_version, reference.kind):
            return None
        group = GroupVersion.parse(reference.api_version).group
        for namespace in {"", child.namespace}:  # its kind may be gone with it, so that is not asked for first
            if (group, reference.kind, namespace, reference.name, reference.uid) in self._absent:
                return None
        kind = await self._kind(reference.api_version, reference.kind)
        namespaced = kind.__definition__.namespaced
        if namespaced and not child.namespace:
            raise _Undecidable
        ref = Ref(
            reference.api_version, reference.kind, child.namespace if namespaced else "", reference.name, reference.uid
        )
        owner = await self._find(kind, ref)
        if owner is None or owner.metadata.uid != reference.uid:
            self._remember_absent(ref)
            return None
        return owner

    async def _wait_for_dependents(self, member: Member, latest: PartialObjectMetadata) -> None:
        blocking = list(member.blocking())
        for dependent in blocking:
            if not dependent.foreground:
                self._queue.add(("delete", dependent.ref.uid))
        if not blocking:
            await self._remove_finalizer(latest, FOREGROUND)

    async def _orphan(self, uid: str) -> bool:
        """Take an owner out of its children's references, then let it go."""
        member = self.graph.members.get(uid)
        if member is None:
            return True
        for dependent in list(member.dependents.values()):
            child = await self._find(await self._kind(dependent.ref.api_version, dependent.ref.kind), dependent.ref)
            if child is not None and child.metadata.uid == dependent.ref.uid:
                kept = [item for item in child.metadata.owner_references if item.uid != uid]
                await self._set_owners(child, kept)
        owner = await self._find(await self._kind(member.ref.api_version, member.ref.kind), member.ref)
        if owner is not None and owner.metadata.uid == uid:
            await self._remove_finalizer(owner, ORPHAN)
        return True

    # --- requests ---

    async def _kind(self, api_version: str, kind: str) -> Kind:
        """The class of a kind; NotFound if the server does not have it, or not yet."""
        return self._class_of(await self._client.discovery.find(GroupVersion.parse(api_version).with_kind(kind)))

    async def _find(self, kind: Kind, ref: Ref) -> PartialObjectMetadata | None:
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
            # Written meanwhile. If its owners are the same, so is the verdict.
            present = await self._client.get(kind, latest.key)
            if present.metadata.owner_references != metadata.owner_references:
                raise
            await self._client.delete(kind, latest.key, uid=metadata.uid, propagation=policy)

    async def _set_owners(self, obj: PartialObjectMetadata, owners: Sequence[OwnerReference]) -> None:
        if list(owners) != obj.metadata.owner_references:
            await self._patch(obj, {"ownerReferences": [to_tree(owner) for owner in owners] or None})

    async def _unblock(self, obj: PartialObjectMetadata) -> None:
        owners = [{**to_tree(owner), "blockOwnerDeletion": False} for owner in obj.metadata.owner_references]
        await self._patch(obj, {"ownerReferences": owners})
        # What is deleted next has another version now.
        obj.metadata.resource_version = ""

    async def _remove_finalizer(self, obj: PartialObjectMetadata, finalizer: str) -> None:
        if finalizer in obj.metadata.finalizers:
            kept = [item for item in obj.metadata.finalizers if item != finalizer]
            await self._patch(obj, {"finalizers": kept or None})

    async def _patch(self, obj: PartialObjectMetadata, changes: dict[str, object]) -> None:
        guard = {"uid": obj.metadata.uid, "resourceVersion": obj.metadata.resource_version}
        await self._client.patch_by_name(type(obj), obj.key, {"metadata": {**guard, **changes}})


class _Undecidable(Exception):
    """Nobody can say whether an owner is there."""


def _ref(kind: Kind, metadata: ObjectMeta) -> Ref:
    return Ref(kind.api_version, kind.kind, metadata.namespace, metadata.name, metadata.uid)
