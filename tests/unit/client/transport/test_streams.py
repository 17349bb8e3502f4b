"""Streams of both transports: chunks as they come, cuts, silence, and early ends.

Covers: kubewright.client.transport
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import warnings

import pytest
from tests.unit.client.transport.rude_server import CHUNKED, Wire, get, says, stall, stall_in_body

from kubewright.errors import RequestTimeout, TransportError

IDLE = 0.5
"""Seconds to wait where something has to come first in time: a busy machine may keep this process waiting as well."""


async def test_chunks_come_as_they_are_sent(wire: Wire) -> None:
    turns: asyncio.Queue[bytes] = asyncio.Queue()

    async def script(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED)
        while data := await turns.get():
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async with wire.talking(script) as (server, transport), transport.stream(get("/watch")) as stream:
        chunks = stream.chunks()
        turns.put_nowait(b"one\n")
        first = await anext(chunks)
        turns.put_nowait(b"two\n")
        second = await anext(chunks)
        turns.put_nowait(b"")
        rest = [chunk async for chunk in chunks]

    assert (stream.status, first, second, rest) == (200, b"one\n", b"two\n", [])
    assert stream.headers["transfer-encoding"] == "chunked"
    assert b"Accept-Encoding: identity\r\n" in server.heads[0]


@pytest.mark.parametrize("then", ["close", "reset"])
async def test_a_stream_that_is_cut_between_chunks_gives_an_error_and_no_end(wire: Wire, then: str) -> None:
    got_one = asyncio.Event()

    async def script(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + b"5\r\nhello\r\n")
        await got_one.wait()
        await says(b"", then=then)(head, reader, writer)

    async with wire.talking(script) as (_, transport), transport.stream(get()) as stream:
        chunks = stream.chunks()
        first = await anext(chunks)
        got_one.set()
        with pytest.raises(TransportError) as caught:
            await anext(chunks)

    assert first == b"hello"
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, RequestTimeout)


async def test_a_compressed_stream_is_unpacked_though_none_was_asked_for(wire: Wire) -> None:
    body = gzip.compress(b"line\n")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)

    async with wire.talking(says(head + body)) as (_, transport), transport.stream(get()) as stream:
        chunks = [chunk async for chunk in stream.chunks()]

    assert b"".join(chunks) == b"line\n"


async def test_silence_while_the_reader_is_busy_is_not_the_servers(wire: Wire) -> None:
    flood = b"x" * (4 * 1024 * 1024)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(flood) + flood

    async with wire.talking(says(answer)) as (_, transport), transport.stream(get(idle_timeout=IDLE)) as stream:
        chunks = stream.chunks()
        first = await anext(chunks)
        pause = asyncio.Event()
        asyncio.get_running_loop().call_later(1.2 * IDLE, pause.set)
        await pause.wait()
        rest = [chunk async for chunk in chunks]

    assert len(first) + sum(map(len, rest)) == len(flood)


async def test_leaving_a_stream_early_closes_its_connection(wire: Wire) -> None:
    async with wire.talking(stall_in_body) as (server, transport):
        async with transport.stream(get()) as stream:
            first = await anext(stream.chunks())

        await server.closed_by_client.wait()

    assert first == b"hello"


async def test_reading_the_rest_of_a_stream_is_bounded(wire: Wire) -> None:
    sent = 0

    async def script(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 500 Oops\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"x" * 65536)
                sent += 65536
                await writer.drain()
        raise ConnectionResetError

    async with wire.talking(script) as (server, transport):
        async with transport.stream(get()) as stream:
            body = await stream.read()
        await server.closed_by_client.wait()

    assert stream.status == 500
    assert 1024 * 1024 <= len(body) <= 2 * 1024 * 1024


async def test_reading_the_rest_of_a_stalled_stream_is_a_timeout(wire: Wire) -> None:
    async with wire.talking(stall_in_body) as (_, transport), transport.stream(get(timeout=IDLE)) as stream:
        with pytest.raises(RequestTimeout, match="no complete response"):
            await stream.read()

    assert stream.status == 200


async def test_two_hundred_streams_are_open_at_once(wire: Wire) -> None:
    async with wire.talking(stall_in_body) as (server, transport), contextlib.AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(transport.stream(get())) for _ in range(200)]
        firsts = [await anext(stream.chunks()) for stream in streams]

    assert firsts == [b"hello"] * 200
    assert server.connections == 200


async def test_a_stream_whose_headers_do_not_come_is_a_timeout(wire: Wire) -> None:
    async with wire.talking(stall) as (server, transport):
        with pytest.raises(RequestTimeout, match=r"no complete response from .* within 0\.05 s"):
            async with transport.stream(get(timeout=0.05, idle_timeout=60.0)):
                pytest.fail("no headers came")

        await server.closed_by_client.wait()

    assert server.connections == 1


async def test_a_silent_stream_is_a_timeout_after_its_last_chunk(wire: Wire) -> None:
    async with wire.talking(stall_in_body) as (_, transport), transport.stream(get(idle_timeout=IDLE)) as stream:
        chunks = stream.chunks()
        first = await anext(chunks)
        with pytest.raises(RequestTimeout, match=r"has been silent for 0\.5 s"):
            await anext(chunks)

    assert first == b"hello"


async def test_a_stream_may_outlive_the_time_for_its_headers(wire: Wire) -> None:
    go_on = asyncio.Event()

    async def script(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED)
        await go_on.wait()
        writer.write(b"4\r\nlate\r\n0\r\n\r\n")

    async with wire.talking(script) as (_, transport), transport.stream(get(timeout=IDLE)) as stream:
        asyncio.get_running_loop().call_later(1.2 * IDLE, go_on.set)
        chunks = [chunk async for chunk in stream.chunks()]

    assert chunks == [b"late"]


async def test_closing_leaves_nothing_behind_for_the_collector_to_complain_about(wire: Wire) -> None:
    gc.collect()
    async with wire.talking(stall_in_body) as (_, transport), transport.stream(get()) as stream:
        await anext(stream.chunks())
        await transport.close()

    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        del transport, stream
        gc.collect()

    assert [str(complaint.message) for complaint in complaints] == []
