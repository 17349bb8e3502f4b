"""The SQLite file behind the embedded API server: an acknowledged write survives the end of the process.

Each change is one transaction in SQLite's write-ahead log, committed before any client or watcher hears of it: a
process that is killed loses nothing it answered for. (A machine that loses power may lose the last moments, as the
disk is not waited for, but never half a change.) Two things SQLite does not notice by itself are checked when the
file is opened: a log cut short or an older copy, by comparing with the last version noted in a small file beside it,
and damaged rows, by a checksum each. Both are said, and nothing is served from such a file.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import zlib
from pathlib import Path
from typing import Final, final

from kubewright.apiserver.storage.store import Entry, Store
from kubewright.errors import ClusterError

__all__ = ("SqliteJournal",)

_FORMAT: Final = 1
_NOTE: Final = struct.Struct("<QI")


@final
class SqliteJournal:
    """One file, one writer. `close` it when the server stops; a killed process need not."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.db"
        self._noted = folder / "state.version"
        self.writable = True
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Autocommit: every statement is its own transaction, which is what a change is.
            self._db = sqlite3.connect(self.path, isolation_level=None)
            self._note = os.open(self._noted, os.O_RDWR | os.O_CREAT, 0o600)
        except (OSError, sqlite3.OperationalError) as exc:
            raise ClusterError(f"{self.path} cannot be opened ({exc}); choose another folder.") from exc
        try:
            self._open()
        except BaseException as exc:
            self.close()
            if isinstance(exc, sqlite3.OperationalError) and "locked" in str(exc):
                raise ClusterError(f"{self.path} is in use by another process; stop that one first.") from exc
            if isinstance(exc, sqlite3.DatabaseError):
                raise self._damaged(str(exc)) from exc
            raise

    def _damaged(self, how: str) -> ClusterError:
        said = " ".join(how.split())
        folder = self.path.parent
        return ClusterError(
            f"{self.path} is damaged ({said}); restore {folder} from a copy, or remove it to start empty."
        )

    def _open(self) -> None:
        self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("BEGIN IMMEDIATE").execute("COMMIT")  # takes the lock, and keeps it
        damage = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise sqlite3.DatabaseError(damage)
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS objects (resource TEXT, key TEXT, version INTEGER, shape INTEGER,"
            " sum INTEGER, value BLOB, PRIMARY KEY (resource, key)) WITHOUT ROWID"
        )
        self._db.execute("CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER)")
        self._db.execute("INSERT OR IGNORE INTO facts VALUES ('format', ?), ('version', 1)", (_FORMAT,))
        found = self._fact("format")
        if found != _FORMAT:
            raise ClusterError(
                f"{self.path} has format {found}, and this Kubewright reads {_FORMAT}; use the one that wrote it."
            )

    def _fact(self, name: str) -> int:
        return int(self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()[0])

    def restore(self, store: Store) -> None:
        """Fill an empty store with what the file holds; its history begins now."""
        version = self._fact("version")
        noted = self._read_note()
        if noted > version:
            raise ClusterError(
                f"{self.path} ends at version {version}, but version {noted} was acknowledged: its log was cut short"
                f" or an older copy was put in its place; restore all files of {self.path.parent} together, or remove"
                f" {self._noted.name} to accept the loss."
            )
        store.version = store.base = version
        rows = self._db.execute("SELECT resource, key, version, shape, sum, value FROM objects")
        try:
            for resource, key, at, schema_id, check, value in rows:
                if _sum(resource, key, at, schema_id, value) != check:
                    raise self._damaged(f"{resource} {key} does not match its checksum")
                store.table(resource).restore(Entry(key, value, at, schema_id))
        except (sqlite3.DatabaseError, TypeError, AttributeError, UnicodeError) as exc:  # a row of other types
            raise self._damaged(str(exc)) from exc

    def record(self, table: str, entry: Entry | None, key: str, version: int) -> None:
        """Keep one change."""
        if entry is None:
            self._change(version, "DELETE FROM objects WHERE resource = ? AND key = ?", (table, key))
            return
        check = _sum(table, key, version, entry.schema_id, entry.value)
        row = (table, key, version, entry.schema_id, check, entry.value)
        self._change(version, "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)", row)

    def forget_table(self, table: str, version: int) -> None:
        """Keep that a table is gone."""
        self._change(version, "DELETE FROM objects WHERE resource = ?", (table,))

    def _change(self, version: int, statement: str, values: tuple[str | int | bytes, ...]) -> None:
        run = self._db.execute
        run("BEGIN")
        try:
            run(statement, values)
            run("UPDATE facts SET value = ? WHERE name = 'version'", (version,))
            run("COMMIT")
        except sqlite3.Error:  # a full disk, say: this change is refused, the next may succeed
            self.writable = False
            if self._db.in_transaction:
                run("ROLLBACK")
            raise
        self.writable = True
        self._write_note(version)

    def _write_note(self, version: int) -> None:
        os.pwrite(self._note, _NOTE.pack(version, zlib.crc32(version.to_bytes(8, "little"))), 0)

    def _read_note(self) -> int:
        data = os.pread(self._note, _NOTE.size, 0)
        if not data:
            return 0  # a first start, or somebody who accepts a loss
        if len(data) == _NOTE.size:
            version, check = _NOTE.unpack(data)
            if zlib.crc32(version.to_bytes(8, "little")) == check:
                return int(version)
        raise ClusterError(
            f"{self._noted} is damaged, so nobody knows whether {self.path.name} is complete; restore all files of"
            f" {self.path.parent} together, or remove {self._noted.name} to accept what there is."
        )

    def close(self) -> None:
        """Fold the log into the file and let it go."""
        self._db.close()
        os.close(self._note)


def _sum(resource: str, key: str, version: int, schema_id: int, value: bytes) -> int:
    return zlib.crc32(value, zlib.crc32(f"{resource} {key} {version} {schema_id}".encode()))
