"""A client of somebody else, in a process of its own: its lines as they come, and its last words when it fails."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, final

from kubewright.testing import time_limit

__all__ = ("PROGRAMS", "Program", "python", "running")

PROGRAMS = Path(__file__).parent / "programs"


@final
class Program:
    """A process that runs; made by `running`."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    async def says(self, holds: Callable[[Any], bool], *, seconds: float = 90.0) -> Any:
        """The first line from here on, as JSON, for which this holds."""
        try:
            async with time_limit(seconds):
                assert self._process.stdout is not None
                while line := await self._process.stdout.readline():
                    said = json.loads(line)
                    if holds(said):
                        return said
        except TimeoutError:
            pass
        raise AssertionError(f"the program did not say it; on standard error: {self.errors()[-3000:]}")

    async def tell(self, line: str) -> None:
        """A line for its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        await self._process.stdin.drain()

    async def finished(self, *, seconds: float = 150.0) -> str:
        """What it has said when it ends by itself; an AssertionError if it fails."""
        try:
            async with time_limit(seconds):
                said, _ = await self._process.communicate()
        except TimeoutError:
            raise AssertionError(f"the program does not end; on standard error: {self.errors()[-3000:]}") from None
        assert self._process.returncode == 0, self.errors()[-3000:]
        return said.decode()

    def errors(self) -> str:
        """Its standard error so far."""
        return self._log.read_text(errors="replace")


def python(program: str, *arguments: str) -> list[str]:
    """The command of one of the programs beside this module."""
    return [sys.executable, str(PROGRAMS / program), *arguments]


@asynccontextmanager
async def running(
    command: Sequence[str], *, kubeconfig: Path, log: Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Program]:
    """A program for the cluster of a kubeconfig; ended with SIGTERM, and killed if that does not help."""
    variables = {**os.environ, "KUBECONFIG": str(kubeconfig), **(environment or {})}
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=errors, env=variables
        )
    try:
        yield Program(process, log)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with time_limit(20):
                await process.communicate()
        except TimeoutError:
            process.kill()
            await process.communicate()
