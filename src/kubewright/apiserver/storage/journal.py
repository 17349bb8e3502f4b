"""The journal in SQLite: an acknowledged write survives the end of the process. The embedded plane opens it.

Each change is one transaction in SQLite's write-ahead log, committed before the response and before any watch event:
a killed process loses no write it acknowledged. A machine that loses power may lose the last writes, since nothing
waits for the disk (synchronous=NORMAL), but never half of one.

SQLite recovers a truncated log silently: it drops the transactions behind the cut, and clients would see resource
versions go back. So each commit also writes its version to a small file, and `restore` fails if the database ends
before that version. It fails on a damaged row too, which the row's checksum finds. No server starts on such a file.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import zlib
from pathlib import Path
from typing import Final, final

from kubewright._base.files import close_to_others, open_private
from kubewright.apiserver.storage.store import Entry, Store
from kubewright.errors import ClusterError

__all__ = ("SqliteJournal",)

_FORMAT: Final = 2
_VERSION: Final = struct.Struct("<QI")


@final
class SqliteJournal:
    """A `Journal` in one SQLite file with one writer. `close` it when the server stops; a killed process need not."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.db"
        self._version_path = folder / "state.version"
        self.writable = True
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # SQLite gives its log the rights of the database, which hold every Secret.
            open_private(self.path).close()
            # Autocommit: `_commit` begins its transactions itself.
            self._db = sqlite3.connect(self.path, isolation_level=None)
            self._version_fd = os.open(self._version_path, os.O_RDWR | os.O_CREAT, 0o600)
            close_to_others(self._version_fd)
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
        details = " ".join(how.split())
        folder = self.path.parent
        return ClusterError(
            f"{self.path} is damaged ({details}); restore {folder} from a copy, or remove it to start empty."
        )

    def _open(self) -> None:
        self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("BEGIN IMMEDIATE").execute("COMMIT")  # takes the lock, which EXCLUSIVE keeps until `close`
        damage = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise sqlite3.DatabaseError(damage)
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS objects (resource TEXT, key TEXT, version INTEGER, schema_id INTEGER,"
            " sum INTEGER, value BLOB, PRIMARY KEY (resource, key)) WITHOUT ROWID"
        )
        self._db.execute("CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER)")
        self._db.execute("INSERT OR IGNORE INTO facts VALUES ('format', ?), ('version', 1)", (_FORMAT,))
        found = self._setting("format")
        if found != _FORMAT:
            raise ClusterError(
                f"{self.path} has format {found}, and this Kubewright reads {_FORMAT}; use the one that wrote it."
            )

    def _setting(self, name: str) -> int:
        return int(self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()[0])

    def restore(self, store: Store) -> None:
        """Fill an empty store with the objects of the file. Its history begins now: older watches get 410."""
        version = self._setting("version")
        acknowledged = self._read_version()
        if acknowledged > version:
            raise ClusterError(
                f"{self.path} ends at version {version}, but version {acknowledged} was acknowledged: its log was cut"
                f" short or an older copy was put in its place; restore all files of {self.path.parent} together, or"
                f" remove {self._version_path.name} to accept the loss."
            )
        store.version = store.started_at = version
        rows = self._db.execute("SELECT resource, key, version, schema_id, sum, value FROM objects")
        try:
            for resource, key, at, schema_id, checksum, value in rows:
                if _checksum(resource, key, at, schema_id, value) != checksum:
                    raise self._damaged(f"{resource} {key} does not match its checksum")
                store.table(resource).restore(Entry(key, value, at, schema_id))
        except (sqlite3.DatabaseError, TypeError, AttributeError, UnicodeError) as exc:  # a row of other types
            raise self._damaged(str(exc)) from exc

    def record(self, table: str, entry: Entry | None, key: str, version: int) -> None:
        """Commit a write, or without an entry a deletion."""
        if entry is None:
            self._commit(version, "DELETE FROM objects WHERE resource = ? AND key = ?", (table, key))
            return
        checksum = _checksum(table, key, version, entry.schema_id, entry.value)
        row = (table, key, version, entry.schema_id, checksum, entry.value)
        self._commit(version, "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)", row)

    def drop_table(self, table: str, version: int) -> None:
        """Commit the removal of a table."""
        self._commit(version, "DELETE FROM objects WHERE resource = ?", (table,))

    def _commit(self, version: int, statement: str, values: tuple[str | int | bytes, ...]) -> None:
        run = self._db.execute
        run("BEGIN")
        try:
            run(statement, values)
            run("UPDATE facts SET value = ? WHERE name = 'version'", (version,))
            run("COMMIT")
        except sqlite3.Error:  # for example a full disk: this write fails, the next may succeed
            self.writable = False
            if self._db.in_transaction:
                run("ROLLBACK")
            raise
        self.writable = True
        self._write_version(version)

    def _write_version(self, version: int) -> None:
        os.pwrite(self._version_fd, _VERSION.pack(version, zlib.crc32(version.to_bytes(8, "little"))), 0)

    def _read_version(self) -> int:
        data = os.pread(self._version_fd, _VERSION.size, 0)
        if not data:
            return 0  # a first start, or the user removed the file to accept the loss
        if len(data) == _VERSION.size:
            version, checksum = _VERSION.unpack(data)
            if zlib.crc32(version.to_bytes(8, "little")) == checksum:
                return int(version)
        raise ClusterError(
            f"{self._version_path} is damaged, so {self.path.name} may be incomplete; restore all files of"
            f" {self.path.parent} together, or remove {self._version_path.name} to accept what there is."
        )

    def close(self) -> None:
        """Fold the log into the file and close it."""
        self._db.close()
        os.close(self._version_fd)


def _checksum(resource: str, key: str, version: int, schema_id: int, value: bytes) -> int:
    return zlib.crc32(value, zlib.crc32(f"{resource} {key} {version} {schema_id}".encode()))
