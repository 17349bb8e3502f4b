"""The server as a client: connections are used again, and failures are told in Go's words."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from tests.stub_server import ReceivedRequest, StubResponse, StubServer

from kubewright._base.certificates import Authority
from kubewright.apiserver.outbound.http_client import Destination, HttpClient, HttpClientError


@pytest.fixture
async def stub() -> AsyncIterator[StubServer]:
    async with StubServer() as server:
        server.handlers["/"] = lambda received: StubResponse(b"hello", 200, "text/plain")
        server.handlers["/gone"] = lambda received: StubResponse(code=0)
        yield server


@pytest.fixture
async def outbound() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.close()


def destination(stub: StubServer, **parts: object) -> Destination:
    settings = {"authorities": stub.authority.certificate, **parts}
    return Destination(f"127.0.0.1:{stub.port}", "127.0.0.1", **settings)  # type: ignore[arg-type]  # as given


async def test_a_connection_is_used_again(stub: StubServer, outbound: HttpClient) -> None:
    for _ in range(3):
        incoming = await outbound.request(destination(stub), "GET", "/x")
        assert await incoming.body(100) == b"hello"

    assert len(stub.received) == 3
    assert len(outbound._open) == 1


async def test_headers_and_body_arrive(stub: StubServer, outbound: HttpClient) -> None:
    incoming = await outbound.request(destination(stub), "POST", "/x?y=z", headers=[("A", "b")], body=b"body")
    await incoming.body(100)

    (received,) = stub.received
    assert (received.method, received.path, received.body) == ("POST", "/x?y=z", b"body")
    assert ("a", "b") in received.headers


async def failure(outbound: HttpClient, to: Destination, path: str = "/", timeout: float | None = None) -> str:
    with pytest.raises(HttpClientError) as caught:
        await outbound.request(to, "GET", path, timeout=timeout)
    return str(caught.value)


async def test_errors_are_those_of_gos_client(stub: StubServer, outbound: HttpClient) -> None:
    other = Authority.create("other").certificate
    never: asyncio.Future[StubResponse] = asyncio.get_running_loop().create_future()
    stub.handlers["/never"] = lambda received: never

    with socket.socket() as unused:  # bound, so that nobody else gets the port, and deaf
        unused.bind(("127.0.0.1", 0))
        dead = unused.getsockname()[1]
        refused = await failure(outbound, Destination(f"127.0.0.1:{dead}"))
    assert refused == f"dial tcp 127.0.0.1:{dead}: connect: connection refused"
    unknown = await failure(outbound, destination(stub, authorities=other))
    assert unknown == "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    named = await failure(outbound, Destination(f"127.0.0.1:{stub.port}", "a.b.svc",
                                                authorities=stub.authority.certificate))  # fmt: skip
    assert named == "tls: failed to verify certificate: x509: certificate is valid for localhost, not a.b.svc"
    assert await failure(outbound, destination(stub), "/gone") == "EOF"
    assert await failure(outbound, destination(stub), "/never", 0.01) == "context deadline exceeded"


async def test_a_certificate_may_have_the_name_of_its_authority(outbound: HttpClient) -> None:
    async with StubServer(namesakes=True) as stub, StubServer(namesakes=True) as other:
        stub.handlers["/"] = lambda received: StubResponse(b"hello")

        incoming = await outbound.request(destination(stub), "GET", "/")

        assert await incoming.body(100) == b"hello"
        unknown = await failure(outbound, destination(stub, authorities=other.authority.certificate))
        assert unknown == "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        named = await failure(outbound, Destination(f"127.0.0.1:{stub.port}", "a.b.svc",
                                                    authorities=stub.authority.certificate))  # fmt: skip
        assert named == "tls: failed to verify certificate: x509: certificate is valid for localhost, not a.b.svc"
        assert len(stub.received) == 1


async def test_a_certificate_need_not_be_verified(stub: StubServer, outbound: HttpClient) -> None:
    incoming = await outbound.request(destination(stub, authorities=b"", verify=False), "GET", "/")

    assert await incoming.body(100) == b"hello"


async def test_a_line_break_in_a_header_is_rejected(stub: StubServer, outbound: HttpClient) -> None:
    with pytest.raises(HttpClientError, match="invalid header field value"):
        await outbound.request(destination(stub), "GET", "/", headers=[("A", "b\r\nC: d")])

    assert stub.received == []


async def test_a_request_on_a_closed_idle_connection_is_sent_again(stub: StubServer, outbound: HttpClient) -> None:
    incoming = await outbound.request(destination(stub), "GET", "/")
    await incoming.body(100)
    answers = iter([StubResponse(code=0), StubResponse(b"again", 200, "text/plain")])

    def answer(received: ReceivedRequest) -> StubResponse:
        return next(answers)

    stub.handlers["/late"] = answer
    incoming = await outbound.request(destination(stub), "GET", "/late")

    assert await incoming.body(100) == b"again"
