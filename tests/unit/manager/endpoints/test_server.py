"""The HTTP servers on loopback, and the pages they show."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kubewright._base.certificates import Authority, KeyPair, certificate_info
from kubewright._base.http.messages import Request, Response
from kubewright._base.metrics import Metrics
from kubewright._base.tasks import cancel_and_wait
from kubewright.client.client import Client
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import ConfigError, TransportError
from kubewright.manager.addresses import is_loopback, parse_address
from kubewright.manager.endpoints.handlers import debug_handler, health_handler, metrics_handler
from kubewright.manager.endpoints.healthz import Checks
from kubewright.manager.endpoints.metrics_authorizer import MetricsAuthorizer
from kubewright.manager.endpoints.server import Handler, Server
from kubewright.testing.clock import VirtualClock
from kubewright.webhooks.certificates.files import FileCertificates


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[Server]:
    server = Server("test", ("127.0.0.1", 0), handler)
    task = asyncio.create_task(server.run())
    await server.wait_ready()
    try:
        yield server
    finally:
        await cancel_and_wait(task)


async def ask(server: Server, target: str, *, method: str = "GET", host: str = "localhost") -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


async def test_probes_are_answered_over_http() -> None:
    async def bad() -> str:
        return "not yet"

    healthz, readyz = Checks("healthz"), Checks("readyz")
    readyz.add("cache", bad)
    async with serving(health_handler(healthz, readyz)) as server:
        assert await ask(server, "/healthz") == (200, "ok")
        assert (await ask(server, "/readyz?verbose"))[1].startswith("[-]cache failed: not yet\n")
        assert (await ask(server, "/readyz/cache"))[0] == 500
        assert (await ask(server, "/readyz?exclude=cache"))[0] == 200
        assert (await ask(server, "/other"))[0] == 404
        assert (await ask(server, "/healthz", method="POST"))[0] == 405
        assert await ask(server, "/healthz", method="HEAD") == (200, "")


async def test_metrics_are_shown_as_text() -> None:
    metrics = Metrics()
    metrics.counter("adds_total", "Adds.").child().inc()
    async with serving(metrics_handler(metrics)) as server:
        status, body = await ask(server, "/metrics")

        assert status == 200
        assert "adds_total 1.0" in body
        assert (await ask(server, "/"))[0] == 404


async def test_the_debug_handler_shows_its_parts_as_json_and_only_to_this_machine() -> None:
    async with serving(debug_handler({"tasks": lambda: ["one"], "queues": lambda: {"web": 3}})) as server:
        status, body = await ask(server, "/debug")
        assert status == 200
        assert json.loads(body) == {"tasks": ["one"], "queues": {"web": 3}}
        assert json.loads((await ask(server, "/debug/queues", host="127.0.0.1:99"))[1]) == {"web": 3}
        assert (await ask(server, "/debug", host="evil.example.com"))[0] == 403
        assert (await ask(server, "/debug/other"))[0] == 404
        assert (await ask(server, "/debug", method="DELETE"))[0] == 405


async def test_a_server_with_certificates_speaks_tls_and_takes_new_ones_as_they_come(tmp_path: Path) -> None:
    authority = Authority.create("servers")
    clock = VirtualClock()
    await put(tmp_path, authority.server("first", hosts=("127.0.0.1",)))
    server = Server(
        "test", ("127.0.0.1", 0), metrics_handler(Metrics()), certificates=FileCertificates(tmp_path, clock=clock)
    )
    task = asyncio.create_task(server.run())
    await server.wait_ready()
    try:
        first = await certificate_of(server)
        await put(tmp_path, authority.server("second", hosts=("127.0.0.1",)))
        await clock.advance(2)
        second = await certificate_of(server)
    finally:
        await cancel_and_wait(task)

    assert first != second
    assert (certificate_info(second).hosts, certificate_info(first).hosts) == (frozenset({"127.0.0.1"}),) * 2


async def put(folder: Path, pair: KeyPair) -> None:
    for name, content in (("tls.crt", pair.certificate), ("tls.key", pair.key)):
        await asyncio.to_thread((folder / name).write_bytes, content)


async def certificate_of(server: Server) -> bytes:
    """What it shows to those who connect, PEM."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting)
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return ssl.DER_cert_to_PEM_cert(shown).encode()


async def test_a_page_that_fails_is_500_without_the_details() -> None:
    async def broken(request: Request) -> Response:
        raise ValueError("secret detail")

    async with serving(broken) as server:
        status, body = await ask(server, "/")

        assert status == 500
        assert "secret detail" not in body


async def test_a_taken_port_is_one_sentence_and_is_free_again_after_the_stop() -> None:
    async def hello(request: Request) -> Response:
        return Response.text("hello")

    async with serving(hello) as first:
        second = Server("health", ("127.0.0.1", first.port), hello)
        with pytest.raises(ConfigError, match=r"the health server cannot listen on 127.0.0.1:\d+: it is in use; stop"):
            second.open()

    third = Server("health", ("127.0.0.1", first.port), hello)
    third.open()
    third.close()


async def test_an_address_that_is_not_ours_is_one_sentence_too() -> None:
    async def hello(request: Request) -> Response:
        return Response.text("hello")

    with pytest.raises(ConfigError, match="cannot listen"):
        Server("health", ("192.0.2.1", 1234), hello).open()


@pytest.mark.parametrize(
    ("text", "address"),
    [(":8081", ("", 8081)), ("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:80", ("::1", 80)), ("", None), ("0", None)],
)
def test_addresses(text: str, address: tuple[str, int] | None) -> None:
    assert parse_address(text, what="health address") == address


@pytest.mark.parametrize("text", ["8081", "host", "host:http", ":70000"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="health address"):
        parse_address(text, what="health address")


def test_loopback() -> None:
    assert [is_loopback(host) for host in ("localhost", "127.0.0.1", "127.8.8.8", "::1")] == [True] * 4
    assert [is_loopback(host) for host in ("", "0.0.0.0", "10.0.0.1", "example.com", "::")] == [False] * 5


class Reviewer:
    """Answers token and access reviews."""

    def __init__(self) -> None:
        self.tokens = {"good": "alice", "weak": "bob"}
        self.allowed = {"alice"}
        self.requests: list[dict[str, Any]] = []
        self.gone = False

    async def send(self, request: HttpRequest) -> HttpResponse:
        if self.gone:
            raise TransportError("gone")
        body = json.loads(request.body or b"{}")
        self.requests.append(body["spec"])
        if request.path.endswith("tokenreviews"):
            user = self.tokens.get(body["spec"]["token"])
            body["status"] = {"authenticated": user is not None, "user": {"username": user or "", "groups": ["g"]}}
        else:
            body["status"] = {"allowed": body["spec"]["user"] in self.allowed}
        return HttpResponse(status=201, headers={}, body=json.dumps(body).encode())

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        raise NotImplementedError

    async def close(self) -> None:
        return None


def bearing(token: str) -> Request:
    return Request(method="GET", target="/metrics", headers={"authorization": f"Bearer {token}"})


async def test_only_those_whom_the_cluster_lets_may_read_the_metrics() -> None:
    reviewer = Reviewer()
    page = metrics_handler(Metrics(), authorizer=MetricsAuthorizer(Client(reviewer), clock=VirtualClock()))

    assert (await page(Request(method="GET", target="/metrics"))).code == 401
    assert (await page(bearing("unknown"))).code == 401
    assert (await page(bearing("weak"))).code == 403
    assert (await page(bearing("good"))).code == 200
    assert reviewer.requests[-1] == {
        "user": "alice",
        "groups": ["g"],
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


async def test_answers_are_remembered_for_a_while_and_failures_are_not() -> None:
    reviewer, clock = Reviewer(), VirtualClock()
    access = MetricsAuthorizer(Client(reviewer), clock=clock)
    reviewer.gone = True
    refusal = await access.refusal(bearing("good"))
    assert refusal is not None
    assert refusal.code == 503
    reviewer.gone = False

    for _ in range(3):
        assert await access.refusal(bearing("good")) is None
    assert len(reviewer.requests) == 2

    reviewer.allowed.clear()
    await clock.advance(61)
    refused = await access.refusal(bearing("good"))
    assert refused is not None
    assert refused.code == 403
