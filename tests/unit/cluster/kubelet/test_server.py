"""The kubelet server, as an API server calls it."""

from __future__ import annotations

import asyncio
import ssl
import tracemalloc
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from tests.unit.cluster.kubelet.review_transport import ReviewTransport

from kubewright import Client
from kubewright._base.certificates import Authority
from kubewright.cluster.kubelet import server as server_module
from kubewright.cluster.kubelet.auth import KubeletAuth
from kubewright.cluster.kubelet.logs import ContainerLogs
from kubewright.cluster.kubelet.server import KubeletServer
from kubewright.testing import time_limit

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
async def logs() -> ContainerLogs:
    made = ContainerLogs()
    made.container_started("shop", "web", "main").write(NOW, ["one", "two"])
    return made


@pytest.fixture
async def server(logs: ContainerLogs) -> AsyncIterator[KubeletServer]:
    rights = {("apiserver", verb, "proxy") for verb in ("get", "create")}
    auth = KubeletAuth(Client(ReviewTransport(users={"secret": "apiserver", "other": "nobody"}, rights=rights)))
    server = KubeletServer(logs, auth=auth, authority=Authority.create("ca"))
    running = asyncio.create_task(server.run())
    await server.wait_ready()
    yield server
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def connect(server: KubeletServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    return await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting)


async def get(server: KubeletServer, target: str, *, method: str = "GET", token: str = "secret") -> tuple[str, str]:
    """The status line and the whole body, with the marks of its chunks."""
    reader, writer = await connect(server)
    writer.write(f"{method} {target} HTTP/1.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return head.split("\r\n")[0], body


async def test_a_log_is_sent_in_chunks(server: KubeletServer) -> None:
    status, body = await get(server, "/containerLogs/shop/web/main")

    assert status == "HTTP/1.1 200 OK"
    assert body == "4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n"


async def test_log_options_are_read_from_the_query(server: KubeletServer) -> None:
    _, body = await get(server, "/containerLogs/shop/web/main?tailLines=1&timestamps=true")

    assert "2030-01-01T00:00:00.000000000Z two\n" in body
    assert "one" not in body


async def test_a_missing_log_or_path_is_an_error(server: KubeletServer) -> None:
    assert (await get(server, "/containerLogs/shop/web/other"))[0] == "HTTP/1.1 404 Not Found"
    assert (await get(server, "/containerLogs/shop/web/main?previous=true"))[0] == "HTTP/1.1 400 Bad Request"
    assert (await get(server, "/containerLogs/shop/web/main?tailLines=x"))[0] == "HTTP/1.1 400 Bad Request"
    no_number = "9" * 5000
    assert (await get(server, f"/containerLogs/shop/web/main?sinceSeconds={no_number}"))[
        0
    ] == "HTTP/1.1 400 Bad Request"
    assert (await get(server, "/elsewhere"))[0] == "HTTP/1.1 404 Not Found"
    assert await get(server, "/healthz") == ("HTTP/1.1 200 OK", "ok")


async def test_without_sandboxes_exec_is_not_found(server: KubeletServer) -> None:
    status, _ = await get(server, "/exec/shop/web/main?command=ls", method="POST")

    assert status == "HTTP/1.1 404 Not Found"


async def test_a_follower_gets_new_lines_and_the_end(server: KubeletServer, logs: ContainerLogs) -> None:
    reader, writer = await connect(server)
    writer.write(
        b"GET /containerLogs/shop/web/main?follow=true&tailLines=0 HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n"
    )
    await reader.readuntil(b"\r\n\r\n")

    log = logs.find("shop", "web", "main")
    assert log is not None
    log.write(NOW, ["three"])
    assert await reader.readuntil(b"three\n\r\n") == b"6\r\nthree\n\r\n"
    logs.remove_pod("shop", "web")

    assert await reader.read() == b"0\r\n\r\n"
    writer.close()


async def test_a_follower_that_disconnects_is_dropped(server: KubeletServer) -> None:
    reader, writer = await connect(server)
    writer.write(
        b"GET /containerLogs/shop/web/main?follow=true&tailLines=0 HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n"
    )
    await reader.readuntil(b"\r\n\r\n")
    (answering,) = server._connections

    writer.transport.abort()

    async with time_limit(30):
        await answering
    assert not server._connections


async def test_a_malformed_request_is_rejected(server: KubeletServer) -> None:
    reader, writer = await connect(server)
    writer.write(b"\xff\xfe\r\n\r\n")

    assert await reader.read() == b""
    writer.close()
    assert (await get(server, "/healthz"))[1] == "ok"


async def test_a_caller_without_credentials_or_rights_is_refused(server: KubeletServer) -> None:
    for target in ("/containerLogs/shop/web/main", "/healthz", "/"):
        assert await get(server, target, token="") == ("HTTP/1.1 401 Unauthorized", "Unauthorized")
        status, body = await get(server, target, token="other")
        assert (status, body[:23]) == ("HTTP/1.1 403 Forbidden", "Forbidden (user=nobody,")


async def test_a_path_is_routed_as_it_is_authorized(server: KubeletServer) -> None:
    assert (await get(server, "/%63ontainerLogs/shop/web/main"))[0] == "HTTP/1.1 200 OK"
    for target in (
        "//containerLogs/shop/web/main",
        "/healthz/../containerLogs/shop/web/main",
        "/healthz%2f..%2fcontainerLogs/shop/web/main",
        "/containerLogs/shop/web/main/",
    ):
        assert (await get(server, target))[0] == "HTTP/1.1 404 Not Found"
    assert (await get(server, "http://127.0.0.1/healthz"))[0] == "HTTP/1.1 400 Bad Request"


async def test_held_connections_do_not_shut_others_out(server: KubeletServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_MAX_UNAUTHORIZED", 4)
    held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(12)]  # none begins TLS

    assert (await get(server, "/healthz"))[1] == "ok"
    assert len(server._connections) <= 4

    for _, writer in held:
        writer.close()


async def test_a_connection_that_is_served_does_not_count_as_unauthorized(
    server: KubeletServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_MAX_UNAUTHORIZED", 1)
    reader, writer = await connect(server)
    writer.write(
        b"GET /containerLogs/shop/web/main?follow=true&tailLines=0 HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n"
    )
    await reader.readuntil(b"\r\n\r\n")

    assert (await get(server, "/healthz"))[1] == "ok"
    assert (await get(server, "/healthz"))[1] == "ok"
    assert not reader.at_eof()
    writer.close()


async def test_what_a_follower_sends_is_not_kept(server: KubeletServer) -> None:
    reader, writer = await connect(server)
    writer.write(b"GET /containerLogs/shop/web/main?follow=true HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n")
    await reader.readuntil(b"two\n")

    tracemalloc.start()
    try:
        for _ in range(512):
            writer.write(bytes(65536))
            await writer.drain()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 4 * 1024 * 1024
    writer.transport.abort()
