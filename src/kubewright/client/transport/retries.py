"""RetryingTransport: sends a request again where that is safe.

    429, or 5xx with Retry-After        every verb, after at least that time: the server asks for it
    5xx without Retry-After             returned at once: the server may have executed it
    no connection was established       every verb, soon: nothing was executed
    the connection broke                reads only, soon: a write may have been executed
    no response in time                 never: the caller's time is used up

The rules and the ten attempts are those of client-go (rest/with_retry.go; for broken connections rest/request.go, which
retries only GET); here a refused connection is retried for every verb. Wraps any `Transport` and is one itself;
`connect` and the manager always use it. The last response is returned as it is, and `transport.responses` turns it into
an error. A stream that breaks after it opened is not resumed here: only the cache's reflector knows from where.
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
# The nine delays add up to about six seconds: enough for a load balancer to notice a server that restarts, and not too
# long for a person at a terminal.
_INITIAL_DELAY = 0.05
_MAX_DELAY = 1.0
_JITTER = 0.2


@final
class RetryingTransport:
    """A transport that retries, up to `attempts` attempts and `max_wait` seconds of waiting in all.

    If the server asks for a longer wait than is left of `max_wait`, its response is returned at once.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock | None = None,
        rng: Random | None = None,
        attempts: int = 10,
        max_wait: float = 120.0,
    ) -> None:
        self._transport = transport
        self._clock = clock or SystemClock()
        self._rng = rng or Random()
        self._attempts = attempts
        self._max_wait = max_wait

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
                if response.status < 429:  # hot: nearly every response returns here
                    return response
                delay = self._delay_after_response(response, attempt, waited)
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
                    stream, response = await _read_error(stream)
                except TransportError as error:
                    delay = self._delay_after_error(error, request, attempt, waited)
                    if delay is None:
                        raise
                else:
                    delay = self._delay_after_response(response, attempt, waited) if response else None
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
        return self._within_limits(self._backoff_delay(attempt), attempt, waited)

    def _delay_after_response(self, response: HttpResponse, attempt: int, waited: float) -> float | None:
        if response.status != 429 and response.status < 500:
            return None
        requested = retry_after(response, now=self._clock.now())
        if requested is None:
            return None
        # Never below the back-off delay: a server that sends Retry-After: 0 would be called in a busy loop.
        wait = max(requested, self._backoff_delay(attempt))
        return self._within_limits(jittered(wait, self._rng, _JITTER), attempt, waited)

    def _backoff_delay(self, attempt: int) -> float:
        return jittered(exponential(_INITIAL_DELAY, attempt - 1, cap=_MAX_DELAY), self._rng, _JITTER)

    def _within_limits(self, delay: float, attempt: int, waited: float) -> float | None:
        if attempt >= self._attempts or waited + delay > self._max_wait:
            return None
        return delay


async def _read_error(stream: HttpStream) -> tuple[HttpStream, HttpResponse | None]:
    """The stream, and its complete response if that may ask for another attempt.

    The body is read for the retryAfterSeconds in its Status, so the stream that is returned has the body already.
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
