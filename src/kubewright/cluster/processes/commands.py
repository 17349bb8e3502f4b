"""Run a short-lived command and hand its lines on while it runs.

The seam behind which `gobuild` and `binaries` call `go` and `kube-apiserver --version`; tests put a
function in its place. Long-lived processes are `processes`' business.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, final

__all__ = ("Finished", "Run", "run")


@final
@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended: its exit code and what it wrote."""

    code: int
    stdout: str = ""
    stderr: str = ""


class Run(Protocol):
    """Runs a command to its end; raises OSError if it cannot be started."""

    def __call__(
        self,
        command: Sequence[str],
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> Finished:
        """`on_line` gets each line of stderr as it comes."""


def run(
    command: Sequence[str],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
) -> Finished:
    """The real Run. Should the caller be interrupted, the command is killed rather than left to itself."""
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
        return Finished(code, stdout.read(), "".join(lines))
