"""Sends requests at random, one after the other, and looks after each: was it answered, and what did it cost?

A slice of requests has a server of its own, so that a failure depends on those before it in the slice and on nothing
else. Most slices have the API server alone; every fifth has controllers, a scheduler and a node as well.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

from tests.scenarios.embedded.requests_at_random import Operation, operations_of
from tests.security.harness.catalogue import peers_of
from tests.security.harness.exchange import Answer, HttpConnection, Peer, request_bytes
from tests.security.harness.fuzzing.generator import FuzzedRequest, RequestGenerator
from tests.security.harness.limits import HOLD_LIMIT, MEMORY_LIMIT
from tests.security.harness.watched_process import Cost, WatchedProcess

__all__ = ("Failure", "FuzzResult", "Sender", "document", "documented_operations", "fault_of", "fuzz", "send_all")

_PATIENCE: Final = 0.05
"""Seconds for an answer to something that is no whole request."""
_DEADLINE: Final = 20.0
_LARGEST_STATE: Final = 300_000_000
"""Bytes that a server may have grown by, from all requests together, before the slice goes on with a fresh one."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A request after which a rule was broken, and those that were sent before it to the same server."""

    fault: str
    place: str
    alone: bool
    requests: tuple[FuzzedRequest, ...]
    answer: str
    cost: Cost

    def write(self, folder: Path, name: str) -> Path:
        """Keep it in a file, to be sent again with `replay`."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.json"
        tree = {
            "fault": self.fault,
            "place": self.place,
            "alone": self.alone,
            "answer": self.answer,
            "requests": [request.to_tree() for request in self.requests],
        }
        path.write_text(json.dumps(tree, indent=1) + "\n")
        return path

    @classmethod
    def read(cls, path: Path) -> Failure:
        tree = json.loads(path.read_text())
        requests = tuple(FuzzedRequest.from_tree(each) for each in tree["requests"])
        return cls(tree["fault"], tree["place"], tree["alone"], requests, tree["answer"], Cost(0, 0, 0, 0, 0))


@dataclass(slots=True)
class FuzzResult:
    """What came of all requests."""

    sent: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0
    largest: int = 0
    failures: list[Failure] = field(default_factory=list)
    repeated: Counter[str] = field(default_factory=Counter)
    """How often a failure was seen again, by fault and place."""

    def __str__(self) -> str:
        return (
            f"{self.sent:7} requests, longest hold {self.longest * 1000:.0f} ms, most memory "
            f"{self.largest / 1e6:.0f} MB, {len(self.failures)} failures"
        )


@final
class Sender:
    """Keeps a connection for each user and sends requests on it."""

    def __init__(self, watched: WatchedProcess) -> None:
        self._watched = watched
        self._peers: dict[str, Peer] = peers_of(watched.ready, "apiserver")
        self._open: dict[str, HttpConnection] = {}

    async def send(self, request: FuzzedRequest) -> Answer | None:
        """The answer; None if there was none in time."""
        connection = self._open.pop(request.who, None)
        fresh = connection is None or not connection.usable or request.broken
        if connection is None or fresh:
            if connection is not None:
                connection.close()
            connection = await self._peers[request.who].connect()
        try:
            async with asyncio.timeout(_PATIENCE if request.broken else _DEADLINE):
                answer = await connection.ask(request.data, endless=request.endless)
        except TimeoutError:
            connection.close()
            return Answer(0) if request.broken and self._watched.held < 1 else None
        if answer.code == 0 and not fresh and self._watched.alive:
            # The server had closed it meanwhile, as it may.
            connection.close()
            return await self.send(request)
        if connection.usable and not request.broken and not request.endless:
            self._open[request.who] = connection
        else:
            connection.close()
        return answer

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()


async def document(peer: Peer, path: str = "") -> Any:
    """An OpenAPI document of the server, or the list of them."""
    connection = await peer.connect()
    connection.writer.write(request_bytes("GET", f"/openapi/v3{path}"))
    head = await connection.reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    tree = json.loads(await connection.reader.readexactly(length))
    connection.close()
    return tree


async def documented_operations(peer: Peer) -> list[Operation]:
    """Every operation of the server's OpenAPI documents."""
    operations: list[Operation] = []
    for path in sorted((await document(peer))["paths"]):
        operations += operations_of(await document(peer, f"/{path}"))
    return operations


async def fuzz(
    seed: int, numbers: range, *, slice_size: int = 2_000, alone: bool | None = None, progress: bool = False
) -> FuzzResult:
    """Send the requests of these numbers. `alone`: without controllers or with them; as described if None."""
    result = FuzzResult()
    operations: list[Operation] = []
    for count, start in enumerate(range(numbers.start, numbers.stop, slice_size)):
        without = count % 5 != 4 if alone is None else alone
        slice_numbers = range(start, min(start + slice_size, numbers.stop))
        async with WatchedProcess("served_cluster", *(("--alone",) if without else ())) as watched:
            if not operations:
                operations = await documented_operations(peers_of(watched.ready, "apiserver")["admin"])
            generator = RequestGenerator(seed, operations)
            await send_all(watched, map(generator.request, slice_numbers), result, alone=without)
        if progress:
            print(result, flush=True)
    return result


async def send_all(
    watched: WatchedProcess, requests: Iterable[FuzzedRequest], result: FuzzResult, *, alone: bool
) -> None:
    """Send them, and add to the result what came of them."""
    sender, sent = Sender(watched), []
    await watched.begin()
    observing = asyncio.create_task(watched.observe(until=_DEADLINE))
    for request in requests:
        sent.append(request)
        watched.forget_peak()
        try:
            answer = await sender.send(request)
        except OSError:
            answer = None
        result.sent += 1
        result.codes[str(answer) if answer else "none"] += 1
        cost = watched.glance()
        result.longest = max(result.longest, cost.hold)
        result.largest = max(result.largest, cost.memory)
        fault = fault_of(watched, answer, cost)
        large = watched.grown > _LARGEST_STATE
        if fault:
            place = cost.place or (answer.body[:200].decode(errors="replace") if answer else "")
            _note(result, Failure(fault, place, alone, tuple(sent), str(answer), cost))
        if fault or large:
            sender.close()
            observing.cancel()
            if fault in ("died", "hung") or large:
                await watched.restart()
                sent.clear()
                sender = Sender(watched)
            else:
                await watched.begin()
            observing = asyncio.create_task(watched.observe(until=_DEADLINE))
    observing.cancel()
    sender.close()


def fault_of(watched: WatchedProcess, answer: Answer | None, cost: Cost) -> str:
    """The rule that was broken, if any."""
    if not watched.alive:
        return "died"
    if answer is None:
        return "hung"
    if answer.is_internal_error:
        return "internal error"
    if cost.hold > HOLD_LIMIT:
        return "held"
    return "memory" if cost.memory > MEMORY_LIMIT else ""


def _note(result: FuzzResult, failure: Failure) -> None:
    key = f"{failure.fault} {failure.place}"
    result.repeated[key] += 1
    if result.repeated[key] == 1:
        result.failures.append(failure)
