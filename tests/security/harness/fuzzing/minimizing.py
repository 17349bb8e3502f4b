"""Makes a failure small: which of the requests before it are needed, and how much of the last one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from tests.security.harness.exchange import Answer
from tests.security.harness.fuzzing.generator import FuzzedRequest
from tests.security.harness.fuzzing.run import Failure, Sender, fault_of
from tests.security.harness.watched_process import Cost, WatchedProcess

__all__ = ("minimized", "replayed")

_ATTEMPTS: Final = 60
T = TypeVar("T")


async def replayed(requests: Sequence[FuzzedRequest], *, alone: bool) -> tuple[str, Answer | None, Cost]:
    """Send these to a fresh server: the fault of the last one, its answer and its cost."""
    async with WatchedProcess("served_cluster", *(("--alone",) if alone else ())) as watched:
        sender = Sender(watched)
        answer: Answer | None = None
        await watched.begin()
        observing = asyncio.create_task(watched.observe(until=20))
        for number, request in enumerate(requests):
            if number == len(requests) - 1:
                await watched.settle(seconds=2)
                await watched.begin()
            try:
                answer = await sender.send(request)
            except OSError:
                answer = None
            if not watched.alive:
                break
        if answer is not None:
            await watched.settle(seconds=5)
        cost = watched.glance()
        observing.cancel()
        sender.close()
        return fault_of(watched, answer, cost), answer, cost


async def minimized(failure: Failure) -> Failure:
    """The same failure with as few requests, and as small a last one, as some attempts find; itself if it is gone."""

    async def fails(requests: Sequence[FuzzedRequest]) -> bool:
        fault, _, _ = await replayed(requests, alone=failure.alone)
        return fault == failure.fault

    last = failure.requests[-1:]
    if await fails(last):
        requests: Sequence[FuzzedRequest] = last
    elif await fails(failure.requests[-3:]):  # the heart beats a moment after the answer
        requests = await _fewer(failure.requests[-3:], fails)
    elif await fails(failure.requests):
        requests = await _fewer(failure.requests, fails)
    else:
        return replace(failure, fault=f"{failure.fault} once")
    head, _, body = requests[-1].data.partition(b"\r\n\r\n")
    if body and not requests[-1].broken:

        async def still(smaller: Sequence[Any]) -> bool:
            return await fails((*requests[:-1], _with_body(requests[-1], head, bytes(smaller))))

        tree = _parsed(body)
        if tree is None:
            body = bytes(await _fewer(body, still))
        requests = (*requests[:-1], _with_body(requests[-1], head, body))
    return replace(failure, requests=tuple(requests))


async def _fewer(items: Sequence[T], fails: Callable[[Sequence[T]], Awaitable[bool]]) -> Sequence[T]:
    """Delta debugging: take away ever smaller parts for as long as it still fails."""
    part, attempts = len(items) // 2, 0
    while part and attempts < _ATTEMPTS:
        start = 0
        while start < len(items) and attempts < _ATTEMPTS:
            attempts += 1
            rest = (
                (*items[:start], *items[start + part :])
                if not isinstance(items, bytes)
                else items[:start] + items[start + part :]
            )
            if rest and await fails(rest):  # type: ignore[arg-type]
                items = rest  # type: ignore[assignment]
            else:
                start += part
        part //= 2
    return items


def _with_body(request: FuzzedRequest, head: bytes, body: bytes) -> FuzzedRequest:
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length:")]
    return request._replace(data=b"\r\n".join((*lines, b"Content-Length: %d" % len(body))) + b"\r\n\r\n" + body)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
