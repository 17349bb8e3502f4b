"""Small HTTP servers for probes, metrics and debugging.

A `Server` is a runnable around one function from `Question` to `Answer`; what is served is decided by who makes it:
`health`, `metrics_pages`, `debug_pages`. The only module of the manager that knows aiohttp, and it imports it when a
server starts. Webhooks have a server of their own.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, final

import msgspec

from kubewright._base.logs import Logger
from kubewright.errors import ConfigError
from kubewright.manager.runnables import Group

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ("Answer", "Handler", "Question", "Server", "is_loopback", "parse_address")

_log = Logger("kubewright.servers")

_KEEP_ALIVE: Final = 90.0
_SHUT_DOWN: Final = 5.0


@final
class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = {}
    """Names in lower case."""


@final
class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What is said."""

    status: int = 200
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def text(cls, text: str, *, status: int = 200) -> Answer:
        return cls(status=status, body=text.encode())


Handler = Callable[[Question], Awaitable[Answer]]


def parse_address(text: str, *, what: str) -> tuple[str, int] | None:
    """`:8081`, `127.0.0.1:8081`, `[::1]:8081`; None, which means off, for an empty text or `0`."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(
            f"the {what} {text!r} is not an address; write it like :8081 or 127.0.0.1:8081, or 0 for none"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@final
class Server:
    """Serves one handler on one address. `open` takes the port; `run` answers until cancelled."""

    needs_leader = False
    group = Group.SERVERS

    def __init__(
        self, name: str, address: tuple[str, int], handler: Handler, *, tls: ssl.SSLContext | None = None
    ) -> None:
        self.name = name
        self._host, self._port = address
        self._handler = handler
        self._tls = tls
        self._socket: socket.socket | None = None
        self._ready = asyncio.Event()

    @property
    def port(self) -> int:
        """The port it listens on; the real one if 0 was asked for and the server is open."""
        return int(self._socket.getsockname()[1]) if self._socket is not None else self._port

    def open(self) -> None:
        """Take the port now, so that one that is in use is noticed before anything else starts."""
        if self._socket is None:
            self._socket = self._listen()

    def close(self) -> None:
        """Give the port back."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def wait_ready(self) -> None:
        await self._ready.wait()

    async def run(self) -> None:
        """Answer until cancelled."""
        from aiohttp import web

        self.open()
        assert self._socket is not None  # just opened
        server = web.Server(self._answer, access_log=None, keepalive_timeout=_KEEP_ALIVE)
        runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=_SHUT_DOWN)
        await runner.setup()
        try:
            await web.SockSite(runner, self._socket, ssl_context=self._tls).start()
            self._ready.set()
            _log.info("listening", server=self.name, port=self.port)
            await asyncio.Event().wait()
        finally:
            self._ready.clear()
            await runner.cleanup()
            self.close()

    def _listen(self) -> socket.socket:
        everywhere = self._host in ("", "::", "0.0.0.0")  # noqa: S104 - asked for: the kubelet probes from outside
        try:
            if everywhere and socket.has_dualstack_ipv6():
                return socket.create_server(("", self._port), family=socket.AF_INET6, dualstack_ipv6=True)
            family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
            return socket.create_server((self._host, self._port), family=family)
        except OSError as error:
            reason = "it is in use" if error.errno == errno.EADDRINUSE else (error.strerror or str(error)).lower()
            raise ConfigError(
                f"the {self.name} server cannot listen on {self._host}:{self._port}: {reason}; "
                "stop the other program, choose another address, or switch the server off with 0"
            ) from None

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        from aiohttp import web

        question = Question(
            method=request.method,
            path=request.path,
            query=tuple(request.query.items()),
            headers={name.lower(): value for name, value in request.headers.items()},
        )
        try:
            answer = await self._handler(question)
        except Exception as error:
            _log.error("an answer could not be given", server=self.name, path=question.path, error=error)
            answer = Answer.text("this page failed; the log says why\n", status=500)
        headers = {"Content-Type": answer.content_type, "X-Content-Type-Options": "nosniff", **dict(answer.headers)}
        body = b"" if request.method == "HEAD" else answer.body
        return web.Response(status=answer.status, body=body, headers=headers)
