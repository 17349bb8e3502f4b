"""Many requests on one connection without waiting for answers."""

from __future__ import annotations

import asyncio

from tests.security.harness.attack import CONFIG_MAPS, Target, attack
from tests.security.harness.exchange import Answer, request_bytes


async def _unread(on: Target, data: bytes) -> Answer:
    """Send all of it, read nothing."""
    connection = await on.connect()
    connection.reader._transport.pause_reading()  # type: ignore[attr-defined]
    connection.writer.write(data)
    try:
        async with asyncio.timeout(5):
            await connection.writer.drain()
    except (TimeoutError, ConnectionError):
        pass
    await asyncio.sleep(1)
    return Answer(0)


async def _large_map(on: Target) -> None:
    await on.post(CONFIG_MAPS, {"metadata": {"name": "large"}, "data": {"a": "x" * 900_000}})


@attack(by="anonymous")
async def versions_unread(on: Target) -> Answer:
    """Half a megabyte of short requests, whose answers nobody reads."""
    return await _unread(on, b"GET /version HTTP/1.1\r\n\r\n" * 20_000)


@attack(by="anonymous")
async def openapi_unread(on: Target) -> Answer:
    """Requests for the largest document there is."""
    return await _unread(on, request_bytes("GET", "/openapi/v2") * 2_000)


@attack(by="anonymous")
async def refused_unread(on: Target) -> Answer:
    """Requests that are refused, each with a status."""
    return await _unread(on, request_bytes("GET", "/api/v1/pods") * 60_000)


@attack(by="editor", prepare=_large_map)
async def large_objects_unread(on: Target) -> Answer:
    """Requests for an object of a megabyte."""
    return await _unread(on, request_bytes("GET", f"{CONFIG_MAPS}/large") * 5_000)


@attack(by="anonymous", seconds=20)
async def versions_read(on: Target) -> Answer:
    """Short requests whose answers are read: others must have their turn."""
    connection = await on.connect()
    sending = asyncio.create_task(connection._send(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n" * 10_000))
    answer = Answer(0)
    for _ in range(10_000):
        answer = await connection.answer()
    await sending
    return answer


@attack(by="editor")
async def malformed_bodies(on: Target) -> Answer:
    """Posts whose bodies are all wrong, unread."""
    return await _unread(
        on, request_bytes("POST", CONFIG_MAPS, b"{", headers={"Content-Type": "application/json"}) * 20_000
    )


@attack(by="nobody")
async def reviews_unread(on: Target) -> Answer:
    """Reviews, each of which is evaluated."""
    body = b'{"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}'
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return await _unread(on, request_bytes("POST", path, body, headers={"Content-Type": "application/json"}) * 10_000)


@attack(by="anonymous")
async def compressed_unread(on: Target) -> Answer:
    """Requests for the largest document, compressed for each."""
    return await _unread(on, request_bytes("GET", "/openapi/v2", headers={"Accept-Encoding": "gzip"}) * 2_000)
