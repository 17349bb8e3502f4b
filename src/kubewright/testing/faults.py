"""A transport that fails on command: no network, chosen answers, streams cut in the middle.

    faults = FaultyTransport(transport)
    faults.offline = True                        # as if the cable were pulled
    faults.answer = lambda request: status(429, retry_after=1) if request.method == "GET" else None
    faults.cut_streams()                         # every open watch breaks now
    faults.hold_streams()                        # events are late, until faults.release_streams()
    faults.hold_streams(lambda request: request.path.endswith("/pods"))

It wraps a real transport, so everything that is not made to fail goes to a real server. For tests of operators and of
this framework; nothing in here sleeps or draws random numbers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Literal, final

from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream, Transport
from kubewright.errors import Cause, ConnectFailed, TransportError

__all__ = ("FaultyTransport", "status")


def status(
    code: int,
    *,
    reason: str = "",
    message: str = "injected",
    causes: Sequence[Cause] = (),
    retry_after: int | None = None,
) -> HttpResponse:
    """An error response as an API server would send it."""
    headers = {"content-type": "application/json"}
    if retry_after is not None:
        headers["retry-after"] = str(retry_after)
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": _details(causes),
    }
    return HttpResponse(status=code, headers=headers, body=json.dumps(body).encode())


def _details(causes: Sequence[Cause]) -> dict[str, list[dict[str, str]]]:
    shown = [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]
    return {"causes": shown} if shown else {}


def _every(_: HttpRequest) -> bool:
    return True


@final
class FaultyTransport:
    """Fails as the test says, else passes requests to the transport inside."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.offline = False
        """True: nothing gets through, open streams break."""
        self.answer: Callable[[HttpRequest], HttpResponse | None] | None = None
        """Called before each request: what it returns is the response, None lets the request pass."""
        self.requests: list[HttpRequest] = []
        """Everything that was let through, oldest first."""
        self.forbidden: list[str] = []
        """The messages with which RBAC denied a request, each once."""
        self._streams: set[asyncio.Event] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._holding: Callable[[HttpRequest], bool] = _every

    def hold_streams(self, only: Callable[[HttpRequest], bool] | None = None) -> None:
        """Hold back every chunk of every stream, as if its events were delayed.

        `only` chooses streams by their request: `lambda request: request.path.endswith("/pods")`.
        """
        self._holding = only or _every
        self._flowing.clear()

    def release_streams(self) -> None:
        """Deliver what was held back."""
        self._flowing.set()

    def cut_streams(self) -> int:
        """Break every open stream now; how many there were."""
        for cut in self._streams:
            cut.set()
        return len(self._streams)

    def go_offline(self) -> None:
        """Pull the cable: streams break, and every request fails until `offline` is False again."""
        self.offline = True
        self.cut_streams()

    async def send(self, request: HttpRequest) -> HttpResponse:
        answer = self._fault(request)
        if answer is not None:
            return answer
        self.requests.append(request)
        response = await self._transport.send(request)
        if response.status == 403:
            self._note_forbidden(response.body)
        return response

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        answer = self._fault(request)
        if answer is not None:
            yield _CannedStream(answer)
            return
        self.requests.append(request)
        cut = asyncio.Event()
        async with self._transport.stream(request) as stream:
            self._streams.add(cut)
            try:
                yield _FaultyStream(stream, cut, partial(self._flows, request), self._note_forbidden)
            finally:
                self._streams.discard(cut)

    async def close(self) -> None:
        await self._transport.close()

    async def _flows(self, request: HttpRequest) -> None:
        """Return when chunks of this stream may be passed on."""
        while not self._flowing.is_set() and self._holding(request):
            await self._flowing.wait()

    def _fault(self, request: HttpRequest) -> HttpResponse | None:
        if self.offline:
            raise ConnectFailed(f"{request}: the network is down (injected)")
        return self.answer(request) if self.answer is not None else None

    def _note_forbidden(self, body: bytes) -> None:
        """Quotas, webhooks and terminating namespaces answer 403 too; only RBAC says that a user cannot do it."""
        message = json.loads(body).get("message", "") if body.startswith(b"{") else ""
        if 'User "' in message and '" cannot ' in message and message not in self.forbidden:
            self.forbidden.append(message)


@final
class _CannedStream:
    """A stream whose response the test chose."""

    def __init__(self, response: HttpResponse) -> None:
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers
        self._body = response.body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def read(self) -> bytes:
        return self._body


@final
class _FaultyStream:
    """A stream that breaks when `cut` is set, and waits for `flows` before it passes a chunk on."""

    def __init__(
        self,
        stream: HttpStream,
        cut: asyncio.Event,
        flows: Callable[[], Awaitable[None]],
        note_forbidden: Callable[[bytes], None],
    ) -> None:
        self._stream = stream
        self._cut = cut
        self._flows = flows
        self._note_forbidden = note_forbidden
        self.status: int = stream.status
        self.headers: Mapping[str, str] = stream.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._stream.chunks())
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            while True:
                arriving = asyncio.ensure_future(anext(chunks))
                try:
                    await asyncio.wait({arriving, cut}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not arriving.done():
                        arriving.cancel()
                        # Left running, it would still hold the stream when the caller closes it.
                        await asyncio.gather(arriving, return_exceptions=True)
                if self._cut.is_set():
                    raise TransportError("the connection was cut (injected)")
                try:
                    chunk = arriving.result()
                except StopAsyncIteration:
                    return
                await self._held(cut)
                yield chunk
        finally:
            cut.cancel()

    async def read(self) -> bytes:
        body = await self._stream.read()
        if self.status == 403:
            self._note_forbidden(body)
        return body

    async def _held(self, cut: asyncio.Task[Literal[True]]) -> None:
        flowing = asyncio.ensure_future(self._flows())
        try:
            await asyncio.wait({flowing, cut}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            flowing.cancel()
        if self._cut.is_set():
            raise TransportError("the connection was cut (injected)")
