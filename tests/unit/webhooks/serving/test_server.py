"""The webhook server: certificates come and go, connections stay."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.webhooks.reviews import review

from kubewright import Resource, Spec, Status, validate
from kubewright._base.certificates import Authority, KeyPair
from kubewright.api import definition_of
from kubewright.api.codec import encode_tree
from kubewright.errors import ConfigError
from kubewright.testing import time_limit
from kubewright.webhooks.serving.router import WebhookRouter
from kubewright.webhooks.serving.server import BODY_LIMIT, WebhookServer


class Web(Resource[Spec, Status], group="shop.example.io", version="v1"):
    """A web site."""


@validate(Web)
async def check(web: Web) -> None: ...


AUTHORITY = Authority.create("server tests")
BODY = encode_tree(review(definition_of(Web).gvk, {"metadata": {"name": "web"}}))


def pair(name: str) -> KeyPair:
    return AUTHORITY.server(name, hosts=("127.0.0.1",))


class StaticSource:
    """A source that is handed its certificates."""

    def __init__(self, given: KeyPair | None = None) -> None:
        self.pairs: asyncio.Queue[None] = asyncio.Queue()
        self.pair = given
        self.there = asyncio.Event()
        self.taken = asyncio.Semaphore(0)
        self.give(given)

    def give(self, given: KeyPair | None) -> None:
        self.pair = given
        if given is not None:
            self.there.set()
            self.pairs.put_nowait(None)

    async def current(self) -> tuple[bytes, bytes]:
        await self.there.wait()
        assert self.pair is not None
        while not self.pairs.empty():
            self.pairs.get_nowait()
        return self.pair.certificate, self.pair.key

    async def changed(self) -> None:
        self.taken.release()
        await self.pairs.get()

    def __str__(self) -> str:
        return "the test"


class Caller:
    """One TLS connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @property
    def name(self) -> str:
        """Who the server said it is."""
        shown: dict[str, Any] = self.writer.get_extra_info("peercert")
        return str(next(value for group in shown["subject"] for key, value in group if key == "commonName"))

    async def ask(self, body: bytes = BODY) -> int:
        lines = ("Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}")
        head = "\r\n".join((f"POST {check.path} HTTP/1.1", *lines, "", ""))
        self.writer.write(head.encode() + body)
        await self.writer.drain()
        async with time_limit(10):
            answer = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            length = next(int(line[16:]) for line in answer.splitlines() if line.startswith("Content-Length"))
            await self.reader.readexactly(length)
        return int(answer.split(" ")[1])


@asynccontextmanager
async def calling(server: WebhookServer) -> AsyncIterator[Caller]:
    context = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
    caller = Caller(*await asyncio.open_connection("127.0.0.1", server.port, ssl=context))
    yield caller
    caller.writer.close()


@asynccontextmanager
async def running(
    source: StaticSource, on_certificate: Callable[[bool], None] | None = None
) -> AsyncIterator[WebhookServer]:
    server = WebhookServer(WebhookRouter([check]), source, host="127.0.0.1", port=0, on_certificate=on_certificate)
    task = asyncio.create_task(server.run())
    try:
        yield server
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_it_is_ready_when_the_certificate_is_there() -> None:
    source = StaticSource()
    async with running(source) as server:
        await asyncio.sleep(0)
        assert server.problem == "there is no certificate yet; waiting for the test"

        source.give(pair("first"))
        async with time_limit(10):
            await server.wait_ready()

        assert server.problem is None
        async with calling(server) as caller:
            assert await caller.ask() == 200


async def test_a_new_certificate_is_for_new_connections_and_ends_no_old_one() -> None:
    source = StaticSource(pair("first"))
    async with running(source) as server:
        await server.wait_ready()
        await source.taken.acquire()
        async with calling(server) as old:
            assert (old.name, await old.ask()) == ("first", 200)

            source.give(pair("second"))
            await source.taken.acquire()

            async with calling(server) as new:
                assert (new.name, await new.ask()) == ("second", 200)
                assert await old.ask() == 200


async def test_a_certificate_that_does_not_fit_its_key_is_not_used() -> None:
    first, second = pair("first"), pair("second")
    source = StaticSource(first)
    told: list[bool] = []
    async with running(source, told.append) as server:
        await server.wait_ready()
        await source.taken.acquire()

        source.give(KeyPair(second.certificate, first.key))
        await source.taken.acquire()
        async with calling(server) as caller:
            assert (caller.name, await caller.ask()) == ("first", 200)

        source.give(second)
        await source.taken.acquire()
        async with calling(server) as caller:
            assert caller.name == "second"
    assert told == [True, False, True]


async def test_nonsense_instead_of_a_certificate_keeps_it_from_being_ready() -> None:
    source = StaticSource(KeyPair(b"nonsense", b"more"))
    async with running(source) as server:
        async with time_limit(10):
            await source.taken.acquire()

        assert server.problem == "the certificate from the test cannot be used: it is no PEM pair"


async def test_ten_megabytes_are_refused_and_the_next_request_works() -> None:
    source = StaticSource(pair("first"))
    async with running(source) as server:
        await server.wait_ready()
        async with calling(server) as caller:
            assert await caller.ask(b"x" * 10_000_000) == 413
            assert await caller.ask() == 200
    assert BODY_LIMIT < 10_000_000


async def test_a_port_in_use_is_reported_at_once() -> None:
    source = StaticSource(pair("first"))
    async with running(source) as server:
        await server.wait_ready()
        other = WebhookServer(WebhookRouter([check]), source, host="127.0.0.1", port=server.port)

        with pytest.raises(ConfigError, match=r"cannot listen on 127.0.0.1:.* it is in use"):
            other.open()


async def test_a_source_that_fails_ends_the_server_with_its_error() -> None:
    class FailingSource(StaticSource):
        async def run(self) -> None:
            raise ConfigError("the secret cannot be read")

    server = WebhookServer(WebhookRouter([check]), FailingSource(), host="127.0.0.1", port=0)

    with pytest.raises(ConfigError, match="the secret cannot be read"):
        await server.run()
    assert server.problem == "the server has stopped"
