"""`Caller`: sends any request to a control plane as any user, byte for byte as the test writes it.

Kubewright's own client refuses or corrects much of what an attacker would send: odd paths, repeated headers, bodies in
chunks with trailers. `caller` makes one for a user with a client certificate, `grant` gives a user rights.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from tests.planes import Plane

from kubewright import Client
from kubewright._base import yaml
from kubewright.testing import time_limit

__all__ = ("APPLY", "Answer", "Caller", "anonymous", "caller", "grant", "tls_of")

APPLY = "application/apply-patch+yaml"
_GROUP = "rbac.authorization.k8s.io"
_RBAC = f"/apis/{_GROUP}/v1"


class Answer(NamedTuple):
    """The status code of a response, and its body: JSON as a tree, anything else as text."""

    code: int
    body: Any

    @property
    def message(self) -> str:
        """The message of a Status."""
        return str(self.body["message"]) if isinstance(self.body, dict) else str(self.body)


@dataclass(frozen=True)
class Caller:
    """Sends requests over connections of its own."""

    host: str
    port: int
    tls: ssl.SSLContext

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Iterable[tuple[str, str]] = (),
        content_type: str = "application/json",
    ) -> Answer:
        """One request, with a body of JSON unless it is bytes."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}:{self.port}", "Connection: close"]
        lines += [f"Content-Length: {len(data)}"] if data or method in ("POST", "PUT", "PATCH") else []
        lines += [f"Content-Type: {content_type}"] if data else []
        lines += [f"{name}: {value}" for name, value in headers]
        return await self.send_bytes("\r\n".join([*lines, "", ""]).encode() + data)

    async def send_bytes(self, request: bytes) -> Answer:
        """One request as it goes over the wire. It must ask the server to close the connection."""
        reader, writer = await asyncio.open_connection(self.host, self.port, ssl=self.tls)
        try:
            writer.write(request)
            async with time_limit(30):
                return _answer(await reader.read())
        finally:
            writer.close()


def _answer(response: bytes) -> Answer:
    head, _, body = response.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    if "transfer-encoding: chunked" in lines:
        body = _joined(body)
    code = int(lines[0].split(" ")[1])
    is_json = any(line.startswith("content-type: application/json") for line in lines)
    return Answer(code, json.loads(body) if is_json and body else body.decode(errors="replace"))


def _joined(chunks: bytes) -> bytes:
    found = b""
    while chunks:
        size, _, rest = chunks.partition(b"\r\n")
        length = int(size, 16)
        found, chunks = found + rest[:length], rest[length + 2 :] if length else b""
    return found


def tls_of(plane: Plane, certificate: bytes = b"", key: bytes = b"") -> ssl.SSLContext:
    """A context for a client with a certificate, both PEM; without one it is nobody."""
    context = ssl.create_default_context(cadata=plane.ca_data.decode())
    if certificate:
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(certificate + key)
            context.load_cert_chain(file.name)
    return context


def _at(plane: Plane, tls: ssl.SSLContext) -> Caller:
    host, _, port = plane.url.removeprefix("https://").partition(":")
    return Caller(host, int(port), tls)


def anonymous(plane: Plane) -> Caller:
    """A caller without a certificate."""
    return _at(plane, tls_of(plane))


async def caller(
    plane: Plane, name: str, *groups: str, certificate: bytes = b"", key: bytes = b"", kubeconfig: Path | None = None
) -> Caller:
    """A caller with the certificate of this user, or with the one that is given."""
    if not certificate:
        file = kubeconfig or await plane.user(name, groups)
        user = yaml.load(file.read_text())["users"][0]["user"]
        certificate, key = (base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key"))
    return _at(plane, tls_of(plane, certificate, key))


async def grant(client: Client, user: str, rules: list[dict[str, Any]], *, namespace: str = "") -> None:
    """Give a user a role with these rules, in a namespace or everywhere."""
    kind = "Role" if namespace else "ClusterRole"
    meta = {"name": f"security-{uuid4().hex[:10]}"}
    path = f"{_RBAC}/namespaces/{namespace}" if namespace else _RBAC
    binding = {
        "metadata": meta,
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": meta["name"]},
        "subjects": [{"apiGroup": _GROUP, "kind": "User", "name": user}],
    }
    await client.request(
        "POST", f"{path}/{kind.lower()}s", body=json.dumps({"metadata": meta, "rules": rules}).encode()
    )
    await client.request("POST", f"{path}/{kind.lower()}bindings", body=json.dumps(binding).encode())
