"""Ask a component of a local control plane one small question over HTTP.

For readiness and for etcd's JSON gateway, nothing else: no retries, no pooling, a second or two at most.
Programs that use the cluster use `client`. It is made of the standard library so that a control plane
starts without loading an HTTP stack.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
from typing import final

__all__ = ("Probe",)


@final
class Probe:
    """One address on loopback; plain, or with TLS if a context is given."""

    def __init__(self, port: int, *, tls: ssl.SSLContext | None = None, timeout: float = 2.0) -> None:
        self._port = port
        self._tls = tls
        self._timeout = timeout

    async def get(self, path: str) -> tuple[int, bytes]:
        """Status and body; status 0 if nothing answers there."""
        return await asyncio.to_thread(self._ask, "GET", path, None)

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """As `get`, sending JSON."""
        return await asyncio.to_thread(self._ask, "POST", path, body)

    def _ask(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection = (
            http.client.HTTPConnection("127.0.0.1", self._port, timeout=self._timeout)
            if self._tls is None
            else http.client.HTTPSConnection("127.0.0.1", self._port, timeout=self._timeout, context=self._tls)
        )
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()
