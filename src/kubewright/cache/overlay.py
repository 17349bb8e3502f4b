"""WriteOverlay: the server's objects of a kind, with this process's pending writes on top.

Three things meet here: events and lists from the reflectors, the answers to this process's own writes, and the store
that readers see. Two promises hold whatever the order they arrive in:

- a reader never sees an object older than this process has written it, nor one that it has deleted;
- handlers are told of every state the server showed, in order, with the state before it. An object that was deleted and
  created again under its name is a deletion and an addition, even if only the result was seen. An object that this
  process created, and that was deleted before the watch showed it, is an addition and a deletion: readers have seen it.

client-go has no such overlay: its informers may return an object older than the last write, and controllers guard
against that with expectations (kubernetes/pkg/controller/controller_utils.go). A *pending write* is a write that the
watch has not shown yet: the store has the written object, the pending write remembers what the server has shown so far.
It is dropped when the watch reaches the written version. Pure and synchronous; `cache.informer` is the only caller.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from typing import Generic, TypeVar, final

from kubewright._base.clock import Clock
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.cache.changes import Change, ChangeType, LazyObject
from kubewright.cache.store import Entry, Store
from kubewright.cache.versions import Version, is_newer

__all__ = ("WriteOverlay",)

K = TypeVar("K", bound=KubeObject)

# How long a deletion by this process is remembered, in seconds, if the watch does not show the object. Either the watch
# has shown the deletion before the answer came, or it is behind by less than this.
_TOMBSTONE_SECONDS = 300.0


class _PendingWrite:
    """A write or deletion of this process, and what the server has shown of the object so far."""

    __slots__ = ("after", "observed", "uid", "version", "written")

    def __init__(
        self, observed: Entry | None, version: Version | None, uid: str, *, after: Version | None, written: Entry | None
    ) -> None:
        self.observed = observed
        """The object as the watch showed it last; None if the watch shows none."""
        self.version = version
        """The version written; None for a deletion, whose answer has no version."""
        self.uid = uid
        self.after = after
        """For a deletion: the newest version known then. An event that is not newer is older than the deletion."""
        self.written = written
        """What this process wrote last, if it is in scope; None once the watch has passed its version."""

    @property
    def newest(self) -> Version | None:
        """The newest version of the object that this process knows of."""
        return self.version if self.version is not None else self.after

    def is_superseded_by(self, shown: Entry) -> bool:
        """Whether the server now shows something at least as new as the write."""
        if self.version is not None:
            return not is_newer(self.version, shown.version) or isinstance(shown.version, str)
        return shown.uid != self.uid and (self.after is None or is_newer(shown.version, self.after))


@final
class WriteOverlay(Generic[K]):
    """The one writer of a store."""

    def __init__(self, store: Store[K], *, clock: Clock, by_namespace: bool = False) -> None:
        """`by_namespace` says that each namespace has a watch, and so a progress, of its own."""
        self.store = store
        self._clock = clock
        self._by_namespace = by_namespace
        self._progress: dict[str, Version] = {}
        self._pending: dict[ObjectKey, _PendingWrite] = {}
        self._own_versions: dict[ObjectKey, set[Version]] = {}
        # Own writes by version, for each watch: when the watch reaches a version, all up to there are confirmed.
        self._unconfirmed: dict[str, list[tuple[int, ObjectKey]]] = {}
        self._tombstones: deque[tuple[float, ObjectKey, _PendingWrite]] = deque()
        # Own writes of a history that the server was rolled back from, until a list tells what became of them.
        self._rolled_back: dict[ObjectKey, Entry] = {}

    # --- from the server ---

    def observe(self, key: ObjectKey, entry: Entry, *, initial: bool = False) -> tuple[Change[K], ...]:  # hot
        """The watch shows an object: ADDED or MODIFIED."""
        pending = self._pending.get(key) if self._pending else None
        old = self.store.entry(key) if pending is None else pending.observed
        if old is not None and not is_newer(entry.version, old.version):
            return ()  # seen before: a watch that was resumed from an older version
        own = self._is_own(key, entry.version) if self._own_versions else False
        if pending is None:
            self.store.put(key, entry)
        else:
            self._observe_under(key, pending, entry)
        if old is None:
            return (self._change("added", key, None, entry, own, initial),)
        if old.uid == entry.uid:
            return (self._change("updated", key, old, entry, own, initial),)
        # Another uid: the object was deleted and created again while nobody watched. client-go reports an update here,
        # and each handler that keeps something per object has to compare the uids itself.
        deleted = self._change("deleted", key, old, None, False, initial, final_state_unknown=True)
        return (deleted, self._change("added", key, None, entry, own, initial))

    def observe_deletion(self, key: ObjectKey, last: Entry) -> tuple[Change[K], ...]:
        """The watch shows a deletion: `last` is the object's last state, with the version of the deletion."""
        pending = self._pending.get(key)
        old = self.store.entry(key) if pending is None else pending.observed
        same = old is None or old.uid == last.uid
        if old is not None and not same and not is_newer(last.version, old.version):
            return ()  # the deletion of an earlier object of this name, seen before
        if pending is None:
            self.store.remove(key)
        else:
            pending.observed = None
            if pending.uid == last.uid and (pending.version is None or pending.is_superseded_by(last)):
                self._drop(key, pending)
        if old is None:
            return ()
        return (self._change("deleted", key, last if same else old, None, False, False, final_state_unknown=not same),)

    def replace(
        self, namespace: str, items: Mapping[ObjectKey, Entry], version: Version, *, initial: bool = False
    ) -> Iterator[Change[K]]:
        """A list shows everything there is, in one namespace or (if empty) in all. Yields deletions first.

        What the store has and the list has not was deleted while nobody watched. Handlers are told so with the last
        known state, as client-go does with DeletedFinalStateUnknown (tools/cache/delta_fifo.go, Replace). Changes are
        made as they are taken from the iterator: take them all.
        """
        unobserved = self._never_observed(namespace, items, version)
        for key, old in self._observed_entries(namespace):
            new = items.get(key)
            if new is None or new.uid != old.uid:
                yield self._delete_unlisted(key, old, version)
        for key, created in unobserved:
            own, pending = self._is_own(key, created.version), self._pending.get(key)
            if pending is not None and (pending.newest is None or not is_newer(pending.newest, version)):
                self._drop(key, pending)
            yield self._change("added", key, None, created, own, initial)
            yield self._change("deleted", key, created, None, False, False, final_state_unknown=True)
        for key, entry in items.items():
            pending = self._pending.get(key) if self._pending else None
            shown = self.store.entry(key) if pending is None else pending.observed
            if shown is not None and shown.version == entry.version:
                continue
            own = self._is_own(key, entry.version) if self._own_versions else False
            if pending is None:
                self.store.put(key, entry)
            else:
                self._observe_under(key, pending, entry)
            yield self._change("added" if shown is None else "updated", key, shown, entry, own, initial)
        self.advance(namespace, version)

    def advance(self, namespace: str, version: Version) -> None:  # hot
        """The watch has shown everything up to a version: drop the pending writes up to there."""
        self._progress[namespace] = version
        if not self._unconfirmed or not isinstance(version, int):
            return
        unconfirmed = self._unconfirmed.get(namespace)
        while unconfirmed and unconfirmed[0][0] <= version:
            _, key = heappop(unconfirmed)
            self._confirm(key, version)
        if unconfirmed is not None and not unconfirmed:
            del self._unconfirmed[namespace]

    def roll_back(self) -> None:
        """The server's history went back, as after a restore of etcd: what was written may never have been.

        Readers see what the server shows. A list that follows decides what became of the writes.
        """
        for key, pending in tuple(self._pending.items()):
            if pending.written is not None:
                self._rolled_back[key] = pending.written
            self._drop(key, pending)
        self._own_versions.clear()
        self._unconfirmed.clear()
        self._progress.clear()

    # --- from this process ---

    def record_write(self, key: ObjectKey, entry: Entry, *, belongs: bool = True, own: bool = True) -> None:
        """This process has written an object; `belongs` says whether it is in scope after that.

        The watch may be ahead of the answer, and answers may overtake each other. Only an answer that is newer than
        everything known of the object becomes a pending write.
        """
        self._expire_tombstones()
        watch = self._watch_of(key)
        reached = self._progress.get(watch)
        if isinstance(reached, int) and isinstance(entry.version, int) and entry.version <= reached:
            return  # the watch was faster than the answer
        pending = self._pending.get(key)
        observed = self.store.entry(key) if pending is None else pending.observed
        if observed is not None and not is_newer(entry.version, observed.version):
            return
        if own:
            self._own_versions.setdefault(key, set()).add(entry.version)
        if isinstance(entry.version, int):
            heappush(self._unconfirmed.setdefault(watch, []), (entry.version, key))
        if pending is not None:
            if pending.version is None and pending.uid == entry.uid:
                return  # written and deleted at once, and the answer to the write came last
            if pending.newest is not None and not is_newer(entry.version, pending.newest):
                return  # a later answer has overtaken this one
        written = entry if belongs else None
        self._pending[key] = _PendingWrite(observed, entry.version, entry.uid, after=None, written=written)
        if belongs:
            self.store.put(key, entry)
        else:
            self.store.remove(key)

    def record_deletion(self, key: ObjectKey, uid: str, version: Version | None = None) -> None:
        """This process has deleted an object, last known at a version, and nothing is left of it."""
        self._expire_tombstones()
        pending = self._pending.get(key)
        observed = self.store.entry(key) if pending is None else pending.observed
        current = self.store.entry(key)
        newest: Version | None = None
        newest_uid = ""
        if current is not None:
            newest, newest_uid = current.version, current.uid
        elif pending is not None:
            newest, newest_uid = pending.newest, pending.uid
        after = version
        if newest is not None and (after is None or is_newer(newest, after)):
            if newest_uid != uid and (current is not None or after is not None):
                return  # the deletion of an earlier object of this name, as far as can be told
            after = newest
        written = pending.written if pending is not None and pending.uid == uid else None
        deletion = self._pending[key] = _PendingWrite(observed, None, uid, after=after, written=written)
        self.store.remove(key)
        if observed is None:
            # A deletion has no version that the watch could reach, and the watch may never show this object. So that it
            # is not kept for ever, it ends with time.
            self._tombstones.append((self._clock.monotonic() + _TOMBSTONE_SECONDS, key, deletion))

    @property
    def pending_count(self) -> int:
        """How many own writes the watch has not shown yet."""
        return len(self._pending)

    # --- inside ---

    def _watch_of(self, key: ObjectKey) -> str:
        return key.namespace if self._by_namespace else ""

    def _observe_under(self, key: ObjectKey, pending: _PendingWrite, entry: Entry) -> None:
        """The watch shows an object with a pending write: readers see it only if it is at least as new."""
        if pending.is_superseded_by(entry):
            del self._pending[key]
            self.store.put(key, entry)
        else:
            pending.observed = entry

    def _drop(self, key: ObjectKey, pending: _PendingWrite) -> None:
        """End a pending write: readers see what the server shows."""
        self._pending.pop(key, None)
        if pending.observed is None:
            self.store.remove(key)
        else:
            self.store.put(key, pending.observed)

    def _confirm(self, key: ObjectKey, version: int) -> None:
        """The watch has reached a version at which this process wrote the object."""
        own = self._own_versions.get(key)
        if own is not None:
            own = {written for written in own if isinstance(written, int) and written > version}
            if own:
                self._own_versions[key] = own
            else:
                del self._own_versions[key]
        pending = self._pending.get(key)
        if pending is not None and pending.written is not None and not is_newer(pending.written.version, version):
            pending.written = None
        # The watch has passed the version without showing it: the object is not in scope, or a later write took it
        # out of scope.
        if pending is not None and isinstance(pending.version, int) and pending.version <= version:
            self._drop(key, pending)

    def _delete_unlisted(self, key: ObjectKey, old: Entry, version: Version) -> Change[K]:
        """The change for an object that the store has and a list of this version has not."""
        pending = self._pending.get(key)
        if pending is None:
            self.store.remove(key)
        else:
            pending.observed = None
            # The list confirms a deletion here; `advance` confirms a written version when all of the list is in.
            if pending.version is None and (pending.after is None or is_newer(version, pending.after)):
                self._drop(key, pending)
        return self._change("deleted", key, old, None, False, False, final_state_unknown=True)

    def _observed_entries(self, namespace: str) -> Iterator[tuple[ObjectKey, Entry]]:
        """What the server has shown so far. The keys are copied first, since the store changes meanwhile."""
        for key in tuple(self.store.keys(namespace or None)):
            if key not in self._pending:
                entry = self.store.entry(key)
                if entry is not None:
                    yield key, entry
        for key, pending in tuple(self._pending.items()):
            if pending.observed is not None and (not namespace or key.namespace == namespace):
                yield key, pending.observed

    def _never_observed(
        self, namespace: str, items: Mapping[ObjectKey, Entry], version: Version
    ) -> list[tuple[ObjectKey, Entry]]:
        """Objects that this process wrote, no watch showed and a later list has not: they were deleted since."""
        candidates = {
            key: entry for key, entry in self._rolled_back.items() if not namespace or key.namespace == namespace
        }
        for key in candidates:
            del self._rolled_back[key]
        for key, pending in self._pending.items():
            written = pending.written
            if written is None or is_newer(written.version, version) or (namespace and key.namespace != namespace):
                continue
            pending.written = None
            candidates[key] = written
        return [
            (key, entry)
            for key, entry in candidates.items()
            if not (self._has_observed(key, entry) or _has(items, key, entry))
        ]

    def _has_observed(self, key: ObjectKey, entry: Entry) -> bool:
        pending = self._pending.get(key)
        shown = self.store.entry(key) if pending is None else pending.observed
        return shown is not None and shown.uid == entry.uid

    def _is_own(self, key: ObjectKey, version: Version) -> bool:
        versions = self._own_versions.get(key)
        if versions is None or version not in versions:
            return False
        if isinstance(version, str):  # `advance` cannot confirm it: such versions have no order
            del self._own_versions[key]
        return True

    def _expire_tombstones(self) -> None:
        now = self._clock.monotonic()
        while self._tombstones and self._tombstones[0][0] <= now:
            _, key, pending = self._tombstones.popleft()
            if self._pending.get(key) is not pending or pending.observed is not None:
                continue  # the watch has shown the object since, so it will show its deletion
            if pending.written is None:
                self._drop(key, pending)
            else:  # this process created the object, and handlers have not heard of it yet
                self._tombstones.append((now + _TOMBSTONE_SECONDS, key, pending))

    def _change(
        self,
        type_: ChangeType,
        key: ObjectKey,
        old: Entry | None,
        new: Entry | None,
        own: bool,
        initial: bool,
        *,
        final_state_unknown: bool = False,
    ) -> Change[K]:  # hot
        decode = self.store.decode
        return Change(
            type=type_,
            key=key,
            kind=self.store.kind,
            before=None if old is None else LazyObject(key, old, decode),
            after=None if new is None else LazyObject(key, new, decode),
            initial=initial,
            own=own,
            final_state_unknown=final_state_unknown,
        )


def _has(items: Mapping[ObjectKey, Entry], key: ObjectKey, entry: Entry) -> bool:
    listed = items.get(key)
    return listed is not None and listed.uid == entry.uid
