"""What the embedded API server keeps: objects as bytes, one version for every change, and the recent history.

A `Table` holds one resource, sorted by key (`namespace/name`, or `name` when cluster-scoped); the `Store` holds the
tables and the one counter all versions come from, like a revision of etcd. Every change is remembered for a while,
so a watch can start in the past and a paged list can go on from the state its first page saw; what has been
forgotten is answered with `Compacted`, which the verbs turn into 410.

No I/O and no Kubernetes rules here: `verbs` decides what is written, `journal` makes it survive. One thread writes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Protocol, final

from msgspec import Struct
from sortedcontainers import SortedDict

__all__ = ("Change", "Compacted", "Entry", "Journal", "Store", "Table", "Watcher")

_AFTER_SLASH: Final = "0"  # the character behind "/": a range of one namespace ends there


class Entry(Struct, frozen=True, gc=False):
    """One object at one version. `schema_id` says under which schema the bytes were written."""

    key: str
    value: bytes
    version: int
    schema_id: int = 0


class Change(Struct, frozen=True):
    """One step of the history. Without `new` the object was deleted; `last` then is its final state."""

    version: int
    key: str
    old: Entry | None
    new: Entry | None
    last: Entry | None = None


class Compacted(Exception):
    """The version asked for is older than the history that is kept."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {asked} ({oldest})")
        self.asked = asked
        self.oldest = oldest


class Watcher(Protocol):
    """Somebody who wants to see every change of a table."""

    def deliver(self, change: Change) -> None:
        """Called at once, in order, from within the write."""
        ...

    def table_gone(self) -> None:
        """The table is dropped: nothing will ever come again."""
        ...


class Journal(Protocol):
    """Where changes are written before anybody is told of them."""

    @property
    def writable(self) -> bool:
        """Whether the last change could be kept."""
        ...

    def record(self, table: str, entry: Entry | None, key: str, version: int) -> None:
        """Keep this change; returns when it will survive the end of the process."""
        ...

    def forget_table(self, table: str, version: int) -> None:
        """Keep that a table is gone with all that was in it."""
        ...


@final
class Table:
    """The objects of one resource."""

    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self.floor = store.base
        """Changes up to this version are no longer known."""
        self.bytes = 0
        self._entries: SortedDict[str, Entry] = SortedDict()
        self._history: deque[Change] = deque()
        self._watchers: dict[int, Watcher] = {}
        self._store = store

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Entry | None:
        """The object with this key as it is now."""
        found: Entry | None = self._entries.get(key)
        return found

    def entries(self, namespace: str | None = None, *, after: str = "") -> Iterator[Entry]:
        """The objects of a namespace, or all, in the order of their keys, from behind a key on."""
        start, end = (f"{namespace}/", f"{namespace}{_AFTER_SLASH}") if namespace else (None, None)
        inclusive = (True, False)
        if after and (start is None or after >= start):
            start, inclusive = after, (False, False)
        entries = self._entries
        for key in entries.irange(start, end, inclusive):
            yield entries[key]

    def entries_at(self, version: int, namespace: str | None = None, *, after: str = "") -> list[Entry]:
        """As `entries`, but as they were at that version."""
        changed: dict[str, Entry | None] = {}
        for change in self._newest_first(version):
            changed[change.key] = change.old
        prefix = f"{namespace}/" if namespace else ""
        found = [entry for entry in self.entries(namespace, after=after) if entry.key not in changed]
        found.extend(
            entry for key, entry in changed.items() if entry is not None and key > after and key.startswith(prefix)
        )
        found.sort(key=lambda entry: entry.key)
        return found

    def count(self, namespace: str | None, *, after: str) -> int:
        """How many objects there are behind a key."""
        if namespace is None:
            return len(self._entries) - int(self._entries.bisect_right(after))
        end = f"{namespace}{_AFTER_SLASH}"
        first = int(self._entries.bisect_right(max(after, f"{namespace}/")))
        return max(0, int(self._entries.bisect_left(end)) - first)

    def changes_since(self, version: int) -> list[Change]:
        """Everything that happened after a version, oldest first."""
        found = list(self._newest_first(version))
        found.reverse()
        return found

    def _newest_first(self, version: int) -> Iterator[Change]:
        if version < self.floor:
            raise Compacted(version, self.floor)
        for change in reversed(self._history):
            if change.version <= version:
                return
            yield change

    def put(self, key: str, value: bytes, version: int, *, schema_id: int = 0) -> Entry:
        """Create or replace an object. The version must come from `Store.next_version`, just now."""
        old = self.get(key)
        new = Entry(key, value, version, schema_id)
        if self._store.journal is not None:
            self._store.journal.record(self.name, new, key, version)
        self._entries[key] = new
        self.bytes += len(value) - (len(old.value) if old else 0)
        self._happened(Change(version, key, old, new))
        return new

    def delete(self, key: str, final: bytes, version: int, *, schema_id: int = 0) -> Entry:
        """Remove an object. `final` is what watchers are shown: its last state, at the version of the removal."""
        old: Entry = self._entries[key]
        if self._store.journal is not None:
            self._store.journal.record(self.name, None, key, version)
        del self._entries[key]
        self.bytes -= len(old.value)
        last = Entry(key, final, version, schema_id)
        self._happened(Change(version, key, old, None, last))
        return last

    def restore(self, entry: Entry) -> None:
        """Put back what a journal kept; nobody is told."""
        self._entries[entry.key] = entry
        self.bytes += len(entry.value)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Have every change from now on delivered, until the returned function is called."""
        mark = id(watcher)
        self._watchers[mark] = watcher

        def leave() -> None:
            self._watchers.pop(mark, None)

        return leave

    @property
    def watchers(self) -> int:
        """How many watch this table."""
        return len(self._watchers)

    def compact(self, version: int) -> None:
        """Forget the changes up to a version."""
        history = self._history
        while history and history[0].version <= version:
            history.popleft()
        self.floor = max(self.floor, version)

    def _trim(self, keep: int) -> None:
        while len(self._history) > keep:
            self.floor = self._history.popleft().version

    def _happened(self, change: Change) -> None:
        self._history.append(change)
        if len(self._history) > self._store.history:
            self._trim(self._store.history)
        for watcher in tuple(self._watchers.values()):
            watcher.deliver(change)

    def drop(self) -> None:
        """End every watch: the table is gone."""
        for watcher in tuple(self._watchers.values()):
            watcher.table_gone()


@final
class Store:
    """All tables and the counter of versions. `history` is how many changes each table remembers."""

    def __init__(self, *, history: int = 20_000, journal: Journal | None = None, version: int = 1) -> None:
        self.history = history
        self.journal = journal
        self.version = version
        self.base = 0
        """What happened up to this version is not known: it was before the process began."""
        self._tables: dict[str, Table] = {}

    def table(self, name: str) -> Table:
        """The table of a resource; it is there once it is asked for."""
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = Table(name, self)
        return found

    def tables(self) -> tuple[Table, ...]:
        """Every table there is."""
        return tuple(self._tables.values())

    def drop(self, name: str) -> None:
        """Forget a table with all that is in it."""
        table = self._tables.pop(name, None)
        if table is not None:
            if self.journal is not None:
                self.journal.forget_table(name, self.next_version())
            table.drop()

    def next_version(self) -> int:
        """A version nothing has yet; to be used at once, in the same step of the loop."""
        self.version += 1
        return self.version

    @property
    def writable(self) -> bool:
        """Whether changes can be kept, as far as is known."""
        return self.journal is None or self.journal.writable

    def compact(self, version: int | None = None) -> None:
        """Forget the history up to a version, or all of it."""
        for table in self._tables.values():
            table.compact(self.version if version is None else version)
