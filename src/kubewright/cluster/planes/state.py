"""Records of the clusters that run in other processes: one JSON file per name in the state folder.

`background` writes a record when a cluster is ready and removes it when the cluster stops. A killed process leaves its
record behind, so a record counts only while the process with that id and that start time lives. Read by
`kubewright cluster`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal, final

import msgspec

from kubewright._base.files import write_private
from kubewright.errors import ConfigError

__all__ = ("ClusterRecord", "StateFolder", "check_name", "process_start", "state_folder")

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@final
class ClusterRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that runs, or ran until its process was killed."""

    name: str
    version: str
    url: str
    kubeconfig: str
    folder: str
    data: str | None
    pid: int
    """The process that runs the cluster; it stops the cluster on SIGTERM."""
    started: str
    """The start time of that process, as `process_start` prints it: tells it from a later one with the same id."""
    processes: dict[str, int]
    """Process ids of the components when the cluster became ready."""
    type: Literal["embedded", "real"] = "embedded"
    ready_at: datetime | None = None
    """When it became ready."""

    @property
    def alive(self) -> bool:
        """Whether the process that runs the cluster is alive."""
        return process_start(self.pid) == self.started


@final
class StateFolder:
    """The records of clusters, and one folder per cluster for its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def cluster_folder(self, name: str) -> Path:
        """The folder for the kubeconfig and logs of a cluster."""
        return self.folder / "clusters" / check_name(name)

    def lock_file(self, name: str) -> Path:
        """The lock that the process of a cluster holds from before it starts until after it has stopped."""
        return self.folder / "clusters" / f"{check_name(name)}.lock"

    def write(self, record: ClusterRecord) -> None:
        """Write the record of a cluster."""
        content = msgspec.json.format(msgspec.json.encode(record), indent=2)
        write_private(self._file(record.name), content + b"\n")

    def remove(self, name: str) -> None:
        """Remove the record of a cluster, if there is one."""
        self._file(name).unlink(missing_ok=True)

    def find_running(self, name: str) -> ClusterRecord | None:
        """The record of a running cluster; removes the record of one whose process has died."""
        try:
            content = self._file(name).read_bytes()
        except FileNotFoundError:
            return None
        try:
            record = msgspec.json.decode(content, type=ClusterRecord)
        except msgspec.DecodeError as error:
            raise ConfigError(f"The file {self._file(name)} is damaged ({error}); delete it.") from error
        if record.alive:
            return record
        self.remove(name)
        return None

    def list_running(self) -> list[ClusterRecord]:
        """The records of all running clusters, sorted by name."""
        names = sorted(path.stem for path in (self.folder / "clusters").glob("*.json"))
        return [record for name in names if (record := self.find_running(name)) is not None]

    def _file(self, name: str) -> Path:
        return self.folder / "clusters" / f"{check_name(name)}.json"


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """`$KUBEWRIGHT_STATE`, else `$XDG_STATE_HOME/kubewright`, else `~/.local/state/kubewright`."""
    if chosen := environment.get("KUBEWRIGHT_STATE"):
        return Path(chosen).expanduser().absolute()
    return Path(environment.get("XDG_STATE_HOME") or "~/.local/state").expanduser().absolute() / "kubewright"


def check_name(name: str) -> str:
    """Return the name if it is valid for a cluster: it becomes a file name; ConfigError if not."""
    if _NAME.fullmatch(name) is None:
        raise ConfigError(
            f"The cluster name {name!r} cannot be used; use at most 63 lower-case letters, digits, dashes."
        )
    return name


def process_start(pid: int) -> str | None:
    """When a process started, as an opaque text; None if there is no such process or it is a zombie."""
    if sys.platform == "linux":
        try:
            # The second field is the command in parentheses, which may contain spaces and parentheses.
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
