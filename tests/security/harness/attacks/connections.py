"""Many connections, slow ones, and ones that say nothing."""

from __future__ import annotations

import asyncio

from tests.security.harness.attack import CONFIG_MAPS, Target, attack
from tests.security.harness.exchange import Answer, HttpConnection, request_bytes


async def _many(on: Target, count: int) -> list[HttpConnection]:
    return list(await asyncio.gather(*(on.connect() for _ in range(count))))


@attack(by="anonymous")
async def silent(on: Target) -> Answer:
    """Three hundred connections that say nothing; somebody else asks."""
    await _many(on, 300)
    return await on.get("/version")


@attack(by="anonymous")
async def half_heads(on: Target) -> Answer:
    """Three hundred heads of sixty kilobytes that do not end."""
    for connection in await _many(on, 300):
        connection.writer.write(b"GET /version HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"a" * 8_000)
    await asyncio.sleep(1)
    return await on.get("/version")


@attack(by="anonymous")
async def half_bodies(on: Target) -> Answer:
    """A hundred bodies of three megabytes, all but the last byte, by nobody."""
    body = b" " * 2_900_000
    data = request_bytes("POST", CONFIG_MAPS, body, headers={"Content-Type": "application/json"})[:-1]
    connections = await _many(on, 100)
    async with asyncio.timeout(50):
        await asyncio.gather(*(connection._send(data) for connection in connections), return_exceptions=True)
    return await on.get("/version")


@attack(by="anonymous")
async def handshakes(on: Target) -> Answer:
    """Two hundred connections at once, each with a handshake, cut at once, again and again."""
    for _ in range(3):
        for connection in await _many(on, 100):
            connection.close()
    return await on.get("/version")


@attack(by="anonymous")
async def plain_text(on: Target) -> Answer:
    """Bytes without TLS on the port for TLS."""
    reader, writer = await asyncio.open_connection(on.peer.host, on.peer.port)
    try:
        writer.write(b"GET / HTTP/1.1\r\n\r\n" * 100_000)
        await writer.drain()
        await reader.read(100)
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()
    return await on.get("/version")
