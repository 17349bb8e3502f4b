"""Many requests at a time that wait for somebody else, and servers whose answers have no end.

Covers: kubewright.apiserver.front.router, kubewright.apiserver.outbound.http_client, kubewright.apiserver.proxy
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.security.spending import spending

from kubewright.apiserver.front.router import MAX_IN_FLIGHT
from kubewright.apiserver.kinds.access import Decision
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.outbound.http_client import Destination, HttpClient, HttpClientError
from kubewright.apiserver.proxy.reverse_proxy import response_headers
from kubewright.apiserver.server import ApiServer
from kubewright.apiserver.wire.requests import Peer, Request, RequestInfo
from kubewright.apiserver.wire.responses import Response
from kubewright.apiserver.wire.users import ADMIN, User


class EverybodyMay:
    """Access for all; the user is the one that the header says."""

    def user_of(self, request: Request) -> User:
        user = ADMIN if request.header("user") == "admin" else User("jo", ("developers",))
        request.authenticated = user
        return user

    def decide(self, user: User, info: RequestInfo) -> Decision:
        return Decision(True)


def request(path: str, *, user: str = "jo") -> Request:
    return Request("GET", path, {}, {"user": user}, b"", Peer(), path)


async def test_too_many_requests_at_a_time_are_told_to_come_back() -> None:
    server = ApiServer(access=EverybodyMay())
    waiting, release = asyncio.Semaphore(0), asyncio.Event()

    async def hold(call: Call) -> Response:
        waiting.release()
        await release.wait()
        return Response(200, b"{}", "application/json")

    server.router._verbs = {**server.router._verbs, "get": hold}
    path = "/api/v1/namespaces/default/configmaps/a"
    tasks = [asyncio.create_task(server.router.handle(request(path))) for _ in range(MAX_IN_FLIGHT)]
    for _ in tasks:
        await waiting.acquire()

    refused = await server.router.handle(request(path))
    probe = await server.router.handle(request("/healthz"))
    listed = asyncio.create_task(server.router.handle(request(path, user="admin")))
    await waiting.acquire()
    release.set()

    assert isinstance(refused, Response)
    assert (refused.code, refused.body) == (429, b"Too many requests, please try again later.\n")
    assert refused.headers["Retry-After"] == "1"
    assert isinstance(probe, Response)
    assert probe.code != 429
    assert {reply.code for reply in await asyncio.gather(*tasks, listed) if isinstance(reply, Response)} == {200}
    again = await server.router.handle(request(path))
    assert isinstance(again, Response)
    assert again.code == 200


Serve = Callable[[bytes], Awaitable[Destination]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    servers: list[asyncio.Server] = []

    async def start(answer: bytes) -> Destination:
        async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()

        server = await asyncio.start_server(respond, "127.0.0.1", 0)
        servers.append(server)
        return Destination(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", secure=False)

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_200_000, id="an endless header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"a:\r\n" * 200_000 + b"\r\n", id="many headers"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" * 60_000, id="many interim responses"),
    ],
)
async def test_a_head_without_end_is_not_read_to_it(serve: Serve, head: bytes) -> None:
    client = HttpClient()

    with spending() as spent, pytest.raises(HttpClientError):
        await client.request(await serve(head), "GET", "/", timeout=60)
    await client.close()

    assert spent.bytes < 20_000_000


async def test_a_body_in_tiny_chunks_takes_the_memory_of_its_bytes(serve: Serve) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    destination = await serve(head + b"2\r\nab\r\n" * 50_000 + b"0\r\n\r\n")
    client = HttpClient()

    with spending() as spent:
        response = await client.request(destination, "GET", "/")
        assert len(await response.body(1_000_000)) == 100_000
    await client.close()

    assert spent.bytes < 4_000_000


async def test_a_header_that_is_repeated_is_joined_once(serve: Serve) -> None:
    client = HttpClient()
    repeated = (b"X-A: " + b"a" * 90 + b"\r\n") * 9_000
    response = await client.request(
        await serve(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + repeated + b"\r\n"), "GET", "/"
    )

    assert response_headers(response)["X-A"].count("\n") == 8_999
    response.close()
    await client.close()
