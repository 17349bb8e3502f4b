"""The store: encoded objects, a resource version for every change, and the recent history.

A `Table` holds one resource, sorted by key (`namespace/name`, or `name` if cluster-scoped). The `Store` holds the
tables and the one counter of versions, as etcd has one revision for all keys. Each table keeps its last changes, as
the ring buffer of kube-apiserver's watch cache does (k8s.io/apiserver/pkg/storage/cacher/watch_cache.go), so that a
watch can resume at an older version, and a list in chunks can continue at the version of its first chunk. An older
version raises `Compacted`, which the verbs turn into 410: the client must list again. The history is bounded in changes
and in bytes, and so are the objects, as in etcd, whose quota is larger.

No I/O and no Kubernetes rules in here: `verbs` decide what to write, `journal` makes it durable. One thread writes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Protocol, final

from msgspec import Struct
from sortedcontainers import SortedDict

__all__ = ("Change", "Compacted", "Entry", "Journal", "SpaceExceeded", "Store", "Table", "Watcher")

_CHANGE_BYTES: Final = 256
"""What a change takes beside the objects in it."""
_TRIMMED: Final = 0.75
"""The part of the largest history that is left when there is too much: to find it takes a look at every table."""
_AFTER_SLASH: Final = "0"  # the character after "/": the keys of a namespace end before `namespace0`


class Entry(Struct, frozen=True, gc=False):
    """One object at one version. `schema_id` is the version of the storage schema that the bytes were written with."""

    key: str
    value: bytes
    version: int
    schema_id: int = 0


class Change(Struct, frozen=True):
    """One event of the history. Without `new` the object was deleted, and `last` is its final state."""

    version: int
    key: str
    old: Entry | None
    new: Entry | None
    last: Entry | None = None


class Compacted(Exception):
    """The requested version is older than the history."""

    def __init__(self, requested: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {requested} ({oldest})")
        self.requested = requested
        self.oldest = oldest


class SpaceExceeded(Exception):
    """The store has no room for more, in etcd's words (api/v3rpc/rpctypes/error.go)."""

    def __init__(self) -> None:
        super().__init__("etcdserver: mvcc: database space exceeded")


class Watcher(Protocol):
    """Gets every change of a table."""

    def deliver(self, change: Change) -> None:
        """Called in order, from within the write."""
        ...

    def table_gone(self) -> None:
        """The table was dropped: no more changes will come."""
        ...


class Journal(Protocol):
    """Makes changes durable before the store applies them and tells watchers."""

    @property
    def writable(self) -> bool:
        """Whether the last change could be written."""
        ...

    def record(self, table: str, entry: Entry | None, key: str, version: int) -> None:
        """Write one change; returns when it will survive the end of the process."""
        ...

    def drop_table(self, table: str, version: int) -> None:
        """Write the removal of a table with all its objects."""
        ...


@final
class Table:
    """The objects of one resource."""

    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self.compacted_version = store.started_at
        """The history begins after this version."""
        self.bytes = 0
        self.history_bytes = 0
        self._entries: SortedDict[str, Entry] = SortedDict()
        self._history: deque[Change] = deque()
        self._watchers: dict[int, Watcher] = {}
        self._store = store

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Entry | None:
        """The object with this key."""
        found: Entry | None = self._entries.get(key)
        return found

    def entries(self, namespace: str | None = None, *, after: str = "") -> Iterator[Entry]:
        """The objects of a namespace, or all, in the order of their keys, beginning after the key `after`."""
        start, end = (f"{namespace}/", f"{namespace}{_AFTER_SLASH}") if namespace else (None, None)
        inclusive = (True, False)
        if after and (start is None or after >= start):
            start, inclusive = after, (False, False)
        entries = self._entries
        for key in entries.irange(start, end, inclusive):
            yield entries[key]

    def entries_at(self, version: int, namespace: str | None = None, *, after: str = "") -> list[Entry]:
        """As `entries`, at an older version.

        There are no snapshots: the changes since are undone, newest first, so that the oldest change of a key decides.
        """
        changed: dict[str, Entry | None] = {}
        for change in self._changes_newest_first(version):
            changed[change.key] = change.old
        prefix = f"{namespace}/" if namespace else ""
        found = [entry for entry in self.entries(namespace, after=after) if entry.key not in changed]
        found.extend(
            entry for key, entry in changed.items() if entry is not None and key > after and key.startswith(prefix)
        )
        found.sort(key=lambda entry: entry.key)
        return found

    def count(self, namespace: str | None, *, after: str) -> int:
        """How many objects there are after a key: remainingItemCount."""
        if namespace is None:
            return len(self._entries) - int(self._entries.bisect_right(after))
        end = f"{namespace}{_AFTER_SLASH}"
        first = int(self._entries.bisect_right(max(after, f"{namespace}/")))
        return max(0, int(self._entries.bisect_left(end)) - first)

    def changes_since(self, version: int) -> list[Change]:
        """The changes after a version, oldest first, from which a watch resumes."""
        found = list(self._changes_newest_first(version))
        found.reverse()
        return found

    def _changes_newest_first(self, version: int) -> Iterator[Change]:
        if version < self.compacted_version:
            raise Compacted(version, self.compacted_version)
        for change in reversed(self._history):
            if change.version <= version:
                return
            yield change

    def put(self, key: str, value: bytes, version: int, *, schema_id: int = 0) -> Entry:
        """Create or replace an object. The version must come from `Store.next_version` in the same step of the loop."""
        old = self.get(key)
        more = len(value) - (len(old.value) if old else 0)
        self._store.reserve(more)
        new = Entry(key, value, version, schema_id)
        if self._store.journal is not None:
            self._store.journal.record(self.name, new, key, version)
        self._entries[key] = new
        self.bytes += more
        self._store.bytes += more
        self._record(Change(version, key, old, new))
        return new

    def delete(self, key: str, final: bytes, version: int, *, schema_id: int = 0) -> Entry:
        """Delete an object. `final` is what watchers see: its last state, with the version of the deletion."""
        old: Entry = self._entries[key]
        if self._store.journal is not None:
            self._store.journal.record(self.name, None, key, version)
        del self._entries[key]
        self.bytes -= len(old.value)
        self._store.bytes -= len(old.value)
        last = Entry(key, final, version, schema_id)
        self._record(Change(version, key, old, None, last))
        return last

    def restore(self, entry: Entry) -> None:
        """Add an object from a journal; no watcher sees a change."""
        self._entries[entry.key] = entry
        self.bytes += len(entry.value)
        self._store.bytes += len(entry.value)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Deliver every change from now on, until the returned function is called."""
        key_of_watcher = id(watcher)
        self._watchers[key_of_watcher] = watcher

        def unwatch() -> None:
            self._watchers.pop(key_of_watcher, None)

        return unwatch

    @property
    def watchers(self) -> int:
        """The number of watchers."""
        return len(self._watchers)

    def compact(self, version: int) -> None:
        """Drop the history up to a version."""
        while self._history and self._history[0].version <= version:
            self._forget_oldest()
        self.compacted_version = max(self.compacted_version, version)

    def trim(self, keep: int) -> None:
        """Drop the oldest history until so many bytes are left."""
        while self._history and self.history_bytes > keep:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        change = self._history.popleft()
        self.compacted_version = change.version
        self._count_history(-_size_of(change))

    def _count_history(self, size: int) -> None:
        self.history_bytes += size
        self._store.kept_bytes += size

    def _record(self, change: Change) -> None:
        self._history.append(change)
        self._count_history(_size_of(change))
        if len(self._history) > self._store.history:
            self._forget_oldest()
        if self._store.kept_bytes > self._store.history_bytes:
            self._store.trim()
        for watcher in tuple(self._watchers.values()):
            watcher.deliver(change)

    def drop(self) -> None:
        """Forget the history, and end every watch of this table."""
        self._store.bytes -= self.bytes
        self._count_history(-self.history_bytes)
        self._history.clear()
        for watcher in tuple(self._watchers.values()):
            watcher.table_gone()


def _size_of(change: Change) -> int:
    """The bytes that a change keeps in memory, if nobody else does."""
    latest = change.new or change.last
    return _CHANGE_BYTES + (len(latest.value) if latest else 0) + (len(change.old.value) if change.old else 0)


@final
class Store:
    """All tables and the counter of versions."""

    def __init__(
        self,
        *,
        history: int = 20_000,
        history_bytes: int = 64 * 1024 * 1024,
        quota_bytes: int = 512 * 1024 * 1024,
        journal: Journal | None = None,
        version: int = 1,
    ) -> None:
        """Each table keeps `history` changes, and all tables together `history_bytes` of them.

        `quota_bytes` is the limit of all objects together: etcd's `--quota-backend-bytes`.
        """
        self.history = history
        self.history_bytes = history_bytes
        self.kept_bytes = 0
        """Bytes of the history of all tables."""
        self.quota_bytes = quota_bytes
        self.bytes = 0
        """Bytes of all objects."""
        self.journal = journal
        self.version = version
        self.started_at = 0
        """The version at which this process started, before which there is no history."""
        self._tables: dict[str, Table] = {}

    def table(self, name: str) -> Table:
        """The table of a resource, which is made on first use."""
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = Table(name, self)
        return found

    def tables(self) -> tuple[Table, ...]:
        """All tables."""
        return tuple(self._tables.values())

    def drop(self, name: str) -> None:
        """Drop a table with all its objects."""
        table = self._tables.pop(name, None)
        if table is not None:
            if self.journal is not None:
                self.journal.drop_table(name, self.next_version())
            table.drop()

    def next_version(self) -> int:
        """A new version, to be used in the same step of the event loop: versions reach the tables in order."""
        self.version += 1
        return self.version

    def reserve(self, size: int) -> None:
        """Raise `SpaceExceeded` if there is no room for so many bytes more."""
        if size > 0 and self.bytes + size > self.quota_bytes:
            raise SpaceExceeded

    def trim(self) -> None:
        """Shorten the largest history, until all of them together are within their bound."""
        while self.kept_bytes > self.history_bytes:
            largest = max(self._tables.values(), key=lambda table: table.history_bytes)
            largest.trim(int(_TRIMMED * largest.history_bytes))

    @property
    def writable(self) -> bool:
        """Whether the journal could write the last change."""
        return self.journal is None or self.journal.writable

    def compact(self, version: int | None = None) -> None:
        """Drop the history up to a version, or all of it."""
        for table in self._tables.values():
            table.compact(self.version if version is None else version)
