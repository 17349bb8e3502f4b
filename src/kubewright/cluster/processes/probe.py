"""HTTP probes of the components of a local control plane: readiness, and etcd's JSON gateway.

No retries, no connection pool, a timeout of two seconds. Programs that use the cluster use `kubewright.client`. Built
on the standard library so that a control plane starts without importing an HTTP stack. Called by `planes.real`.
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
        """Status and body; status 0 if there is no response."""
        return await asyncio.to_thread(self._request, "GET", path, None)

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Send JSON; status and body as from `get`."""
        return await asyncio.to_thread(self._request, "POST", path, body)

    def _request(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection = (
            http.client.HTTPConnection("127.0.0.1", self._port, timeout=self._timeout)
            if self._tls is None
            else http.client.HTTPSConnection("127.0.0.1", self._port, timeout=self._timeout, context=self._tls)
        )
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()
