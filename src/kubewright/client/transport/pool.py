"""Pool: the connections to one server, idle and in use.

A plain request takes an idle connection or makes one, and gives it back. A stream has a connection of its own, which is
closed after it. When the client certificate changes, idle connections are closed at once and those in use after their
response, while streams go on; client-go closes all of them (transport/cert_rotation.go). Connect errors become messages
here; `transport.httptools_transport`, the only caller, does the others.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import final
from urllib.parse import urlsplit

from kubewright.client.config.config import Config
from kubewright.client.transport.connections import Connection, DeadlineExceeded
from kubewright.client.transport.error_messages import connect_error, tls_error
from kubewright.client.transport.sockets import connected_socket
from kubewright.client.transport.tls import ssl_context
from kubewright.errors import ConnectFailed, RequestTimeout

__all__ = ("Pool",)

# Load balancers close an idle connection after 60 s, kube-apiserver after 90 s (secure_serving.go in
# staging/src/k8s.io/apiserver/pkg/server). Close it well before, so that no write goes into a connection that is just
# being closed.
_IDLE_SECONDS = 30.0


@final
class Pool:
    """Has no size limit: each watch holds a connection, so a limit could deadlock."""

    def __init__(self, config: Config) -> None:
        parts = urlsplit(config.server)
        self._config = config
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._credentials = config.credentials
        self._context: ssl.SSLContext | None = None
        self._version = -1
        self._generation = 0
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._attempts: set[asyncio.Timeout] = set()
        self.closed = False

    def take(self) -> Connection | None:  # hot
        """An idle connection, if there is one: the last one used, so that the surplus expires."""
        if self._version != self._credentials.certificate_version:
            self._renew_tls_context()
        while self._idle:
            connection = self._idle.pop()
            if connection.open:
                return connection
        return None

    def give_back(self, connection: Connection) -> None:  # hot
        """Keep the connection after its response, if it can be reused."""
        if connection.reusable and connection.open and connection.generation == self._generation and not self.closed:
            connection.keep_idle(_IDLE_SECONDS)
            self._idle.append(connection)
        else:
            connection.abort()

    async def connect(self, deadline: float | None) -> Connection:
        """A new connection; `DeadlineExceeded` if the request's own deadline comes before the connect timeout."""
        if self.closed:
            raise ConnectFailed(f"the connection to {self._config.server} was closed by this program", lasting=True)
        if self._version != self._credentials.certificate_version:
            self._renew_tls_context()
        connect_deadline = asyncio.get_running_loop().time() + self._config.connect_timeout
        limit = asyncio.timeout_at(connect_deadline if deadline is None else min(deadline, connect_deadline))
        self._attempts.add(limit)
        try:
            async with limit:
                return await self._connect()
        except ssl.SSLError as error:
            raise self.tls_error(error) from None
        except OSError as error:
            if not limit.expired() or not isinstance(error, TimeoutError):
                raise connect_error(error, self._config.server) from None
            raise self._timeout_error(deadline, connect_deadline) from None
        finally:
            self._attempts.discard(limit)

    async def close(self) -> None:
        """Close everything, and wait until the sockets are closed."""
        self.closed = True
        now = asyncio.get_running_loop().time()
        for attempt in self._attempts:
            if not attempt.expired():
                attempt.reschedule(now)
        connections = tuple(self._all)
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.wait_closed()

    def tls_error(self, error: ssl.SSLError) -> ConnectFailed:
        """The error for a certificate, the server's or ours, that was not accepted."""
        name = self._config.tls_server_name or self._host
        return tls_error(error, self._config.server, ca=self._config.ca_origin, name=name)

    def _timeout_error(self, deadline: float | None, connect_deadline: float) -> Exception:
        if self.closed or (deadline is not None and deadline < connect_deadline):
            return DeadlineExceeded()
        return RequestTimeout(
            f"cannot reach {self._config.server}: no connection within {self._config.connect_timeout:g} s; "
            "check the address and the firewalls on the way"
        )

    async def _connect(self) -> Connection:
        generation, context = self._generation, self._context
        sock = await connected_socket(self._host, self._port)
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(self._forget, generation=generation),
            sock=sock,
            ssl=context,
            server_hostname=(self._config.tls_server_name or self._host).rstrip(".") if context else None,
            # `connect` limits the time for all steps together; without this asyncio would apply 60 s to this one.
            ssl_handshake_timeout=self._config.connect_timeout + 1 if context else None,
        )
        if self.closed:
            connection.abort()
        elif connection.open:
            self._all.add(connection)
        return connection

    def _forget(self, connection: Connection) -> None:
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def _renew_tls_context(self) -> None:
        version = self._credentials.certificate_version
        if self._secure:
            self._context = ssl_context(self._config, self._credentials.client_certificate())
        self._version = version
        self._generation += 1
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.abort()
