"""What simulated containers have printed: the present run and the one before, in memory.

`kubelet` writes, `kubelet_server` reads. A reader that follows is woken by new lines and by the end of the run. Each
log is bounded; its oldest lines go first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from typing import final

import msgspec

__all__ = ("ContainerLog", "LogQuery", "Logs", "read_log")

_MOST_LINES = 10_000

Line = tuple[datetime, bytes]


@final
class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What of a log is asked for."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: datetime | None = None
    limit: int | None = None
    """Bytes."""


@final
class ContainerLog:
    """The lines of one run."""

    def __init__(self) -> None:
        self.lines: deque[Line] = deque(maxlen=_MOST_LINES)
        self.ended = False
        self._count = 0
        self._news = asyncio.Event()

    def write(self, at: datetime, lines: Iterable[str]) -> None:
        for line in lines:
            self.lines.append((at, line.encode() + b"\n"))
            self._count += 1
        self._tell()

    def end(self) -> None:
        self.ended = True
        self._tell()

    @property
    def written(self) -> int:
        """How many lines have ever been written."""
        return self._count

    async def wait_past(self, seen: int) -> None:
        """Returns when there are more lines than these, or the run has ended."""
        while self._count <= seen and not self.ended:
            await self._news.wait()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


@final
class Logs:
    """The logs of every container on the simulated nodes, by namespace, pod and container."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, str], dict[str, list[ContainerLog]]] = {}

    def started(self, namespace: str, pod: str, container: str) -> ContainerLog:
        """A new run; the run before is kept, older ones are not."""
        runs = self._logs.setdefault((namespace, pod), {}).setdefault(container, [])
        log = ContainerLog()
        if runs:
            runs[-1].end()
        runs[:] = [*runs[-1:], log]
        return log

    def ended(self, namespace: str, pod: str, container: str) -> None:
        log = self.find(namespace, pod, container)
        if log is not None:
            log.end()

    def find(self, namespace: str, pod: str, container: str, *, previous: bool = False) -> ContainerLog | None:
        runs = self._logs.get((namespace, pod), {}).get(container, [])
        if previous:
            return runs[0] if len(runs) > 1 else None
        return runs[-1] if runs else None

    def forget(self, namespace: str, pod: str) -> None:
        """The pod is gone."""
        for runs in self._logs.pop((namespace, pod), {}).values():
            for log in runs:
                log.end()


async def read_log(log: ContainerLog, query: LogQuery) -> AsyncIterator[bytes]:
    """The bytes of a log as asked for, line by line; with `follow`, until the run ends."""
    left = query.limit
    seen = log.written
    lines: list[Line] = [line for line in log.lines if query.since is None or line[0] >= query.since]
    if query.tail is not None:
        lines = lines[len(lines) - query.tail :] if query.tail < len(lines) else lines
    while True:
        for at, text in lines:
            data = (f"{_stamp(at)} ".encode() + text) if query.timestamps else text
            if left is not None:
                data = data[:left]
                left -= len(data)
            if data:
                yield data
            if left == 0:
                return
        if not query.follow:
            return
        await log.wait_past(seen)
        new = log.written - seen
        if new == 0:
            return
        lines = list(log.lines)[-new:]
        seen = log.written


def _stamp(at: datetime) -> str:
    """With nanoseconds, as container runtimes write it."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"
