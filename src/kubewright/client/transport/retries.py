"""Try a request again where that is safe and somebody asked for it.

    429, or 5xx with a time to wait     every verb, after at least that time: the server asks for it
    5xx without one                     returned at once: nobody knows whether it was done
    no connection came about            every verb, soon: nothing was executed
    the connection broke                reads only, soon: a write may have been executed
    no answer in time                   never: the caller's time is used up

Wraps any `Transport` and is one itself; the client always uses it. It has no opinion on statuses otherwise:
the last answer is handed on, and `answers` turns it into an error. An open stream that breaks is not
resumed here, because only `watch` knows from where.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import final

from kubewright._base.backoff import exponential, jittered
from kubewright._base.clock import Clock, SystemClock
from kubewright.client.transport.responses import retry_after
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream, Transport
from kubewright.errors import ConnectFailed, RequestTimeout, TransportError

__all__ = ("RetryingTransport",)

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
# Nine waits of this row are about six seconds: longer than a load balancer needs, shorter than a person's
# patience.
_FIRST_WAIT = 0.05
_LONGEST_WAIT = 1.0
_SPREAD = 0.2


@final
class RetryingTransport:
    """A transport that tries again, up to `attempts` times in all and `patience` seconds of waiting in all.

    A server that asks for a wait beyond the patience that is left gets none: its answer is returned at once.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock | None = None,
        rng: Random | None = None,
        attempts: int = 10,
        patience: float = 120.0,
    ) -> None:
        self._transport = transport
        self._clock = clock or SystemClock()
        self._rng = rng or Random()
        self._attempts = attempts
        self._patience = patience

    async def send(self, request: HttpRequest) -> HttpResponse:
        waited = 0.0
        attempt = 0
        while True:
            attempt += 1
            try:
                response = await self._transport.send(request)
            except TransportError as error:
                delay = self._delay_after_error(error, request, attempt, waited)
                if delay is None:
                    raise
            else:
                if response.status < 429:  # hot: nearly every answer leaves here
                    return response
                delay = self._delay_after_answer(response, attempt, waited)
                if delay is None:
                    return response
            await self._clock.sleep(delay)
            waited += delay

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        waited = 0.0
        attempt = 0
        while True:
            attempt += 1
            async with AsyncExitStack() as opened:
                try:
                    stream = await opened.enter_async_context(self._transport.stream(request))
                    stream, answer = await _refusal_of(stream)
                except TransportError as error:
                    delay = self._delay_after_error(error, request, attempt, waited)
                    if delay is None:
                        raise
                else:
                    delay = self._delay_after_answer(answer, attempt, waited) if answer else None
                    if delay is None:
                        yield stream
                        return
            await self._clock.sleep(delay)
            waited += delay

    async def close(self) -> None:
        await self._transport.close()

    def _delay_after_error(
        self, error: TransportError, request: HttpRequest, attempt: int, waited: float
    ) -> float | None:
        if isinstance(error, RequestTimeout):
            return None
        if isinstance(error, ConnectFailed):
            if error.lasting:
                return None
        elif request.method not in _READS:
            return None
        return self._within_patience(self._short_wait(attempt), attempt, waited)

    def _delay_after_answer(self, response: HttpResponse, attempt: int, waited: float) -> float | None:
        if response.status != 429 and response.status < 500:
            return None
        asked = retry_after(response, now=self._clock.now())
        if asked is None:
            return None
        # Never below the short wait: a server that says "0" to everybody would be asked in a busy loop.
        wait = max(asked, self._short_wait(attempt))
        return self._within_patience(jittered(wait, self._rng, _SPREAD), attempt, waited)

    def _short_wait(self, attempt: int) -> float:
        return jittered(exponential(_FIRST_WAIT, attempt - 1, cap=_LONGEST_WAIT), self._rng, _SPREAD)

    def _within_patience(self, delay: float, attempt: int, waited: float) -> float | None:
        if attempt >= self._attempts or waited + delay > self._patience:
            return None
        return delay


async def _refusal_of(stream: HttpStream) -> tuple[HttpStream, HttpResponse | None]:
    """The stream, and its whole answer if it is one that may ask for another attempt.

    The body is read for the time in its Status, so the stream handed on is one that has it already.
    """
    if stream.status != 429 and stream.status < 500:
        return stream, None
    body = await stream.read()
    return _ReadStream(stream, body), HttpResponse(status=stream.status, headers=stream.headers, body=body)


@final
class _ReadStream:
    """A stream whose body has been read."""

    def __init__(self, stream: HttpStream, body: bytes) -> None:
        self.status: int = stream.status
        self.headers: Mapping[str, str] = stream.headers
        self._body = body

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._body:
            yield self._body

    async def read(self) -> bytes:
        return self._body
