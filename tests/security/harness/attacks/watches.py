"""Watches that nobody reads, and many of them."""

from __future__ import annotations

import asyncio

from tests.security.harness.attack import CONFIG_MAPS, Target, attack
from tests.security.harness.exchange import Answer, request_bytes


async def _watch(on: Target, count: int, query: str = "watch=1") -> None:
    for _ in range(count):
        connection = await on.connect()
        connection.writer.write(request_bytes("GET", f"{CONFIG_MAPS}?{query}"))
        await connection.reader.readuntil(b"\r\n\r\n")
        connection.reader._transport.pause_reading()  # type: ignore[attr-defined]


async def _one_map(on: Target) -> None:
    await on.post(CONFIG_MAPS, {"metadata": {"name": "watched"}, "data": {"a": "b"}})


async def _updates(on: Target, count: int, size: int) -> Answer:
    answer = Answer(0)
    for number in range(count):
        answer = await on.patch(f"{CONFIG_MAPS}/watched", {"data": {"a": f"{number}" + "x" * size}})
    return answer


@attack(by="editor", prepare=_one_map, seconds=5)
async def unread(on: Target) -> Answer:
    """Ten watches that nobody reads, and three hundred updates of a megabyte."""
    await _watch(on, 10)
    return await _updates(on, 300, 900_000)


@attack(by="editor", prepare=_one_map, seconds=5)
async def unread_as_metadata(on: Target) -> Answer:
    """Watches in five forms, each of which is encoded on its own."""
    await _watch(on, 10)
    for accept in (
        "application/json;as=Table;g=meta.k8s.io;v=v1",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    ):
        connection = await on.connect()
        connection.writer.write(request_bytes("GET", f"{CONFIG_MAPS}?watch=1", headers={"Accept": accept}))
        await connection.reader.readuntil(b"\r\n\r\n")
        connection.reader._transport.pause_reading()  # type: ignore[attr-defined]
    return await _updates(on, 200, 900_000)


@attack(by="editor", prepare=_one_map, seconds=5, connections=300)
async def many(on: Target) -> Answer:
    """Three hundred watches and ten updates of a megabyte."""
    await _watch(on, 300)
    return await _updates(on, 5, 900_000)


@attack(by="editor", prepare=_one_map, seconds=5, connections=100)
async def many_with_selectors(on: Target) -> Answer:
    """A hundred watches with selectors of a thousand requirements each."""
    selector = ",".join(f"l{n}!=v" for n in range(1000))
    await _watch(on, 100, f"watch=1&labelSelector={selector}")
    return await _updates(on, 5, 1000)


async def _old_version(on: Target) -> None:
    await _one_map(on)
    await _updates(on, 100, 500_000)


@attack(by="editor", prepare=_old_version, seconds=5)
async def from_the_beginning(on: Target) -> Answer:
    """Fifty watches that want all of a long history."""
    await _watch(on, 50, "watch=1&resourceVersion=1")
    await asyncio.sleep(1)
    return await on.get("/version")


@attack(by="editor", prepare=_one_map)
async def websockets(on: Target) -> Answer:
    """Watches by WebSocket that send frames without end."""
    connection = await on.connect()
    head = (
        b"GET " + CONFIG_MAPS.encode() + b"?watch=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
        b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    answer = await connection.ask(head)
    await connection._send(b"\x82\xff\x00\x00\x00\x00\x7f\xff\xff\xff\x00\x00\x00\x00" + b"a" * 2_900_000)
    return answer
