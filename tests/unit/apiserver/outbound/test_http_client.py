"""The server as a client: connections are used again, and failures are told in Go's words."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from tests.stub_server import Asked, Elsewhere, Said

from kubewright._base.certificates import Authority
from kubewright.apiserver.outbound.http_client import Destination, HttpClient, HttpClientError


@pytest.fixture
async def elsewhere() -> AsyncIterator[Elsewhere]:
    async with Elsewhere() as server:
        server.answers["/"] = lambda asked: Said(b"hello", 200, "text/plain")
        server.answers["/gone"] = lambda asked: Said(code=0)
        yield server


@pytest.fixture
async def outbound() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.close()


def destination(elsewhere: Elsewhere, **parts: object) -> Destination:
    settings = {"authorities": elsewhere.authority.certificate, **parts}
    return Destination(f"127.0.0.1:{elsewhere.port}", "127.0.0.1", **settings)  # type: ignore[arg-type]  # as given


async def test_a_connection_is_used_again(elsewhere: Elsewhere, outbound: HttpClient) -> None:
    for _ in range(3):
        incoming = await outbound.request(destination(elsewhere), "GET", "/x")
        assert await incoming.body(100) == b"hello"

    assert len(elsewhere.asked) == 3
    assert len(outbound._open) == 1


async def test_headers_and_body_arrive(elsewhere: Elsewhere, outbound: HttpClient) -> None:
    incoming = await outbound.request(destination(elsewhere), "POST", "/x?y=z", headers=[("A", "b")], body=b"body")
    await incoming.body(100)

    (asked,) = elsewhere.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/x?y=z", b"body")
    assert ("a", "b") in asked.headers


async def failure(outbound: HttpClient, to: Destination, path: str = "/", timeout: float | None = None) -> str:
    with pytest.raises(HttpClientError) as caught:
        await outbound.request(to, "GET", path, timeout=timeout)
    return str(caught.value)


async def test_what_goes_wrong_is_told_as_go_tells_it(elsewhere: Elsewhere, outbound: HttpClient) -> None:
    other = Authority.create("other").certificate
    never: asyncio.Future[Said] = asyncio.get_running_loop().create_future()
    elsewhere.answers["/never"] = lambda asked: never

    with socket.socket() as unused:  # bound, so that nobody else gets the port, and deaf
        unused.bind(("127.0.0.1", 0))
        dead = unused.getsockname()[1]
        refused = await failure(outbound, Destination(f"127.0.0.1:{dead}"))
    assert refused == f"dial tcp 127.0.0.1:{dead}: connect: connection refused"
    unknown = await failure(outbound, destination(elsewhere, authorities=other))
    assert unknown == "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    named = await failure(outbound, Destination(f"127.0.0.1:{elsewhere.port}", "a.b.svc",
                                                authorities=elsewhere.authority.certificate))  # fmt: skip
    assert named == "tls: failed to verify certificate: x509: certificate is valid for localhost, not a.b.svc"
    assert await failure(outbound, destination(elsewhere), "/gone") == "EOF"
    assert await failure(outbound, destination(elsewhere), "/never", 0.01) == "context deadline exceeded"


async def test_a_certificate_need_not_be_checked(elsewhere: Elsewhere, outbound: HttpClient) -> None:
    incoming = await outbound.request(destination(elsewhere, authorities=b"", verify=False), "GET", "/")

    assert await incoming.body(100) == b"hello"


async def test_a_line_break_in_a_header_is_refused(elsewhere: Elsewhere, outbound: HttpClient) -> None:
    with pytest.raises(HttpClientError, match="invalid header field value"):
        await outbound.request(destination(elsewhere), "GET", "/", headers=[("A", "b\r\nC: d")])

    assert elsewhere.asked == []


async def test_a_server_that_closed_a_resting_connection_is_asked_on_a_new_one(
    elsewhere: Elsewhere, outbound: HttpClient
) -> None:
    incoming = await outbound.request(destination(elsewhere), "GET", "/")
    await incoming.body(100)
    answers = iter([Said(code=0), Said(b"again", 200, "text/plain")])

    def answer(asked: Asked) -> Said:
        return next(answers)

    elsewhere.answers["/late"] = answer
    incoming = await outbound.request(destination(elsewhere), "GET", "/late")

    assert await incoming.body(100) == b"again"
