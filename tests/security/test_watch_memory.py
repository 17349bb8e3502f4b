"""The history of changes, the objects, and the events for clients that do not read are bounded in bytes.

Covers: kubewright.apiserver.storage, kubewright.apiserver.verbs.watch
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.security.spending import spending

from kubewright.apiserver.server import ApiServer
from kubewright.apiserver.storage.store import Compacted, SpaceExceeded, Store
from kubewright.apiserver.verbs.watch import WatchStream
from kubewright.apiserver.wire.requests import Peer, Request
from kubewright.testing import time_limit

MEBIBYTE = 1024 * 1024
MAPS = "/api/v1/namespaces/default/configmaps"


def test_the_history_of_large_objects_is_shorter() -> None:
    store = Store(history_bytes=10 * MEBIBYTE)
    table, quiet = store.table("/large"), store.table("/quiet")
    quiet.put("a", b"small", store.next_version())
    value = bytearray(MEBIBYTE)

    with spending() as spent:
        for number in range(200):
            value[0] = number
            table.put("a", bytes(value), store.next_version())

    assert spent.bytes < 20 * MEBIBYTE
    assert store.kept_bytes <= 10 * MEBIBYTE
    assert len(table.changes_since(store.version - 2)) == 2
    assert len(quiet.changes_since(1)) == 1
    with pytest.raises(Compacted, match="too old resource version: 3 "):
        table.changes_since(3)


def test_what_is_dropped_is_counted_no_more() -> None:
    store = Store()
    table = store.table("/a")
    for number in range(10):
        table.put(f"{number}", b"x" * 100, store.next_version())
    table.delete("1", b"last", store.next_version())
    assert store.bytes == 900
    table.compact(store.version)
    assert store.kept_bytes == 0
    table.put("1", b"x", store.next_version())
    store.drop("/a")

    assert (store.bytes, store.kept_bytes) == (0, 0)


def test_a_full_store_takes_no_more_and_lets_things_go() -> None:
    store = Store(quota_bytes=1000)
    table = store.table("/a")
    table.put("a", b"x" * 900, store.next_version())

    with pytest.raises(SpaceExceeded, match="mvcc: database space exceeded"):
        table.put("b", b"x" * 101, store.next_version())
    assert table.get("b") is None
    table.put("a", b"x" * 800, store.next_version())
    table.put("b", b"x" * 200, store.next_version())


class Reader:
    """A sink whose client reads when the test says so."""

    def __init__(self) -> None:
        self.read = self.unread = b""
        self.ended = self.aborted = False

    def write(self, data: bytes) -> None:
        self.unread += data

    def end(self) -> None:
        self.ended = True

    def abort(self) -> None:
        self.aborted = True

    @property
    def backlog(self) -> int:
        return len(self.unread)

    @property
    def blocked(self) -> bool:
        return len(self.unread) > 65536

    def catch_up(self, stream: WatchStream) -> None:
        """Read everything."""
        while self.unread:
            self.read, self.unread = self.read + self.unread, b""
            stream.unblocked()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.read.splitlines()]


class Server:
    """An API server without a socket."""

    def __init__(self) -> None:
        self.api = ApiServer()

    async def send(self, method: str, target: str, body: object = None) -> Any:
        path, _, query = target.partition("?")
        words = dict(word.split("=") for word in query.split("&") if word)
        content = b"" if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        return await self.api.router.handle(Request(method, path, words, headers, content, Peer(), target))

    async def put(self, name: str, size: int, *, mark: str = "") -> None:
        tree = {"metadata": {"name": name}, "data": {"x": "x" * size, "mark": mark}}
        reply = await self.send("PUT", f"{MAPS}/{name}", tree)
        if reply.code == 404:
            reply = await self.send("POST", MAPS, tree)
        assert reply.code < 300, reply.body

    async def watch(self, query: str = "") -> tuple[WatchStream, Reader]:
        stream = await self.send("GET", f"{MAPS}?watch=1{query}")
        assert isinstance(stream, WatchStream)
        reader = Reader()
        stream.start(reader)
        return stream, reader


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    await server.api.loopback.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    yield server
    for stream in tuple(server.api.watches.streams):
        stream.disconnected()


async def test_initial_events_wait_for_the_client_and_come_in_order(server: Server) -> None:
    for number in range(40):
        await server.put(f"m-{number:02}", 10_000)
    stream, reader = await server.watch(
        "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    )
    assert reader.backlog < 100_000
    await server.put("m-00", 10, mark="later")
    reader.catch_up(stream)

    events = reader.events()
    assert [event["type"] for event in events] == ["ADDED"] * 40 + ["BOOKMARK", "MODIFIED"]
    assert events[-1]["object"]["data"]["mark"] == "later"
    assert stream.behind == 0


async def test_a_client_that_does_not_read_is_cut_off_at_a_few_megabytes(server: Server) -> None:
    stream, reader = await server.watch()
    with spending() as spent:
        for number in range(20):
            await server.put("large", 900_000, mark=str(number))
        await turns(server)

    assert reader.aborted
    assert stream not in server.api.watches.streams
    assert spent.bytes < 120 * MEBIBYTE  # of which the history has 64
    assert server.api.watches._behind == 0


async def test_all_clients_that_do_not_read_share_a_budget(server: Server) -> None:
    watches = [await server.watch() for _ in range(400)]
    for number in range(4):
        await server.put("large", 900_000, mark=str(number))
    await turns(server)

    ended = [reader.aborted for _, reader in watches].count(True)
    assert 200 < ended < 400
    assert server.api.watches._behind <= 96 * MEBIBYTE
    await asyncio.sleep(0)


async def test_a_client_that_reads_now_and_then_misses_nothing(server: Server) -> None:
    stream, reader = await server.watch()
    for number in range(15):
        await server.put("large", 500_000, mark=str(number))
        await turns(server)
        if number % 5 == 4:
            reader.catch_up(stream)

    assert [event["object"]["data"]["mark"] for event in reader.events()] == [str(number) for number in range(15)]


async def turns(server: Server) -> None:
    """Let the loop turn until all watches have their large events."""
    async with time_limit(60):
        while server.api.watches._turns:  # noqa: ASYNC110 - each turn of the loop is one of them
            await asyncio.sleep(0)


async def test_a_large_event_goes_to_one_watcher_in_each_turn_of_the_loop(server: Server) -> None:
    readers = [(await server.watch())[1] for _ in range(50)]

    await server.put("large", 900_000)

    served = [sum(bool(reader.unread) for reader in readers)]
    while served[-1] < len(readers):
        await asyncio.sleep(0)
        served.append(sum(bool(reader.unread) for reader in readers))
    assert max(after - before for before, after in itertools.pairwise(served)) == 1


async def test_small_events_do_not_overtake_large_ones(server: Server) -> None:
    stream, reader = await server.watch()
    await server.put("small", 1)
    await server.put("large", 900_000)
    await server.put("small", 2)
    await turns(server)
    reader.catch_up(stream)

    assert [event["object"]["metadata"]["name"] for event in reader.events()] == ["small", "large", "small"]
