"""Listener: accepts the connections of one socket for an `HttpServer`, and counts those within a TLS handshake.

asyncio's own servers tell nobody of a connection before its handshake is done, so clients that never finish one would
be beyond every limit. `server` makes a listener for each socket.
"""

from __future__ import annotations

import asyncio
import errno
import math
import socket
import ssl
import time
from typing import TYPE_CHECKING, Final, final

from kubewright._base.logs import Logger

if TYPE_CHECKING:
    from kubewright._base.http.connection import Connection
    from kubewright._base.http.server import HttpServer

__all__ = ("Listener",)

_log = Logger("kubewright.servers")

_BACKLOG: Final = 1024
_HANDSHAKE_SECONDS: Final = 10.0
_OUT_OF_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_SECONDS: Final = 0.1


@final
class Listener:
    """Accepts until it is closed."""

    def __init__(self, server: HttpServer, sock: socket.socket, *, tls: ssl.SSLContext | None) -> None:
        sock.setblocking(False)
        sock.listen(_BACKLOG)
        self._server = server
        self._socket = sock
        self._tls = tls
        self._handshakes: dict[Connection, tuple[float, asyncio.Task[None]]] = {}
        """When each handshake began, oldest first, and what waits for its end."""
        self._task = asyncio.get_running_loop().create_task(self._accept(), name="http: accept")

    @property
    def handshakes(self) -> int:
        """How many connections have not finished their handshake."""
        return len(self._handshakes)

    def oldest_handshake(self) -> float:
        """When the oldest one began that is not finished."""
        return next(iter(self._handshakes.values()), (math.inf,))[0]

    def end_oldest_handshake(self) -> None:
        """Close the connection whose handshake takes the longest."""
        connection = next(iter(self._handshakes))
        _, task = self._handshakes.pop(connection)
        task.cancel()

    def finished(self, connection: Connection) -> None:
        """The handshake of a connection has ended, well or not."""
        self._handshakes.pop(connection, None)

    def close(self) -> None:
        """Accept no more, and end the handshakes."""
        self._task.cancel()
        while self._handshakes:
            self.end_oldest_handshake()
        self._socket.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(self._socket)
            except OSError as error:
                if error.errno in _OUT_OF_FILES:
                    _log.warning("no more connections can be opened", error=error)
                    self._server.make_room()
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            if self._server.is_full and not self._server.make_room():
                sock.close()
                continue
            connection = self._server.protocol()
            task = loop.create_task(self._open(sock, connection), name="http: handshake")
            self._handshakes[connection] = (time.monotonic(), task)

    async def _open(self, sock: socket.socket, connection: Connection) -> None:
        timeout = _HANDSHAKE_SECONDS if self._tls is not None else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, sock, ssl=self._tls, ssl_handshake_timeout=timeout
            )
        except OSError:  # as is a handshake that failed
            sock.close()
        except asyncio.CancelledError:
            sock.close()
            raise
        finally:
            self.finished(connection)
