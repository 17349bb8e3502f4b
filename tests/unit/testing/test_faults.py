"""Streams that are late, and answers that a test chooses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import Cause
from kubewright.testing import FaultyTransport, status


class Endless:
    """A stream that says the same again and again."""

    status = 200
    headers: Mapping[str, str] = {}

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            yield b"{}\n"

    async def read(self) -> bytes:
        return b"{}\n"


class Server:
    async def send(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(status=200, headers={}, body=b"{}")

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        yield Endless()

    async def close(self) -> None:
        return None


def watch(path: str) -> HttpRequest:
    return HttpRequest(method="GET", path=path)


async def test_only_the_chosen_streams_are_late() -> None:
    faults = FaultyTransport(Server())
    async with faults.stream(watch("/api/v1/pods")) as pods, faults.stream(watch("/api/v1/nodes")) as nodes:
        late, prompt = aiter(pods.chunks()), aiter(nodes.chunks())
        faults.hold_streams(lambda request: request.path.endswith("/pods"))

        held = asyncio.ensure_future(anext(late))
        assert await anext(prompt) == b"{}\n"
        assert not held.done()

        faults.release_streams()
        assert await held == b"{}\n"


async def test_without_a_choice_every_stream_is_late() -> None:
    faults = FaultyTransport(Server())
    async with faults.stream(watch("/api/v1/pods")) as pods, faults.stream(watch("/api/v1/nodes")) as nodes:
        faults.hold_streams()
        held = [asyncio.ensure_future(anext(aiter(stream.chunks()))) for stream in (pods, nodes)]
        for _ in range(10):
            await asyncio.sleep(0)
        assert not any(one.done() for one in held)

        faults.release_streams()
        assert await asyncio.gather(*held) == [b"{}\n", b"{}\n"]


def test_a_chosen_answer_can_say_its_causes() -> None:
    answer = status(403, reason="Forbidden", causes=[Cause(reason="NamespaceTerminating")])

    assert answer.status == 403
    assert b'"reason": "NamespaceTerminating"' in answer.body
