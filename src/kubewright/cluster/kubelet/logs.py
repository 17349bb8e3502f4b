"""Container logs in memory: those of the current and of the previous run of each container.

`kubelet` writes them, `server` and `streaming_handlers` read them. New lines and the end of the run wake readers that
follow. A log keeps a bounded number of lines and of bytes, and drops the oldest.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from typing import final

import msgspec

__all__ = ("ContainerLog", "ContainerLogs", "LogQuery", "read_log")

_MAX_LINES = 10_000
_MAX_BYTES = 10 * 1024 * 1024
"""As a kubelet's containerLogMaxSize."""

Line = tuple[datetime, bytes]


@final
class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a log request, as PodLogOptions."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: datetime | None = None
    limit: int | None = None
    """Bytes."""


@final
class ContainerLog:
    """The log of one run of a container."""

    def __init__(self) -> None:
        self.lines: deque[Line] = deque()
        self._size = 0
        self.ended = False
        self._line_count = 0
        self._changed = asyncio.Event()

    def write(self, at: datetime, lines: Iterable[str]) -> None:
        for line in lines:
            text = line.encode("utf-8", "surrogatepass") + b"\n"
            self.lines.append((at, text))
            self._size += len(text)
            self._line_count += 1
            while len(self.lines) > _MAX_LINES or (self._size > _MAX_BYTES and len(self.lines) > 1):
                self._size -= len(self.lines.popleft()[1])
        self._notify()

    def end(self) -> None:
        self.ended = True
        self._notify()

    @property
    def line_count(self) -> int:
        """How many lines were written, including dropped ones."""
        return self._line_count

    async def wait_for_more(self, seen: int) -> None:
        """Return when more than `seen` lines were written, or the run has ended."""
        while self._line_count <= seen and not self.ended:
            await self._changed.wait()

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


@final
class ContainerLogs:
    """The logs of every container on the simulated nodes, by namespace, pod and container."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, str], dict[str, list[ContainerLog]]] = {}

    def container_started(self, namespace: str, pod: str, container: str) -> ContainerLog:
        """Start the log of a new run; keep that of the previous run and drop older ones."""
        runs = self._logs.setdefault((namespace, pod), {}).setdefault(container, [])
        log = ContainerLog()
        if runs:
            runs[-1].end()
        runs[:] = [*runs[-1:], log]
        return log

    def container_ended(self, namespace: str, pod: str, container: str) -> None:
        log = self.find(namespace, pod, container)
        if log is not None:
            log.end()

    def find(self, namespace: str, pod: str, container: str, *, previous: bool = False) -> ContainerLog | None:
        runs = self._logs.get((namespace, pod), {}).get(container, [])
        if previous:
            return runs[0] if len(runs) > 1 else None
        return runs[-1] if runs else None

    def remove_pod(self, namespace: str, pod: str) -> None:
        """Remove the logs of a deleted pod."""
        for runs in self._logs.pop((namespace, pod), {}).values():
            for log in runs:
                log.end()


async def read_log(log: ContainerLog, query: LogQuery) -> AsyncIterator[bytes]:
    """Read a log line by line; with `follow`, until the run ends."""
    remaining = query.limit
    seen = log.line_count
    lines: list[Line] = [line for line in log.lines if query.since is None or line[0] >= query.since]
    if query.tail is not None:
        lines = lines[len(lines) - query.tail :] if query.tail < len(lines) else lines
    while True:
        for at, text in lines:
            data = (f"{_timestamp(at)} ".encode() + text) if query.timestamps else text
            if remaining is not None:
                data = data[:remaining]
                remaining -= len(data)
            if data:
                yield data
            if remaining == 0:
                return
        if not query.follow:
            return
        await log.wait_for_more(seen)
        new = log.line_count - seen
        if new == 0:
            return
        lines = list(log.lines)[-new:]
        seen = log.line_count


def _timestamp(at: datetime) -> str:
    """A time with nanoseconds, as container runtimes write it."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"
