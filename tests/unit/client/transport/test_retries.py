"""What is tried again, how often and after which wait; time is moved by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from kubewright.client.transport.retries import RetryingTransport
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import ConnectFailed, RequestTimeout, TransportError

VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE")
WRITES = VERBS[1:]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class HandClock:
    """Sleeping is noted and takes no time."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class StoppedClock(HandClock):
    """Sleeping never ends, so only a cancellation does."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.waiting.set()
        await asyncio.Event().wait()


class Lowest(Random):
    def random(self) -> float:
        return 0.0


class ScriptedStream:
    def __init__(self, response: HttpResponse) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._body = response.body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def read(self) -> bytes:
        return self._body


class ScriptedTransport:
    """A transport that plays a script, and repeats its last line for ever."""

    def __init__(self, *script: HttpResponse | TransportError) -> None:
        self._script = list(script)
        self.seen: list[HttpRequest] = []
        self.open_streams = 0
        self.closed = False

    def _next(self, request: HttpRequest) -> HttpResponse:
        self.seen.append(request)
        line = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if isinstance(line, TransportError):
            raise line
        return line

    async def send(self, request: HttpRequest) -> HttpResponse:
        return self._next(request)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        response = self._next(request)
        self.open_streams += 1
        try:
            yield ScriptedStream(response)
        finally:
            self.open_streams -= 1

    async def close(self) -> None:
        self.closed = True


def answer(code: int, retry_after: str | None = None, body: bytes = b"") -> HttpResponse:
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return HttpResponse(status=code, headers=headers, body=body)


def request(method: str = "GET") -> HttpRequest:
    return HttpRequest(method=method, path="/x", body=b"{}" if method in WRITES else None)


def retrying(
    transport: ScriptedTransport,
    clock: HandClock,
    *,
    attempts: int = 10,
    max_wait: float = 120.0,
    rng: Random | None = None,
) -> RetryingTransport:
    return RetryingTransport(transport, clock=clock, rng=rng or Random(1), attempts=attempts, max_wait=max_wait)


OK = answer(200)
BROKEN = TransportError("reset")
REFUSED = ConnectFailed("refused")


@pytest.mark.parametrize("method", VERBS)
@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
async def test_every_verb_waits_at_least_as_long_as_the_server_asks(method: str, code: int) -> None:
    transport, clock = ScriptedTransport(answer(code, "3"), answer(code, "5"), OK), HandClock()

    response = await retrying(transport, clock).send(request(method))

    assert response.status == 200
    assert len(transport.seen) == 3
    assert 3.0 <= clock.slept[0] <= 3.6
    assert 5.0 <= clock.slept[1] <= 6.0


@pytest.mark.parametrize("method", VERBS)
async def test_the_same_request_is_sent_each_time(method: str) -> None:
    transport = ScriptedTransport(answer(429, "1"), REFUSED, OK)
    asked = request(method)

    await retrying(transport, HandClock()).send(asked)

    assert [seen is asked for seen in transport.seen] == [True, True, True]


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
@pytest.mark.parametrize("method", VERBS)
async def test_without_a_time_to_wait_the_answer_is_returned_at_once(method: str, code: int) -> None:
    transport, clock = ScriptedTransport(answer(code), OK), HandClock()

    response = await retrying(transport, clock).send(request(method))

    assert response.status == code
    assert clock.slept == []


@pytest.mark.parametrize("code", [200, 301, 400, 401, 403, 404, 409, 410, 422])
async def test_other_statuses_are_never_retried(code: int) -> None:
    transport = ScriptedTransport(answer(code, "1"))

    response = await retrying(transport, HandClock()).send(request())

    assert response.status == code
    assert len(transport.seen) == 1


async def test_the_time_to_wait_may_be_a_date() -> None:
    transport, clock = ScriptedTransport(answer(503, "Thu, 01 Jan 2026 12:00:09 GMT"), OK), HandClock()

    await retrying(transport, clock, rng=Lowest()).send(request())

    assert clock.slept == [9.0]


async def test_the_time_to_wait_may_stand_in_the_status_only() -> None:
    body = json.dumps({"kind": "Status", "details": {"retryAfterSeconds": 4}}).encode()
    transport, clock = ScriptedTransport(answer(429, body=body), OK), HandClock()

    await retrying(transport, clock, rng=Lowest()).send(request("POST"))

    assert clock.slept == [4.0]


async def test_a_time_of_zero_still_waits_a_little() -> None:
    transport, clock = ScriptedTransport(answer(429, "0"), OK), HandClock()

    await retrying(transport, clock, rng=Lowest()).send(request())

    assert clock.slept == [0.05]


async def test_after_the_last_attempt_the_answer_is_returned() -> None:
    transport, clock = ScriptedTransport(answer(429, "1")), HandClock()

    response = await retrying(transport, clock, attempts=10).send(request())

    assert response.status == 429
    assert len(transport.seen) == 10


async def test_a_wait_beyond_max_wait_is_not_begun() -> None:
    transport, clock = ScriptedTransport(answer(429, "50")), HandClock()

    response = await retrying(transport, clock, max_wait=120.0, rng=Lowest()).send(request())

    assert response.status == 429
    assert clock.slept == [50.0, 50.0]


async def test_a_broken_connection_is_retried_for_reads_with_a_growing_short_wait() -> None:
    transport, clock = ScriptedTransport(BROKEN, BROKEN, BROKEN, OK), HandClock()

    response = await retrying(transport, clock, rng=Lowest()).send(request("GET"))

    assert response.status == 200
    assert clock.slept == [0.05, 0.1, 0.2]


@pytest.mark.parametrize("method", WRITES)
async def test_a_broken_connection_is_not_retried_for_writes(method: str) -> None:
    transport = ScriptedTransport(BROKEN, OK)

    with pytest.raises(TransportError, match="reset"):
        await retrying(transport, HandClock()).send(request(method))

    assert len(transport.seen) == 1


@pytest.mark.parametrize("method", VERBS)
async def test_a_connection_that_never_came_about_is_retried_for_every_verb(method: str) -> None:
    transport = ScriptedTransport(REFUSED, REFUSED, OK)

    response = await retrying(transport, HandClock()).send(request(method))

    assert response.status == 200
    assert len(transport.seen) == 3


@pytest.mark.parametrize(
    "error",
    [ConnectFailed("wrong CA", lasting=True), RequestTimeout("no answer")],
    ids=["lasting", "timeout"],
)
@pytest.mark.parametrize("method", VERBS)
async def test_what_cannot_get_better_and_what_took_too_long_is_raised_at_once(
    method: str, error: TransportError
) -> None:
    transport = ScriptedTransport(error, OK)

    with pytest.raises(TransportError) as caught:
        await retrying(transport, HandClock()).send(request(method))

    assert caught.value is error
    assert len(transport.seen) == 1


async def test_a_server_that_stays_away_is_reported_after_a_few_seconds_of_waiting() -> None:
    transport, clock = ScriptedTransport(REFUSED), HandClock()

    with pytest.raises(ConnectFailed):
        await retrying(transport, clock).send(request())

    assert len(transport.seen) == 10
    assert 4.0 < sum(clock.slept) < 8.0


async def test_cancelling_ends_the_wait_and_nothing_is_sent_after_it() -> None:
    transport, clock = ScriptedTransport(answer(429, "60"), OK), StoppedClock()
    task = asyncio.ensure_future(retrying(transport, clock).send(request()))
    await clock.waiting.wait()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert len(transport.seen) == 1


async def test_opening_a_stream_is_retried_after_refusals_and_breaks() -> None:
    body = json.dumps({"details": {"retryAfterSeconds": 2}}).encode()
    good = answer(200, body=b"line\n")
    transport, clock = ScriptedTransport(BROKEN, REFUSED, answer(429, "3"), answer(500, body=body), good), HandClock()

    async with retrying(transport, clock, rng=Lowest()).stream(request()) as stream:
        open_now = transport.open_streams
        chunks = [chunk async for chunk in stream.chunks()]

    assert chunks == [b"line\n"]
    assert clock.slept == [0.05, 0.1, 3.0, 2.0]
    assert open_now == 1
    assert transport.open_streams == 0


async def test_a_refused_stream_is_handed_on_with_its_body() -> None:
    transport = ScriptedTransport(answer(500, body=b"why"))

    async with retrying(transport, HandClock()).stream(request()) as stream:
        body = await stream.read()
        chunks = [chunk async for chunk in stream.chunks()]

    assert (stream.status, body, chunks) == (500, b"why", [b"why"])


async def test_a_stream_that_breaks_while_it_is_read_is_not_opened_again() -> None:
    transport = ScriptedTransport(answer(200))

    with pytest.raises(TransportError, match="cut"):
        async with retrying(transport, HandClock()).stream(request()):
            raise TransportError("cut")

    assert len(transport.seen) == 1
    assert transport.open_streams == 0


async def test_a_stream_that_cannot_be_opened_raises_the_last_error() -> None:
    transport = ScriptedTransport(REFUSED)

    with pytest.raises(ConnectFailed):
        async with retrying(transport, HandClock(), attempts=3).stream(request()):
            pytest.fail("no stream was opened")

    assert len(transport.seen) == 3


async def test_closing_closes_what_is_wrapped() -> None:
    transport = ScriptedTransport(OK)

    await retrying(transport, HandClock()).close()

    assert transport.closed
