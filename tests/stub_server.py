"""A stub of whatever an API server calls: webhooks, conversion webhooks, kubelets, extension API servers.

It serves HTTP over TLS on loopback, on the loop of the tests, with one handler for each path. It keeps the requests, so
that a test can compare what two API servers sent. After a response of 101 it sends back every byte it receives.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubewright._base.certificates import Authority, KeyPair

__all__ = ("ReceivedRequest", "StubResponse", "StubServer")


def issued(hosts: tuple[str, ...]) -> tuple[Authority, KeyPair]:
    """An authority, and a certificate for these names."""
    authority = Authority.create("stub-authority")
    return authority, authority.server("stub", hosts=hosts)


def namesakes(hosts: tuple[str, ...]) -> tuple[Authority, KeyPair]:
    """The same, both with the same name, and nothing in the certificate that tells its authority by the key."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stub")])
    now, keys = datetime.now(UTC), [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    pairs = []
    for key in keys:
        builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
        builder = builder.add_extension(x509.BasicConstraints(ca=key is keys[0], path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        if key is not keys[0]:
            names = [x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host) for host in hosts]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        signed = builder.sign(keys[0], hashes.SHA256())
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        pairs.append(KeyPair(signed.public_bytes(Encoding.PEM), plain))
    return Authority(pairs[0]), pairs[1]


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request that an API server sent."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def tree(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class StubResponse:
    """What the stub sends back. With code 0 it closes the connection instead."""

    body: Any = b""
    code: int = 200
    content_type: str = "application/json"
    location: str = ""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass
class StubServer:
    """The server; an async context manager."""

    received: list[ReceivedRequest] = field(default_factory=list)
    handlers: dict[str, Callable[[ReceivedRequest], StubResponse | asyncio.Future[StubResponse]]] = field(
        default_factory=dict
    )
    """By prefix of the path, without the query; the longest prefix wins."""
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost")
    """The names in its certificate."""
    namesakes: bool = False
    """Whether its certificate has the name of its authority and no authority key id, as knative makes them."""
    trailer: bytes = b""
    """What it sends after each response, although nobody asked for it."""

    async def __aenter__(self) -> StubServer:
        self.authority, pair = namesakes(self.hosts) if self.namesakes else issued(self.hosts)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "pair.pem"
            file.write_bytes(pair.certificate + b"\n" + pair.key)
            context.load_cert_chain(file)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=context)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def bundle(self) -> str:
        """Its CA, as a configuration has it."""
        return base64.b64encode(self.authority.certificate).decode()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            try:
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                    method, path, _ = head[0].split(" ")
                    headers = tuple((name.lower(), value.strip()) for name, _, value in
                                    (line.partition(":") for line in head[1:] if line))  # fmt: skip
                    size = int(dict(headers).get("content-length", 0))
                    received = ReceivedRequest(method, path, headers, await reader.readexactly(size))
                    self.received.append(received)
                    response = self._response(received)
                    response = await response if isinstance(response, asyncio.Future) else response
                    if not response.code:
                        return
                    body = response.body if isinstance(response.body, bytes) else json.dumps(response.body).encode()
                    lines = [f"HTTP/1.1 {response.code} Stub", f"Content-Type: {response.content_type}"]
                    lines += [f"Location: {response.location}"] if response.location else []
                    lines += [f"{name}: {value}" for name, value in response.headers]
                    lines += [f"Content-Length: {len(body)}"] if response.code != 101 else []
                    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body + self.trailer)
                    await writer.drain()
                    if response.code == 101:
                        await _echo(reader, writer)
                        return
            finally:
                writer.close()

    def _response(self, received: ReceivedRequest) -> StubResponse | asyncio.Future[StubResponse]:
        path = received.path.partition("?")[0]
        found = max((name for name in self.handlers if path.startswith(name)), key=len, default="")
        return self.handlers[found](received) if found else StubResponse(b"404 page not found", 404, "text/plain")


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(4096):
        writer.write(data)
        await writer.drain()
