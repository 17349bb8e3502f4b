"""View: what the server has shown of a kind, with this process's own writes on top.

Three things come together here: events and lists from the server, answers to this process's own writes, and the store
that readers see. Two promises hold whatever the order they come in:

- a reader never sees an object older than this process has written it, nor one it has deleted;
- handlers are told of every state the server showed, in order, with the state before it. An object that was deleted and
  made again under its name is a deletion and an addition, even if only the result was seen. One that this process made
  and that was gone before the watch showed it is an addition and a deletion: readers have seen it.

An own write that the watch has not shown yet is a *shadow*: the store has the written object, the shadow remembers what
the server has shown so far. It ends when the watch reaches the written version. Pure and synchronous; `cache.informer`
is the only caller.
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

# How long a deletion is remembered of an object the watch does not show: either it has shown the deletion already, or
# it is behind by less than this.
_FADES_AFTER = 300.0


class _PendingWrite:
    """What the server has shown of an object that this process has written or deleted since."""

    __slots__ = ("after", "observed", "uid", "version", "written")

    def __init__(
        self, observed: Entry | None, version: Version | None, uid: str, *, after: Version | None, written: Entry | None
    ) -> None:
        self.observed = observed
        self.version = version
        """The version written; None if the object was deleted, which tells no version."""
        self.uid = uid
        self.after = after
        """For a deletion: the newest version known then. Whatever is not newer is the past."""
        self.written = written
        """What this process wrote last, if it is in scope; None once the watch has passed it."""

    @property
    def known(self) -> Version | None:
        """The newest version this process knows of."""
        return self.version if self.version is not None else self.after

    def ended_by(self, shown: Entry) -> bool:
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
        self._shadows: dict[ObjectKey, _PendingWrite] = {}
        self._own: dict[ObjectKey, set[Version]] = {}
        # Own writes by version, for each watch: as it reaches a version, all up to there are settled.
        self._due: dict[str, list[tuple[int, ObjectKey]]] = {}
        self._fading: deque[tuple[float, ObjectKey, _PendingWrite]] = deque()
        # Own writes of a history that the server has gone back from, until a list tells what became of them.
        self._undone: dict[ObjectKey, Entry] = {}

    # --- from the server ---

    def show(self, key: ObjectKey, entry: Entry, *, initial: bool = False) -> tuple[Change[K], ...]:  # hot
        """The server shows an object, added or updated."""
        shadow = self._shadows.get(key) if self._shadows else None
        old = self.store.entry(key) if shadow is None else shadow.observed
        if old is not None and not is_newer(entry.version, old.version):
            return ()  # seen before: a watch that was resumed from an older version
        own = self._is_own(key, entry.version) if self._own else False
        if shadow is None:
            self.store.put(key, entry)
        else:
            self._show_under(key, shadow, entry)
        if old is None:
            return (self._change("added", key, None, entry, own, initial),)
        if old.uid == entry.uid:
            return (self._change("updated", key, old, entry, own, initial),)
        gone = self._change("deleted", key, old, None, False, initial, uncertain=True)
        return (gone, self._change("added", key, None, entry, own, initial))

    def hide(self, key: ObjectKey, last: Entry) -> tuple[Change[K], ...]:
        """The server says that an object is gone; `last` is its last state, with the version of the deletion."""
        shadow = self._shadows.get(key)
        old = self.store.entry(key) if shadow is None else shadow.observed
        same = old is None or old.uid == last.uid
        if old is not None and not same and not is_newer(last.version, old.version):
            return ()  # the end of an earlier object of this name, seen before
        if shadow is None:
            self.store.remove(key)
        else:
            shadow.observed = None
            if shadow.uid == last.uid and (shadow.version is None or shadow.ended_by(last)):
                self._end(key, shadow)
        if old is None:
            return ()
        return (self._change("deleted", key, last if same else old, None, False, False, uncertain=not same),)

    def replace(
        self, namespace: str, items: Mapping[ObjectKey, Entry], version: Version, *, initial: bool = False
    ) -> Iterator[Change[K]]:
        """The server lists everything there is, in one namespace or (if empty) everywhere: deletions first.

        Changes are made as they are taken from the iterator: take them all.
        """
        unshown = self._unshown(namespace, items, version)
        for key, old in self._observed(namespace):
            new = items.get(key)
            if new is None or new.uid != old.uid:
                yield self._lose(key, old, version)
        for key, made in unshown:
            own, shadow = self._is_own(key, made.version), self._shadows.get(key)
            if shadow is not None and (shadow.known is None or not is_newer(shadow.known, version)):
                self._end(key, shadow)
            yield self._change("added", key, None, made, own, initial)
            yield self._change("deleted", key, made, None, False, False, uncertain=True)
        for key, entry in items.items():
            shadow = self._shadows.get(key) if self._shadows else None
            shown = self.store.entry(key) if shadow is None else shadow.observed
            if shown is not None and shown.version == entry.version:
                continue
            own = self._is_own(key, entry.version) if self._own else False
            if shadow is None:
                self.store.put(key, entry)
            else:
                self._show_under(key, shadow, entry)
            yield self._change("added" if shown is None else "updated", key, shown, entry, own, initial)
        self.reach(namespace, version)

    def reach(self, namespace: str, version: Version) -> None:  # hot
        """The watch has shown everything up to a version."""
        self._progress[namespace] = version
        if not self._due or not isinstance(version, int):
            return
        due = self._due.get(namespace)
        while due and due[0][0] <= version:
            _, key = heappop(due)
            self._settle(key, version)
        if due is not None and not due:
            del self._due[namespace]

    def forget_writes(self) -> None:
        """Show what the server shows: its history went back, so what was written may never have been."""
        for key, shadow in tuple(self._shadows.items()):
            if shadow.written is not None:
                self._undone[key] = shadow.written
            self._end(key, shadow)
        self._own.clear()
        self._due.clear()
        self._progress.clear()

    # --- from this process ---

    def wrote(self, key: ObjectKey, entry: Entry, *, belongs: bool = True, own: bool = True) -> None:
        """This process has written an object; `belongs` says whether it is in scope after that."""
        self._fade()
        feed = self._feed(key)
        reached = self._progress.get(feed)
        if isinstance(reached, int) and isinstance(entry.version, int) and entry.version <= reached:
            return  # the watch was faster than the answer
        shadow = self._shadows.get(key)
        observed = self.store.entry(key) if shadow is None else shadow.observed
        if observed is not None and not is_newer(entry.version, observed.version):
            return
        if own:
            self._own.setdefault(key, set()).add(entry.version)
        if isinstance(entry.version, int):
            heappush(self._due.setdefault(feed, []), (entry.version, key))
        if shadow is not None:
            if shadow.version is None and shadow.uid == entry.uid:
                return  # written and deleted at once, and this answer came last
            if shadow.known is not None and not is_newer(entry.version, shadow.known):
                return  # an answer that was overtaken
        written = entry if belongs else None
        self._shadows[key] = _PendingWrite(observed, entry.version, entry.uid, after=None, written=written)
        if belongs:
            self.store.put(key, entry)
        else:
            self.store.remove(key)

    def deleted(self, key: ObjectKey, uid: str, version: Version | None = None) -> None:
        """This process has deleted an object, last known at a version, and nothing is left of it."""
        self._fade()
        shadow = self._shadows.get(key)
        observed = self.store.entry(key) if shadow is None else shadow.observed
        current = self.store.entry(key)
        known: Version | None = None
        known_uid = ""
        if current is not None:
            known, known_uid = current.version, current.uid
        elif shadow is not None:
            known, known_uid = shadow.known, shadow.uid
        after = version
        if known is not None and (after is None or is_newer(known, after)):
            if known_uid != uid and (current is not None or after is not None):
                return  # about an earlier object of this name, as far as can be told
            after = known
        written = shadow.written if shadow is not None and shadow.uid == uid else None
        hidden = self._shadows[key] = _PendingWrite(observed, None, uid, after=after, written=written)
        self.store.remove(key)
        if observed is None:
            self._fading.append((self._clock.monotonic() + _FADES_AFTER, key, hidden))

    @property
    def shadows(self) -> int:
        """How many own writes the watch has not shown yet."""
        return len(self._shadows)

    # --- inside ---

    def _feed(self, key: ObjectKey) -> str:
        return key.namespace if self._by_namespace else ""

    def _show_under(self, key: ObjectKey, shadow: _PendingWrite, entry: Entry) -> None:
        if shadow.ended_by(entry):
            del self._shadows[key]
            self.store.put(key, entry)
        else:
            shadow.observed = entry

    def _end(self, key: ObjectKey, shadow: _PendingWrite) -> None:
        """From here on readers see what the server shows."""
        self._shadows.pop(key, None)
        if shadow.observed is None:
            self.store.remove(key)
        else:
            self.store.put(key, shadow.observed)

    def _settle(self, key: ObjectKey, version: int) -> None:
        own = self._own.get(key)
        if own is not None:
            own = {written for written in own if isinstance(written, int) and written > version}
            if own:
                self._own[key] = own
            else:
                del self._own[key]
        shadow = self._shadows.get(key)
        if shadow is not None and shadow.written is not None and not is_newer(shadow.written.version, version):
            shadow.written = None
        # Passed, and never shown: the written object is not in scope, or was changed so that it no longer is.
        if shadow is not None and isinstance(shadow.version, int) and shadow.version <= version:
            self._end(key, shadow)

    def _lose(self, key: ObjectKey, old: Entry, version: Version) -> Change[K]:
        """An object that a list does not show any more."""
        shadow = self._shadows.get(key)
        if shadow is None:
            self.store.remove(key)
        else:
            shadow.observed = None
            # A deletion that the list has seen; a written version is settled when all of the list is in.
            if shadow.version is None and (shadow.after is None or is_newer(version, shadow.after)):
                self._end(key, shadow)
        return self._change("deleted", key, old, None, False, False, uncertain=True)

    def _observed(self, namespace: str) -> Iterator[tuple[ObjectKey, Entry]]:
        """What the server has shown so far; a list of keys is made first, since the store changes meanwhile."""
        for key in tuple(self.store.keys(namespace or None)):
            if key not in self._shadows:
                entry = self.store.entry(key)
                if entry is not None:
                    yield key, entry
        for key, shadow in tuple(self._shadows.items()):
            if shadow.observed is not None and (not namespace or key.namespace == namespace):
                yield key, shadow.observed

    def _unshown(
        self, namespace: str, items: Mapping[ObjectKey, Entry], version: Version
    ) -> list[tuple[ObjectKey, Entry]]:
        """What this process made, no watch has shown, and a later list does not have: it has been deleted since."""
        made = {key: entry for key, entry in self._undone.items() if not namespace or key.namespace == namespace}
        for key in made:
            del self._undone[key]
        for key, shadow in self._shadows.items():
            written = shadow.written
            if written is None or is_newer(written.version, version) or (namespace and key.namespace != namespace):
                continue
            shadow.written = None
            made[key] = written
        return [(key, entry) for key, entry in made.items() if not (self._shows(key, entry) or _has(items, key, entry))]

    def _shows(self, key: ObjectKey, entry: Entry) -> bool:
        shadow = self._shadows.get(key)
        shown = self.store.entry(key) if shadow is None else shadow.observed
        return shown is not None and shown.uid == entry.uid

    def _is_own(self, key: ObjectKey, version: Version) -> bool:
        versions = self._own.get(key)
        if versions is None or version not in versions:
            return False
        if isinstance(version, str):  # settled by nothing else: such versions have no order
            del self._own[key]
        return True

    def _fade(self) -> None:
        now = self._clock.monotonic()
        while self._fading and self._fading[0][0] <= now:
            _, key, shadow = self._fading.popleft()
            if self._shadows.get(key) is not shadow or shadow.observed is not None:
                continue  # it has been shown since, so its deletion will be, too
            if shadow.written is None:
                self._end(key, shadow)
            else:  # it was made here, and is still to be told
                self._fading.append((now + _FADES_AFTER, key, shadow))

    def _change(
        self,
        type_: ChangeType,
        key: ObjectKey,
        old: Entry | None,
        new: Entry | None,
        own: bool,
        initial: bool,
        *,
        uncertain: bool = False,
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
            uncertain=uncertain,
        )


def _has(items: Mapping[ObjectKey, Entry], key: ObjectKey, entry: Entry) -> bool:
    listed = items.get(key)
    return listed is not None and listed.uid == entry.uid
