"""Both transports and TLS: whom they trust, what they say when they do not, and how certificates change.

Covers: kubewright.client.transport
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubewright.client.config.config import Config
from kubewright.client.config.credentials import Anonymous, Certificate, Credentials
from kubewright.client.transport.aiohttp_transport import AiohttpTransport
from kubewright.client.transport.httptools_transport import HttptoolsTransport
from kubewright.client.transport.transport import HttpRequest, Transport
from kubewright.errors import ConnectFailed, RequestTimeout, TransportError

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
GET = HttpRequest(method="GET", path="/version", timeout=10.0)
NOW = datetime.now(UTC)
TransportClass = type[AiohttpTransport] | type[HttptoolsTransport]


class Authority:
    """A CA that signs what it is asked for."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"CA {id(self)}")])
        self._certificate = self._build(
            self._name, self._key, NOW + timedelta(days=1), x509.BasicConstraints(True, None)
        )

    @property
    def pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def _build(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        until: datetime,
        extension: x509.ExtensionType,
    ) -> x509.Certificate:
        builder = x509.CertificateBuilder(subject_name=subject, issuer_name=self._name, public_key=key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(NOW - timedelta(days=9))
        return builder.not_valid_after(until).add_extension(extension, critical=False).sign(self._key, hashes.SHA256())

    def issue(self, *names: str, until: datetime | None = None) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        entries: list[x509.GeneralName] = [
            x509.IPAddress(ip_address(name)) if name[0].isdigit() else x509.DNSName(name) for name in names
        ]
        signed = self._build(subject, key, until or NOW + timedelta(days=1), x509.SubjectAlternativeName(entries))
        return Certificate(
            signed.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
        )


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


ContextMaker = Callable[..., ssl.SSLContext]


@pytest.fixture
def server_context(authority: Authority, tmp_path: Path) -> ContextMaker:
    def make(*names: str, until: datetime | None = None, client_ca: bytes | None = None) -> ssl.SSLContext:
        issued = authority.issue(*(names or ("127.0.0.1",)), until=until)
        (tmp_path / "crt").write_bytes(issued.certificate)
        (tmp_path / "key").write_bytes(issued.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
        if client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=client_ca.decode())
        return context

    return make


class TlsServer:
    """Answers every request, and keeps the subjects of the client certificates it was shown."""

    def __init__(self) -> None:
        self.port = 0
        self.shown: list[str] = []
        self.ended: asyncio.Queue[str] = asyncio.Queue()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peercert") or {}
        name = next((value for ((key, value),) in peer.get("subject", ()) if key == "commonName"), "")
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.shown.append(name)
                writer.write(b"HTTP/1.1 200 OK\r\n\r\nhello" if head.startswith(b"GET /watch") else OK)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            self.ended.put_nowait(name)
        finally:
            writer.close()


@asynccontextmanager
async def serving(context: ssl.SSLContext | None) -> AsyncIterator[TlsServer]:
    tls = TlsServer()
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(tls.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    tls.port = server.sockets[0].getsockname()[1]
    try:
        yield tls
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def config_for(
    url: str, ca: bytes | None, *, credentials: Credentials | None = None, name: str | None = None, skip: bool = False
) -> Config:
    return Config(
        server=url,
        ca_data=ca,
        ca_origin="~/.kube/config" if ca else "this machine's trust store",
        tls_server_name=name,
        insecure_skip_tls_verify=skip,
        credentials=credentials or Anonymous(),
    )


class Wire:
    """Makes transports of one kind."""

    def __init__(self, kind: TransportClass) -> None:
        self.kind = kind

    @asynccontextmanager
    async def to(self, config: Config) -> AsyncIterator[Transport]:
        transport = self.kind(config)
        try:
            yield transport
        finally:
            await transport.close()

    async def refusal(self, config: Config) -> ConnectFailed:
        async with self.to(config) as transport:
            with pytest.raises(ConnectFailed) as caught:
                await transport.send(GET)
        assert "\n" not in str(caught.value)
        assert caught.value.__suppress_context__
        return caught.value


@pytest.fixture(params=[AiohttpTransport, HttptoolsTransport], ids=["aiohttp", "httptools"])
def wire(request: pytest.FixtureRequest) -> Wire:
    return Wire(request.param)


@pytest.fixture
def proxy_wire() -> Wire:
    """Of the one kind that knows proxies."""
    return Wire(AiohttpTransport)


async def test_a_server_of_the_right_ca_is_trusted(
    wire: Wire, authority: Authority, server_context: ContextMaker
) -> None:
    async with serving(server_context()) as server, wire.to(config_for(server.url, authority.pem)) as transport:
        response = await transport.send(GET)

    assert (response.status, response.body) == (200, b"{}")


@pytest.mark.parametrize("ca", [b"another", None], ids=["another CA", "the machine's CAs"])
async def test_a_server_of_another_ca_is_not_trusted_and_the_ca_is_named(
    wire: Wire, ca: bytes | None, server_context: ContextMaker
) -> None:
    trusted = Authority().pem if ca else None
    async with serving(server_context()) as server:
        error = await wire.refusal(config_for(server.url, trusted))

    where = "~/.kube/config" if ca else "this machine's trust store"
    assert f"cannot trust {server.url}: the server's certificate is not signed by the CA in {where}" in str(error)
    assert error.lasting
    assert server.shown == []


async def test_a_certificate_for_another_host_is_not_trusted(
    wire: Wire, authority: Authority, server_context: ContextMaker
) -> None:
    async with serving(server_context("kubernetes.default.svc")) as server:
        error = await wire.refusal(config_for(server.url, authority.pem))

    assert "the server's certificate is not for 127.0.0.1; use a name it contains" in str(error)
    assert error.lasting


async def test_the_server_name_of_the_configuration_is_the_one_to_prove(
    wire: Wire, authority: Authority, server_context: ContextMaker
) -> None:
    async with serving(server_context("kubernetes.default.svc")) as server:
        right = config_for(server.url, authority.pem, name="kubernetes.default.svc")
        async with wire.to(right) as transport:
            response = await transport.send(GET)
        error = await wire.refusal(config_for(server.url, authority.pem, name="other.example"))

    assert response.status == 200
    assert "is not for other.example" in str(error)


async def test_an_expired_certificate_is_not_trusted(
    wire: Wire, authority: Authority, server_context: ContextMaker
) -> None:
    async with serving(server_context(until=NOW - timedelta(days=1))) as server:
        error = await wire.refusal(config_for(server.url, authority.pem))

    assert str(error) == (
        f"cannot trust {server.url}: the server's certificate has expired; renew it, or check this machine's clock"
    )


async def test_an_expired_certificate_of_anybody_is_taken_when_told_to(
    wire: Wire, server_context: ContextMaker
) -> None:
    context = server_context("elsewhere", until=NOW - timedelta(days=1))

    async with serving(context) as server, wire.to(config_for(server.url, None, skip=True)) as transport:
        response = await transport.send(GET)

    assert response.status == 200


async def test_https_to_a_port_of_plain_http_says_so(wire: Wire, authority: Authority) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        error = await wire.refusal(config_for(url, authority.pem))

    assert f"cannot reach {url}: the server does not speak TLS on this port; use http://" in str(error)
    assert error.lasting


async def test_plain_http_to_a_port_of_tls_says_so(wire: Wire, server_context: ContextMaker) -> None:
    async with serving(server_context()) as server:
        config = Config(server=server.url.replace("https:", "http:"))
        async with wire.to(config) as transport:
            with pytest.raises(TransportError, match="if this port expects TLS, use https:// in the server address"):
                await transport.send(GET)

    assert server.shown == []


async def test_a_connection_closed_in_the_handshake_may_be_tried_again(wire: Wire, authority: Authority) -> None:
    async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.close()

    server = await asyncio.start_server(rude, "127.0.0.1", 0)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        error = await wire.refusal(config_for(url, authority.pem))

    assert str(error).startswith(f"cannot reach {url}: ")
    assert not error.lasting


async def test_a_handshake_that_stalls_is_a_timeout(wire: Wire, authority: Authority) -> None:
    held: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        config = Config(server=url, ca_data=authority.pem, connect_timeout=0.5)
        async with wire.to(config) as transport:
            with pytest.raises(RequestTimeout, match=rf"^cannot reach {url}: no connection within 0\.5 s"):
                await transport.send(GET)
        for writer in held:
            writer.close()

    assert len(held) == 1


def answer_with_garbage(listener: socket.socket, context: ssl.SSLContext) -> None:
    connection, _ = listener.accept()
    with connection.dup() as raw, context.wrap_socket(connection, server_side=True) as tls:
        tls.recv(4096)
        raw.send(b"this is no TLS record at all")
        while raw.recv(4096):
            pass


async def test_a_tls_error_after_a_write_does_not_count_as_never_executed(
    wire: Wire, authority: Authority, server_context: ContextMaker
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = asyncio.ensure_future(asyncio.to_thread(answer_with_garbage, listener, server_context()))
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        async with wire.to(config_for(url, authority.pem)) as transport:
            with pytest.raises(TransportError) as caught:
                await transport.send(HttpRequest(method="POST", path="/", body=b"{}"))
        await server

    assert type(caught.value) is TransportError
    assert str(caught.value).startswith(f"POST /: the connection to {url} was broken (")


class Certificates:
    """Credentials that show a client certificate, which a test can change."""

    def __init__(self, certificate: Certificate) -> None:
        self.certificate = certificate
        self.certificate_version = 0

    def change(self, certificate: Certificate) -> None:
        self.certificate = certificate
        self.certificate_version += 1

    def client_certificate(self) -> Certificate | None:
        return self.certificate

    async def headers(self) -> Mapping[str, str]:
        return {}

    async def refresh(self, *, rejected: Mapping[str, str] | None = None) -> bool:
        return False


async def test_the_client_certificate_is_shown(wire: Wire, authority: Authority, server_context: ContextMaker) -> None:
    credentials = Certificates(authority.issue("jane"))

    async with serving(server_context(client_ca=authority.pem)) as server:
        config = config_for(server.url, authority.pem, credentials=credentials)
        async with wire.to(config) as transport:
            await transport.send(GET)

    assert server.shown == ["jane"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("given", [True, False], ids=["of another CA", "none"])
async def test_a_rejected_client_certificate_is_named_as_the_reason(
    wire: Wire, given: bool, version: ssl.TLSVersion, authority: Authority, server_context: ContextMaker
) -> None:
    credentials = Certificates(Authority().issue("mallory")) if given else None
    context = server_context(client_ca=authority.pem)
    context.maximum_version = version

    # A blocking server, because asyncio's own closes the connection without sending its TLS alert.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        rejection = asyncio.ensure_future(asyncio.to_thread(reject_one, listener, context))
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        error = await wire.refusal(config_for(url, authority.pem, credentials=credentials))
        await rejection

    # With neither a certificate nor TLS 1.3 the alert does not say what the handshake failed about.
    bare = not given and version is ssl.TLSVersion.TLSv1_2
    expected = "the TLS handshake failed" if bare else "the server rejected the client certificate"
    assert f"cannot reach {url}: {expected} (" in str(error)
    assert error.lasting


def reject_one(listener: socket.socket, context: ssl.SSLContext) -> None:
    connection, _ = listener.accept()
    # The copy keeps the connection until the client has hung up: closing it with the request still unread would
    # reset it, and the reset could overtake the alert.
    with connection, connection.dup() as kept:
        with pytest.raises(ssl.SSLError):
            context.wrap_socket(connection, server_side=True)
        while kept.recv(4096):
            pass


async def test_a_changed_certificate_is_used_from_the_next_request_and_idle_connections_are_closed(
    wire: Wire, authority: Authority, server_context: ContextMaker
) -> None:
    credentials = Certificates(authority.issue("old"))

    async with serving(server_context(client_ca=authority.pem)) as server:
        config = config_for(server.url, authority.pem, credentials=credentials)
        watch = HttpRequest(method="GET", path="/watch")
        async with wire.to(config) as transport, transport.stream(watch) as stream:
            first = await anext(stream.chunks())
            await transport.send(GET)
            credentials.change(authority.issue("new"))
            await transport.send(GET)
            ended = await server.ended.get()
            still_open = server.ended.empty()

    assert first == b"hello"
    assert server.shown == ["old", "old", "new"]
    # The idle connection is gone at once; the watch that is being read goes on.
    assert (ended, still_open) == ("old", True)


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def tunnelling(port: int) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A proxy that leads every tunnel to one port; its address, and the heads it was sent."""
    heads: list[bytes] = []
    tunnels: set[asyncio.Task[None]] = set()

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pipe(reader, far_writer), pipe(far_reader, writer), return_exceptions=True)

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(tunnel(reader, writer))
        tunnels.add(task)
        task.add_done_callback(tunnels.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads
        await asyncio.gather(*tunnels)


async def test_tls_goes_through_a_proxy_to_the_server_that_is_to_prove_its_name(
    proxy_wire: Wire, authority: Authority, server_context: ContextMaker
) -> None:
    credentials = Certificates(authority.issue("jane"))
    context = server_context("api.example", client_ca=authority.pem)

    async with serving(context) as server, tunnelling(server.port) as (proxy, heads):
        config = Config(
            server="https://api.example:6443", ca_data=authority.pem, proxy_url=proxy, credentials=credentials
        )
        async with proxy_wire.to(config) as transport:
            first = await transport.send(GET)
            second = await transport.send(GET)

    assert (first.status, second.status) == (200, 200)
    assert len(heads) == 1
    assert heads[0].startswith(b"CONNECT api.example:6443 HTTP/1.1\r\n")
    assert server.shown == ["jane", "jane"]


async def test_a_wrong_certificate_behind_a_proxy_is_not_trusted(
    proxy_wire: Wire, authority: Authority, server_context: ContextMaker
) -> None:
    async with serving(server_context("other.example")) as server, tunnelling(server.port) as (proxy, _):
        config = Config(server="https://api.example:6443", ca_data=authority.pem, proxy_url=proxy)
        error = await proxy_wire.refusal(config)

    assert "cannot trust https://api.example:6443: the server's certificate is not for api.example" in str(error)
