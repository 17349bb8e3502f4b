"""Run a short-lived command and report its output line by line.

`binaries.gobuild` runs `go` with it and `binaries.finder` runs `kube-apiserver --version`; tests pass another
`CommandRunner`. Long-lived processes are in `process`.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, final

__all__ = ("CommandRunner", "CompletedCommand", "run")


@final
@dataclass(frozen=True, slots=True)
class CompletedCommand:
    """How a command ended: its exit code and what it wrote."""

    code: int
    stdout: str = ""
    stderr: str = ""


class CommandRunner(Protocol):
    """Runs a command to its end; raises OSError if it cannot be started."""

    def __call__(
        self,
        command: Sequence[str],
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> CompletedCommand:
        """`on_line` gets each line of stderr as it comes."""


def run(
    command: Sequence[str],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
) -> CompletedCommand:
    """The `CommandRunner` that starts a child process; kills it if the caller is interrupted."""
    lines: list[str] = []
    # stdout goes to a file: two pipes read in turn can deadlock.
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stdout,
        subprocess.Popen(  # noqa: S603 - the commands are ours, no shell is involved
            command,
            cwd=folder,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as child,
    ):
        try:
            assert child.stderr is not None
            for line in child.stderr:
                lines.append(line)
                if on_line is not None:
                    on_line(line.rstrip("\n"))
            code = child.wait()
        except BaseException:
            child.kill()
            raise
        stdout.seek(0)
        return CompletedCommand(code, stdout.read(), "".join(lines))
