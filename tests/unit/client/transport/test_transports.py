"""Both transports against a server that speaks raw bytes: politely, rudely, and not at all.

Covers: kubewright.client.transport
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import subprocess
import sys
import warnings
from collections.abc import Mapping

import pytest
from tests.unit.client.transport.rude_server import CHUNKED, OK, Script, Wire, get, says, serving, stall, stall_in_body

from kubewright.client.config.config import Config, Impersonation
from kubewright.client.config.credentials import Anonymous, Certificate
from kubewright.client.transport.aiohttp_transport import AiohttpTransport
from kubewright.client.transport.transport import HttpRequest
from kubewright.errors import ConfigError, ConnectFailed, RequestTimeout, TransportError


@pytest.fixture
def proxy_wire() -> Wire:
    """Of the one kind that knows proxies."""
    return Wire(AiohttpTransport)


class Tokens:
    """Credentials with a stock of tokens: each refresh takes the next, until none is left."""

    certificate_version = 0

    def __init__(self, *tokens: str) -> None:
        self._tokens = list(tokens)
        self.rejected: list[Mapping[str, str] | None] = []

    def client_certificate(self) -> Certificate | None:
        return None

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self._tokens[0]}"}

    async def refresh(self, *, rejected: Mapping[str, str] | None = None) -> bool:
        self.rejected.append(rejected)
        if len(self._tokens) < 2:
            return False
        self._tokens.pop(0)
        return True


# --- plain answers


async def test_an_answer_comes_back_whole_with_lower_case_headers_and_warnings_apart(wire: Wire) -> None:
    answer = (
        b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nX-Two: a\r\nx-two: b\r\n"
        b'Warning: 299 - "old \\"v1\\"" \r\nWarning: 299 - "older"\r\nContent-Length: 5\r\n\r\nhello'
    )

    async with wire.talking(says(answer)) as (_, transport):
        response = await transport.send(get())

    assert (response.status, response.body) == (201, b"hello")
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-two"] == "a, b"
    assert "warning" not in response.headers
    assert response.warnings == ('old "v1"', "older")


async def test_the_request_goes_out_as_it_was_made(wire: Wire) -> None:
    bodies: list[bytes] = []

    async def script(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bodies.append(await reader.readexactly(5))
        writer.write(OK)

    request = HttpRequest(
        method="PATCH",
        path="/api/v1/namespaces/a%2Fb/x",
        query=(("labelSelector", "app in (a,b)"), ("force", "true"), ("n", "ü&=")),
        headers=(("Content-Type", "application/merge-patch+json"), ("Accept", "application/json")),
        body=b"{'a'}",
    )
    async with serving(script) as server:
        config = Config(server=server.url + "/", credentials=Tokens("abc"), user_agent="web/1.0")
        async with wire.to(config) as transport:
            await transport.send(request)
    head = server.heads[0].decode()

    assert head.startswith(
        "PATCH /api/v1/namespaces/a%2Fb/x?labelSelector=app%20in%20%28a%2Cb%29&force=true&n=%C3%BC%26%3D HTTP/1.1\r\n"
    )
    for line in (
        f"Host: 127.0.0.1:{server.port}",
        "User-Agent: web/1.0",
        "Authorization: Bearer abc",
        "Accept: application/json",
        "Accept-Encoding: gzip",
        "Content-Type: application/merge-patch+json",
        "Content-Length: 5",
    ):
        assert f"{line}\r\n" in head
    assert bodies == [b"{'a'}"]


async def test_the_path_of_the_server_address_is_kept_in_front(wire: Wire) -> None:
    async with serving(says(OK)) as server, wire.to(Config(server=f"{server.url}/k8s/x")) as transport:
        await transport.send(get("/api"))

    assert server.heads[0].startswith(b"GET /k8s/x/api HTTP/1.1\r\n")


async def test_impersonation_is_sent_with_every_group(wire: Wire) -> None:
    who = Impersonation(user="jane", groups=("a", "b"))

    async with wire.talking(says(OK), impersonation=who) as (server, transport):
        await transport.send(get())

    for line in (b"Impersonate-User: jane", b"Impersonate-Group: a", b"Impersonate-Group: b"):
        assert line + b"\r\n" in server.heads[0]


async def test_connections_are_used_again(wire: Wire) -> None:
    async with wire.talking(says(OK)) as (server, transport):
        for _ in range(5):
            await transport.send(get())

    assert len(server.heads) == 5
    assert server.connections == 1


async def test_a_redirect_is_returned_and_not_followed(wire: Wire) -> None:
    answer = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"

    async with wire.talking(says(answer)) as (_, transport):
        response = await transport.send(get())

    assert (response.status, response.headers["location"]) == (302, "http://127.0.0.1:1/")


async def test_a_header_of_100_kilobytes_is_accepted(wire: Wire) -> None:
    text = "x" * 100_000
    answer = f'HTTP/1.1 200 OK\r\nWarning: 299 - "{text}"\r\nContent-Length: 0\r\n\r\n'.encode()

    async with wire.talking(says(answer)) as (_, transport):
        response = await transport.send(get())

    assert response.warnings == (text,)


async def test_cookies_are_neither_kept_nor_sent(wire: Wire) -> None:
    answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: session=1\r\nContent-Length: 0\r\n\r\n"

    async with wire.talking(says(answer)) as (server, transport):
        await transport.send(get())
        await transport.send(get())

    assert b"cookie" not in server.heads[1].lower()


# --- compression


def packed(body: bytes, encoding: str = "gzip") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def test_a_compressed_answer_is_unpacked(wire: Wire) -> None:
    text = b"kubernetes" * 50_000

    async with wire.talking(says(packed(gzip.compress(text)))) as (_, transport):
        response = await transport.send(get())

    assert response.body == text


async def test_compression_can_be_turned_off(wire: Wire) -> None:
    async with wire.talking(says(OK), disable_compression=True) as (server, transport):
        await transport.send(get())

    assert b"Accept-Encoding: identity\r\n" in server.heads[0]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (packed(b"this is no gzip"), "compressed response of .* is broken"),
        (packed(gzip.compress(b"kubernetes" * 50_000)[:-20]), "compressed response of .* is broken or incomplete"),
        (packed(b"x", "br"), "compressed with br, which was not requested"),
    ],
    ids=["garbage", "truncated", "unknown"],
)
async def test_a_broken_compressed_answer_is_an_error(wire: Wire, answer: bytes, expected: str) -> None:
    error = await wire.failure_of(says(answer))

    assert error.args
    with pytest.raises(TransportError, match=expected):
        raise error


# --- rude servers


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (says(OK[:-1], then="close"), "GET /: the response of {} is incomplete"),
        (says(CHUNKED + b"5\r\nhel", then="close"), "GET /: the response of {} is incomplete"),
        (says(CHUNKED + b"5\r\nhello\r\n", then="close"), "GET /: the response of {} is incomplete"),
        (says(b"", then="close"), "GET /: {} closed the connection without a response"),
        (says(b"HTTP/1.1 200 OK\r\nContent-", then="close"), "GET /: {} closed the connection without a response"),
        (says(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), "GET /: {} answered with something that is not HTTP"),
        (says(b"\x15\x03\x01\x00\x02\x02\x16"), "GET /: {} answered with something that is not HTTP; if this port"),
        (says(CHUNKED + b"zz\r\nhello"), "GET /: {} answered with something that is not HTTP"),
    ],
    ids=["length", "chunk", "end", "nothing", "head", "ssh", "tls", "chunk size"],
)
async def test_a_rude_server_becomes_one_sentence(wire: Wire, script: Script, expected: str) -> None:
    error = await wire.failure_of(script)

    before, _, after = expected.partition("{}")
    assert type(error) is TransportError
    assert str(error).startswith(before)
    assert after in str(error)


@pytest.mark.parametrize("answer", [b"", OK[:-1]], ids=["before the answer", "in the body"])
async def test_a_reset_connection_is_an_error(wire: Wire, answer: bytes) -> None:
    error = await wire.failure_of(says(answer, then="reset"))

    assert type(error) is TransportError


async def test_a_write_on_a_kept_connection_that_was_closed_is_not_sent_twice(wire: Wire) -> None:
    count = 0

    async def script(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        if count == 2:
            raise ConnectionResetError
        writer.write(OK)

    async with wire.talking(script) as (_, transport):
        await transport.send(get())
        with pytest.raises(TransportError):
            await transport.send(HttpRequest(method="DELETE", path="/x"))

    assert count == 2


async def test_a_refused_connection_names_the_address(wire: Wire) -> None:
    async with serving(says(OK)) as server:
        url = server.url
    async with wire.to(Config(server=url)) as transport:
        with pytest.raises(ConnectFailed, match=f"^cannot reach {url}: the connection was refused; ") as caught:
            await transport.send(get())
        with pytest.raises(ConnectFailed, match="refused"):
            async with transport.stream(get()):
                pytest.fail("nothing was opened")

    assert not caught.value.lasting


async def test_refusal_on_all_addresses_of_a_name_is_one_refusal(wire: Wire) -> None:
    async with serving(says(OK)) as server:
        url = f"http://localhost:{server.port}"
    async with wire.to(Config(server=url)) as transport:
        with pytest.raises(ConnectFailed, match=r"^cannot reach .*: the connection was refused; ") as caught:
            await transport.send(get())

    assert not caught.value.lasting


async def test_a_name_that_is_not_resolved_names_the_address(wire: Wire) -> None:
    async with wire.to(Config(server="http://nowhere.invalid:6443")) as transport:
        with pytest.raises(ConnectFailed, match=r"^cannot reach http://nowhere\.invalid:6443: the name ") as caught:
            await transport.send(get())

    assert caught.value.__suppress_context__


async def test_a_header_that_cannot_be_sent_is_an_error_and_reaches_nobody(wire: Wire) -> None:
    request = HttpRequest(method="GET", path="/", headers=(("X-Odd", "a\r\nEvil: b"),))

    async with wire.talking(says(OK)) as (server, transport):
        with pytest.raises(TransportError, match="the request cannot be sent as it is"):
            await transport.send(request)

    assert server.heads == []


# --- time


@pytest.mark.parametrize("script", [stall, stall_in_body], ids=["headers", "body"])
async def test_an_answer_that_does_not_come_is_a_timeout(wire: Wire, script: Script) -> None:
    error = await wire.failure_of(script, get("/slow", timeout=0.05))

    assert isinstance(error, RequestTimeout)
    assert isinstance(error, TimeoutError)
    assert str(error).startswith("GET /slow: no complete response from ")
    assert str(error).endswith("within 0.05 s")


async def test_cancelling_a_request_closes_its_connection(wire: Wire) -> None:
    async with wire.talking(stall) as (server, transport):
        task = asyncio.ensure_future(transport.send(get(timeout=None)))
        await server.asked.wait()

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.closed_by_client.wait()

    assert server.connections == 1


# --- credentials


async def only_new(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if b"Bearer new" in head:
        writer.write(OK)
    else:
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_after_a_401_fresh_credentials_are_tried_once(wire: Wire, method: str) -> None:
    tokens = Tokens("old", "new")

    async with wire.talking(only_new, credentials=tokens) as (server, transport):
        response = await transport.send(HttpRequest(method=method, path="/"))

    assert response.status == 200
    assert len(server.heads) == 2
    assert tokens.rejected == [{"Authorization": "Bearer old"}]


async def test_a_second_401_is_returned(wire: Wire) -> None:
    async with wire.talking(only_new, credentials=Tokens("old", "older", "oldest")) as (server, transport):
        response = await transport.send(get())

    assert response.status == 401
    assert len(server.heads) == 2


async def test_without_fresh_credentials_a_401_is_returned_at_once(wire: Wire) -> None:
    async with wire.talking(only_new, credentials=Tokens("old")) as (server, transport):
        response = await transport.send(get())

    assert response.status == 401
    assert len(server.heads) == 1


async def test_a_stream_is_opened_again_after_a_401(wire: Wire) -> None:
    tokens = Tokens("old", "new")

    async with wire.talking(only_new, credentials=tokens) as (_, transport), transport.stream(get()) as stream:
        body = await stream.read()

    assert (stream.status, body) == (200, b"{}")


# --- proxies


async def test_plain_requests_go_through_the_proxy(proxy_wire: Wire) -> None:
    async with serving(says(OK)) as proxy:
        config = Config(server="http://api.example:8080", proxy_url=f"http://u:secret@127.0.0.1:{proxy.port}")
        async with proxy_wire.to(config) as transport:
            response = await transport.send(get("/api"))

    assert response.status == 200
    assert proxy.heads[0].startswith(b"GET http://api.example:8080/api HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic dTpzZWNyZXQ=\r\n" in proxy.heads[0]


async def test_a_proxy_that_denies_the_tunnel_is_named_without_its_password(proxy_wire: Wire) -> None:
    denied = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"

    async with serving(says(denied)) as proxy:
        url = f"http://u:secret@127.0.0.1:{proxy.port}"
        config = Config(server="https://api.example", proxy_url=url, credentials=Tokens("abc"))
        async with proxy_wire.to(config) as transport:
            with pytest.raises(ConnectFailed, match=r"the proxy http://127.* answered 407 Proxy Auth") as caught:
                await transport.send(get())

    assert "secret" not in str(caught.value)
    assert caught.value.lasting
    assert proxy.heads[0].startswith(b"CONNECT api.example:443 ")
    assert b"Bearer" not in proxy.heads[0]


async def test_a_proxy_that_is_not_there_is_named(proxy_wire: Wire) -> None:
    async with serving(says(OK)) as proxy:
        url = proxy.url
    async with proxy_wire.to(Config(server="https://api.example", proxy_url=url)) as transport:
        with pytest.raises(ConnectFailed, match=f"^cannot reach the proxy {url}/?: the connection was refused"):
            await transport.send(get())

    assert proxy.heads == []


def test_a_socks_proxy_is_refused_with_what_is_supported(proxy_wire: Wire) -> None:
    with pytest.raises(ConfigError, match="socks5 proxies are not supported, only http:// and https://"):
        proxy_wire.kind(Config(server="https://api.example", proxy_url="socks5://127.0.0.1:1080"))


# --- life


async def test_a_closed_transport_refuses_requests_and_closes_twice(wire: Wire) -> None:
    async with serving(says(OK)) as server:
        transport = wire.kind(Config(server=server.url))
        await transport.send(get())
        await transport.close()
        await transport.close()
        await server.closed_by_client.wait()

        with pytest.raises(ConnectFailed, match="closed by this program") as caught:
            await transport.send(get())
        with pytest.raises(TransportError, match="closed by this program"):
            async with transport.stream(get()):
                pytest.fail("nothing was opened")

    assert len(server.heads) == 1
    assert caught.value.lasting


async def test_closing_ends_what_is_under_way_with_a_typed_error(wire: Wire) -> None:
    async with serving(stall) as server:
        transport = wire.kind(Config(server=server.url))
        task = asyncio.ensure_future(transport.send(get(timeout=None)))
        await server.asked.wait()

        await transport.close()
        with pytest.raises(TransportError, match="closed by this program"):
            await task

    assert server.connections == 1


async def test_an_unused_transport_needs_no_closing(wire: Wire) -> None:
    gc.collect()
    transport = wire.kind(Config(server="https://127.0.0.1:1", credentials=Anonymous()))

    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        del transport
        gc.collect()

    assert [str(complaint.message) for complaint in complaints] == []


def test_the_interface_does_not_import_aiohttp() -> None:
    script = (
        "import sys, kubewright.client.transport.transport, kubewright.client.transport.retries\n"
        "import kubewright.client.transport.rate_limit, kubewright.client.transport.responses\n"
        "import kubewright.client.lines\n"
        "print('aiohttp' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"
