"""Requests byte by byte, which a well-behaved client would not send: to a kubelet, or to an API server.

`Caller` has the credentials: a client certificate, a bearer token, or none.
"""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from kubewright import Config

__all__ = ("UPGRADE", "Answer", "Caller")

UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol: v5.channel.k8s.io",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The head and the body of a response."""

    code: int
    head: str
    body: str


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who sends requests to one address."""

    host: str
    port: int
    certificate: Path | None = None
    """A file with a client certificate and its key."""
    token: str = ""

    @classmethod
    def of_kubeconfig(cls, kubeconfig: Path, folder: Path) -> Caller:
        """The user of a kubeconfig, for the API server in it."""
        text = kubeconfig.read_text()
        certificate, key = (_decoded(name, text) for name in ("client-certificate-data", "client-key-data"))
        file = folder / f"{kubeconfig.name}.pem"
        file.write_bytes(certificate + key)
        address = urlsplit(Config.load(kubeconfig=kubeconfig).server)
        return cls(address.hostname or "", address.port or 443, file)

    def at(self, port: int) -> Caller:
        """The same caller at another port of this machine."""
        return replace(self, host="127.0.0.1", port=port)

    async def send(self, target: str, *headers: str, method: str = "GET", host: str = "x") -> Answer:
        """Send one request and read the response: all of it, or the head of an upgrade."""
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        if self.certificate is not None:
            trusting.load_cert_chain(self.certificate)
        reader, writer = await asyncio.open_connection(self.host, self.port, ssl=trusting)
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *headers]
        if self.token:
            lines.append(f"Authorization: Bearer {self.token}")
        if not any(line.lower().startswith("connection:") for line in headers):
            lines.append("Connection: close")
        try:
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            code = int(head.split(" ")[1])
            if code == 101:
                return Answer(code, head, "")
            return Answer(code, head, await _body(head, reader))
        finally:
            writer.close()


def _decoded(name: str, kubeconfig: str) -> bytes:
    found = re.search(rf"{name}: (\S+)", kubeconfig)
    assert found is not None
    return base64.b64decode(found[1])


async def _body(head: str, reader: asyncio.StreamReader) -> str:
    for line in head.lower().split("\r\n"):
        if line.startswith("content-length:"):
            return (await reader.readexactly(int(line.partition(":")[2]))).decode()
    return (await reader.read()).decode()
