"""The connections to one server: those at rest, those being made, and when to make them anew.

A plain request takes a connection at rest or makes one, and gives it back. A stream has a connection of its own, which
is closed after it. When the client certificate changes, connections at rest are closed at once and those in use
after their answer, while streams go on. Errors of connecting are told here, in a sentence; those of an established
connection in `httptools_transport`, which is the only caller.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import final
from urllib.parse import urlsplit

from kubewright.client.config.config import Config
from kubewright.client.transport.connections import Connection, Overdue
from kubewright.client.transport.failures import connect_failure, tls_failure
from kubewright.client.transport.sockets import connected_socket
from kubewright.client.transport.tls import ssl_context
from kubewright.errors import ConnectFailed, RequestTimeout

__all__ = ("Pool",)

# Below the 60 s after which load balancers and the 90 s after which a kube-apiserver drop an idle
# connection, so that a write is not sent into a connection that is just being closed.
_KEEP_IDLE = 30.0


@final
class Pool:
    """Has no limit: each watch holds a connection, so a limit would be a deadlock."""

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
        self._resting: list[Connection] = []
        self._all: set[Connection] = set()
        self._attempts: set[asyncio.Timeout] = set()
        self.closed = False

    def take(self) -> Connection | None:  # hot
        """A connection at rest, if there is one: the one used last, so that those not needed grow old."""
        if self._version != self._credentials.certificate_version:
            self._renew()
        while self._resting:
            connection = self._resting.pop()
            if connection.open:
                return connection
        return None

    def give_back(self, connection: Connection) -> None:  # hot
        """The answer is there; keep the connection if it can be used again."""
        if connection.reusable and connection.open and connection.generation == self._generation and not self.closed:
            connection.rest(_KEEP_IDLE)
            self._resting.append(connection)
        else:
            connection.abort()

    async def connect(self, deadline: float | None) -> Connection:
        """A new connection; `Overdue` if the request's own time is over before the time for connecting is."""
        if self.closed:
            raise ConnectFailed(f"the connection to {self._config.server} was closed by this program", lasting=True)
        if self._version != self._credentials.certificate_version:
            self._renew()
        latest = asyncio.get_running_loop().time() + self._config.connect_timeout
        limit = asyncio.timeout_at(latest if deadline is None else min(deadline, latest))
        self._attempts.add(limit)
        try:
            async with limit:
                return await self._connect()
        except ssl.SSLError as error:
            raise self.tls_failure(error) from None
        except OSError as error:
            if not limit.expired() or not isinstance(error, TimeoutError):
                raise connect_failure(error, self._config.server) from None
            raise self._too_late(deadline, latest) from None
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
            await connection.gone()

    def tls_failure(self, error: ssl.SSLError) -> ConnectFailed:
        """The server's certificate, or ours, was not accepted."""
        name = self._config.tls_server_name or self._host
        return tls_failure(error, self._config.server, ca=self._config.ca_origin, name=name)

    def _too_late(self, deadline: float | None, latest: float) -> Exception:
        if self.closed or (deadline is not None and deadline < latest):
            return Overdue()
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
            # The time for connecting is kept by the caller, for all of its steps together.
            ssl_handshake_timeout=self._config.connect_timeout + 1 if context else None,
        )
        if self.closed:
            connection.abort()
        elif connection.open:
            self._all.add(connection)
        return connection

    def _forget(self, connection: Connection) -> None:
        self._all.discard(connection)
        if connection in self._resting:
            self._resting.remove(connection)

    def _renew(self) -> None:
        version = self._credentials.certificate_version
        if self._secure:
            self._context = ssl_context(self._config, self._credentials.client_certificate())
        self._version = version
        self._generation += 1
        resting, self._resting = self._resting, []
        for connection in resting:
            connection.abort()
