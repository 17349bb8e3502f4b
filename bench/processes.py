"""A child process whose CPU time and memory are read from /proc while it runs. Linux only.

`operators` and `cache` start every operator through this, so that all are measured the same way.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, final

from kubewright.errors import ClusterError

__all__ = ("MeasuredProcess",)

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_SAMPLE_EVERY = 0.25
# At most this share of one core: an idle operator still renews timers and reads bookmarks.
_IDLE_SHARE = 0.05


@final
class MeasuredProcess:
    """`async with` starts it and ends it with SIGTERM."""

    def __init__(self, name: str, command: Sequence[str], *, environment: Mapping[str, str], log: Path) -> None:
        self._name = name
        self._command = command
        self._environment = {**os.environ, **environment}
        self._log = log

    async def __aenter__(self) -> Self:
        with self._log.open("wb") as log:
            self.started = time.perf_counter()
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment
            )
        self._folder = Path(f"/proc/{self._process.pid}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(10):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    def cpu_seconds(self) -> float:
        """User and system time so far, with that of children it has waited for."""
        # The second field is the command in parentheses and may itself hold spaces and parentheses.
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return sum(int(ticks) for ticks in fields[11:15]) / _TICKS_PER_SECOND

    def memory_mb(self) -> tuple[float, float]:
        """Resident memory now and at its highest, in MB (10^6 bytes)."""
        lines = (line.split() for line in (self._folder / "status").read_text().splitlines())
        values = {
            words[0]: float(words[1]) * 1024 / 1e6 for words in lines if words and words[0] in ("VmRSS:", "VmHWM:")
        }
        return values["VmRSS:"], values["VmHWM:"]

    async def settled(self, *, timeout: float = 10.0) -> float:
        """CPU time once the process has nothing left to do: after the last write it still reads its echo."""
        deadline = time.perf_counter() + timeout
        before, now = -1.0, self.cpu_seconds()
        while now - before > _IDLE_SHARE * _SAMPLE_EVERY and time.perf_counter() < deadline:
            await asyncio.sleep(_SAMPLE_EVERY)
            before, now = now, self.cpu_seconds()
        return now

    async def ended(self) -> ClusterError:
        """Wait until the process ends, and say with what last words."""
        code = await self._process.wait()
        tail = " | ".join(self._log.read_text(errors="replace").splitlines()[-2:])
        return ClusterError(f"The operator {self._name} ended with code {code}: {tail or 'it wrote nothing'}.")
