"""A process under attack, from outside: started with bounded memory, read while it works, replaced when it is spent.

async with WatchedProcess("served_cluster") as watched:
    await watched.begin()
    ...                         # one attack
    cost = await watched.cost()
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, final

from tests.security.harness.heartbeat import HeartbeatReader
from tests.security.harness.limits import HOLD_LIMIT

__all__ = ("Cost", "WatchedProcess")

_ROOT: Final = Path(__file__).parents[3]
_ADDRESS_SPACE: Final = 3_000_000_000
_QUIET: Final = 0.05
"""How long the process must have used no CPU to count as done with what it was asked."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_FRAME: Final = re.compile(r'^  File "([^"]+)", line (\d+) in (\S+)', re.MULTILINE)


class Cost(NamedTuple):
    """What an attack cost the process."""

    hold: float
    """Seconds the loop did not turn, without waits for a core."""
    wall: float
    """The same with them."""
    collection: float
    """Seconds of the longest garbage collection."""
    memory: int
    """Bytes of resident memory at the peak, beyond those at the start."""
    kept: int
    """Bytes beyond those at the start that are still there after a garbage collection."""
    place: str = ""
    """The innermost line of ours at which the loop was seen most often while it was held for too long."""


@final
class WatchedProcess:
    """A child that runs a module of this package, its heartbeat and its memory."""

    def __init__(self, module: str, *arguments: str, address_space: int = _ADDRESS_SPACE) -> None:
        self._module = module
        self._arguments = arguments
        self._address_space = address_space
        self.base = 0
        """Resident memory when it was ready."""

    async def __aenter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="kubewright-harness-")
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        self._folder.cleanup()

    async def start(self) -> None:
        """Start it and wait until it serves."""
        folder = Path(self._folder.name)
        self._heartbeat = HeartbeatReader(folder / "heartbeat")
        self.log = folder / "log"
        command = [sys.executable, "-m", f"tests.security.harness.{self._module}", *self._arguments]
        command += ["--heartbeat", str(folder / "heartbeat"), "--memory", str(self._address_space)]
        with self.log.open("wb") as log:
            self._child = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,  # it ends when this process does, and closes it
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                cwd=_ROOT,
                env={**os.environ, "PYTHONPATH": f"{_ROOT}:{_ROOT / 'src'}"},
            )
        assert self._child.stdout is not None
        async with asyncio.timeout(120):
            line = await self._child.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._module} did not start: {self.log.read_text(errors='replace')[-2000:]}")
        self.ready: dict[str, Any] = json.loads(line)
        await self.begin()
        self.base = self._start

    async def stop(self) -> None:
        """End it, by force if it does not listen."""
        if self._child.returncode is None:
            self._child.terminate()
        try:
            async with asyncio.timeout(5):
                await self._child.wait()
        except TimeoutError:
            self._child.kill()
            await self._child.wait()

    async def restart(self) -> None:
        """A fresh process in place of this one."""
        await self.stop()
        await self.start()

    @property
    def alive(self) -> bool:
        return self._child.returncode is None

    async def begin(self) -> None:
        """Measure from here: garbage collected, memory given back, peak forgotten."""
        await self._begin_afresh()
        self.forget_peak()
        self._places: Counter[str] = Counter()

    def forget_peak(self) -> None:
        """Count memory from what there is now."""
        # "5" resets the peak (Documentation/filesystems/proc.rst of Linux).
        with suppress(FileNotFoundError, ProcessLookupError):
            Path(f"/proc/{self._child.pid}/clear_refs").write_text("5")
        self._start = self._memory("VmRSS")

    async def settle(self, *, seconds: float = 10.0, at_least: float = 0.0) -> None:
        """Wait until the process is idle, or `seconds` are over; `at_least` for what begins a while later."""
        deadline = time.monotonic() + seconds
        idle_since = time.monotonic() + at_least
        used = self._cpu()
        while self.alive and time.monotonic() < deadline:
            await asyncio.sleep(0.005)
            now, spent = time.monotonic(), self._cpu()
            if spent != used or now - self._heartbeat.read().at > _QUIET:
                used, idle_since = spent, max(now, idle_since)
            elif now - idle_since > _QUIET:
                return

    async def observe(self, *, until: float) -> None:
        """Note where the loop is while it is held for too long; runs beside an attack until it was held for `until`."""
        while self.alive and self.held < until:
            await asyncio.sleep(0.05)
            if self.held > HOLD_LIMIT:
                written = self.log.stat().st_size
                self._child.send_signal(signal.SIGUSR1)
                await asyncio.sleep(0.2)
                self._places[_place(self.log.read_bytes()[written:].decode(errors="replace"))] += 1

    @property
    def held(self) -> float:
        """For how long the loop has not turned, up to now, without waits of its thread for a core."""
        beat = self._heartbeat.read()
        try:
            waited = int(Path(f"/proc/{self._child.pid}/schedstat").read_text().split()[1]) / 1e9
        except (FileNotFoundError, ProcessLookupError):
            return 0.0
        return max(0.0, time.monotonic() - beat.at - max(0.0, waited - beat.waited))

    @property
    def grown(self) -> int:
        """Bytes of resident memory beyond those when it was ready."""
        return self._memory("VmRSS") - self.base if self.alive else 0

    def glance(self) -> Cost:
        """What was spent since `begin`, without asking the process for anything."""
        beat = self._heartbeat.read()
        peak = self._memory("VmHWM") if self.alive else 0
        place = next((name for name, _ in self._places.most_common()), "")
        hold = max(beat.hold, self.held if self.held > 1 else 0.0)
        return Cost(hold, max(beat.wall, hold), beat.collection, max(0, peak - self._start), 0, place)

    async def cost(self) -> Cost:
        """What was spent since `begin`, and what is kept."""
        seen = self.glance()
        await self._begin_afresh()
        return seen._replace(kept=max(0, self._memory("VmRSS") - self._start))

    async def _begin_afresh(self) -> None:
        asked = self._heartbeat.ask()
        async with asyncio.timeout(20):
            while self._heartbeat.read().answered != asked:  # shared memory tells nobody when it changes
                if not self.alive:
                    raise RuntimeError("the process is gone")
                await asyncio.sleep(0.002)

    def _memory(self, name: str) -> int:
        try:
            text = Path(f"/proc/{self._child.pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return 0
        found = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
        return int(found[1]) * 1024 if found else 0

    def _cpu(self) -> int:
        try:
            fields = Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return 0
        return int(fields[11]) + int(fields[12])


def _place(dump: str) -> str:
    """The innermost line of this project in a stack of `faulthandler`, which begins with the innermost."""
    frames = _FRAME.findall(dump)
    for file, line, name in frames:
        if "/kubewright/" in file:
            return f"{file.rpartition('/kubewright/')[2]}:{line} {name}"
    return f"{frames[0][0]}:{frames[0][1]} {frames[0][2]}" if frames else ""
