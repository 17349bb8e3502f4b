"""What is known of clusters that run apart from the process that asks: one JSON file per name.

Written by `keeper` when a cluster is ready and removed when it stops. The process that keeps the cluster
may be killed at any time, so a record is believed only while that very process lives: same id, same start
time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import final

import msgspec

from kubewright._base.files import write_private
from kubewright.errors import ConfigError

__all__ = ("Record", "State", "check_name", "process_start", "state_folder")

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@final
class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that is, or was, running."""

    name: str
    version: str
    url: str
    kubeconfig: str
    folder: str
    data: str | None
    pid: int
    """The process that keeps the cluster; it stops it on SIGTERM."""
    started: str
    """When that process started, in the system's own terms: tells it from a later one with the same id."""
    processes: dict[str, int]
    """Process ids of the components when the cluster became ready."""

    @property
    def alive(self) -> bool:
        """Whether the process that keeps the cluster still runs."""
        return process_start(self.pid) == self.started


@final
class State:
    """The records in a folder, and a folder for each cluster beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def cluster_folder(self, name: str) -> Path:
        """Where a cluster of that name keeps its kubeconfig and logs."""
        return self.folder / "clusters" / check_name(name)

    def lock_file(self, name: str) -> Path:
        """Held by the process that keeps the cluster, from before it starts until after it has stopped."""
        return self.folder / "clusters" / f"{check_name(name)}.lock"

    def write(self, record: Record) -> None:
        """Make a cluster known."""
        content = msgspec.json.format(msgspec.json.encode(record), indent=2)
        write_private(self._file(record.name), content + b"\n")

    def remove(self, name: str) -> None:
        """Forget a cluster; nothing happens if it is not known."""
        self._file(name).unlink(missing_ok=True)

    def running(self, name: str) -> Record | None:
        """The record of a cluster that runs; one whose process has died is forgotten on the way."""
        try:
            content = self._file(name).read_bytes()
        except FileNotFoundError:
            return None
        try:
            record = msgspec.json.decode(content, type=Record)
        except msgspec.DecodeError as error:
            raise ConfigError(f"The file {self._file(name)} is damaged ({error}); delete it.") from error
        if record.alive:
            return record
        self.remove(name)
        return None

    def all_running(self) -> list[Record]:
        """Every cluster that runs, by name."""
        names = sorted(path.stem for path in (self.folder / "clusters").glob("*.json"))
        return [record for name in names if (record := self.running(name)) is not None]

    def _file(self, name: str) -> Path:
        return self.folder / "clusters" / f"{check_name(name)}.json"


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """`$KUBEWRIGHT_STATE`, else `$XDG_STATE_HOME/kubewright`, else `~/.local/state/kubewright`."""
    if chosen := environment.get("KUBEWRIGHT_STATE"):
        return Path(chosen).expanduser().absolute()
    return Path(environment.get("XDG_STATE_HOME") or "~/.local/state").expanduser().absolute() / "kubewright"


def check_name(name: str) -> str:
    """The name itself, if a cluster can be called that: it becomes a file name and is typed by people."""
    if _NAME.fullmatch(name) is None:
        raise ConfigError(
            f"The cluster name {name!r} cannot be used; use at most 63 lower-case letters, digits, dashes."
        )
    return name


def process_start(pid: int) -> str | None:
    """When a process started, as an opaque text; None if there is no such process, or only its remains."""
    if sys.platform == "linux":
        try:
            # The second field is the command in parentheses and may itself hold spaces and parentheses.
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        except OSError:
            return None
        state, *rest = fields.split()
        return None if state in "ZX" else rest[18]
    done = subprocess.run(  # noqa: S603 - fixed arguments
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    status, _, started = done.stdout.strip().partition(" ")
    return None if not started or status.startswith("Z") else started.strip()
