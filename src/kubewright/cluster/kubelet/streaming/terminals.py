"""The streams of a command that somebody runs in a container: input, output, errors, and how it ended.

The same to whoever runs the command, over the channels of a WebSocket (`v5.channel.k8s.io` and older) or over the
streams of SPDY (`v4.channel.k8s.io` and older). A terminal that was asked for has one output only and turns line ends
as a terminal driver does. Opened by `entering`, used by `shell`.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final, final

import msgspec

from kubewright.cluster.kubelet.streaming.connections import ConnectionLost
from kubewright.cluster.kubelet.streaming.spdy import SpdySession, SpdyStream
from kubewright.cluster.kubelet.streaming.web_sockets import WebSocket

__all__ = (
    "ChannelTerminal",
    "SpdyTerminal",
    "StreamOptions",
    "Terminal",
    "channel_of",
    "channel_protocol",
    "exit_status",
    "internal_error_status",
    "send_to_channel",
)

_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255
_CHANNEL_PROTOCOLS: Final = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
)
_encode = msgspec.json.Encoder().encode


class StreamOptions(msgspec.Struct, frozen=True):
    """Which streams the client wants."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str]) -> StreamOptions:
        """From the query of a request; a terminal has no stream for errors."""
        tty = query.get("tty") == "1"
        return cls(
            stdin=query.get("input") == "1",
            stdout=query.get("output") == "1",
            stderr=query.get("error") == "1" and not tty,
            tty=tty,
        )

    @property
    def problem(self) -> str:
        """What is wrong with it, in the words of the kubelet."""
        if self.stdin or self.stdout or self.stderr:
            return ""
        return "you must specify at least 1 of stdin, stdout, stderr"


class Terminal(abc.ABC):
    """What a command reads and writes."""

    def __init__(self, options: StreamOptions) -> None:
        self.options = options
        self.left = asyncio.Event()
        """The client is gone."""

    @abc.abstractmethod
    async def read(self) -> bytes:
        """Some input; nothing at its end."""

    @abc.abstractmethod
    async def _send(self, data: bytes, *, error: bool) -> None: ...

    @abc.abstractmethod
    async def _end(self, status: Mapping[str, Any]) -> None: ...

    async def write(self, data: bytes) -> None:
        """Print."""
        await self._put(data, error=False)

    async def complain(self, data: bytes) -> None:
        """Print an error."""
        await self._put(data, error=not self.options.tty)

    async def finish(self, status: Mapping[str, Any]) -> None:
        """Tell how it ended and be done."""
        with contextlib.suppress(ConnectionLost):
            await self._end(status)

    async def _put(self, data: bytes, *, error: bool) -> None:
        if data and (self.options.stderr if error else self.options.stdout):
            try:
                await self._send(data.replace(b"\n", b"\r\n") if self.options.tty else data, error=error)
            except ConnectionLost:
                self.left.set()


@final
class ChannelTerminal(Terminal):
    """Over a WebSocket: the first byte of a message is the number of its channel."""

    def __init__(self, socket: WebSocket, protocol: str, options: StreamOptions) -> None:
        super().__init__(options)
        self._socket = socket
        self._protocol = protocol
        self._base64 = "base64" in protocol
        self._input: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._ended = not options.stdin

    async def open(self) -> None:
        """Let the client know that it is connected: an empty message on the first channel that is written to."""
        options = self.options
        await self._message(_STDOUT if options.stdout else _STDERR if options.stderr else _ERROR, b"")

    async def run(self) -> None:
        """Take in what comes until the client leaves."""
        while (message := await self._socket.receive()) is not None:
            channel, data = channel_of(message, base64=self._base64)
            if channel == _STDIN:
                if data and not self._ended:
                    self._input.put_nowait(data)
            elif channel == _CLOSE and data[:1] == bytes((_STDIN,)) and self._protocol.startswith("v5"):
                self._input.put_nowait(None)
        self.left.set()
        self._input.put_nowait(None)

    async def read(self) -> bytes:
        if self._ended:
            return b""
        data = await self._input.get()
        self._ended = data is None
        return data or b""

    async def _send(self, data: bytes, *, error: bool) -> None:
        await self._message(_STDERR if error else _STDOUT, data)

    async def _end(self, status: Mapping[str, Any]) -> None:
        if self._protocol.startswith("v"):
            await self._message(_ERROR, _encode(status))
        elif status["status"] != "Success":
            await self._message(_ERROR, str(status["message"]).encode())
        await self._socket.close()

    async def _message(self, channel: int, data: bytes) -> None:
        await send_to_channel(self._socket, channel, data, base64=self._base64)


@final
class SpdyTerminal(Terminal):
    """Over SPDY: each stream says in a header which one it is."""

    def __init__(self, session: SpdySession, protocol: str, options: StreamOptions) -> None:
        super().__init__(options)
        self._session = session
        self._protocol = protocol
        self._streams: dict[str, SpdyStream] = {}

    async def open(self, *, seconds: float) -> bool:
        """Wait for the streams that were announced; whether they came."""
        options = self.options
        resizable = options.tty and self._protocol[:2] in ("v4", "v3")
        expected = 1 + options.stdin + options.stdout + options.stderr + resizable
        try:
            async with asyncio.timeout(seconds):
                while len(self._streams) < expected:
                    stream = await self._session.accept()
                    if stream is None:
                        return False
                    self._streams[stream.headers.get("streamtype", "")] = stream
        except TimeoutError:
            return False
        return True

    async def run(self) -> None:
        """Return when the client leaves."""
        while await self._session.accept() is not None:
            pass
        self.left.set()

    async def read(self) -> bytes:
        stream = self._streams.get("stdin")
        return await stream.read() if stream is not None else b""

    async def _send(self, data: bytes, *, error: bool) -> None:
        stream = self._streams.get("stderr" if error else "stdout")
        if stream is not None:
            await stream.write(data)

    async def _end(self, status: Mapping[str, Any]) -> None:
        stream = self._streams.get("error")
        if stream is not None:
            if self._protocol.startswith("v4"):
                await stream.write(_encode(status))
            elif status["status"] != "Success":
                await stream.write(str(status["message"]).encode())
        for one in self._streams.values():
            await one.finish()
        await self._session.close()


def channel_of(message: bytes, *, base64: bool) -> tuple[int, bytes]:
    """The number of the channel a message is for, and what it says; -1 if it is none."""
    if not message:
        return -1, b""
    if not base64:
        return message[0], message[1:]
    try:
        return message[0] - ord("0"), b64decode(message[1:])
    except ValueError:
        return -1, b""


async def send_to_channel(socket: WebSocket, channel: int, data: bytes, *, base64: bool) -> None:
    """Send on a channel."""
    if base64:
        await socket.send(b"%d%s" % (channel, b64encode(data)), text=True)
    else:
        await socket.send(bytes((channel,)) + data)


def channel_protocol(offered: Sequence[str]) -> str | None:
    """The protocol of a WebSocket: the first one offered that is known; nothing offered is the oldest."""
    if not offered:
        return ""
    return next((name for name in offered if name in _CHANNEL_PROTOCOLS), None)


def exit_status(code: int) -> dict[str, Any]:
    """How a command ended, as a Status."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: command terminated with exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def internal_error_status(why: str) -> dict[str, Any]:
    """That it was never begun, as a Status."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {why}",
        "reason": "InternalError",
        "details": {"causes": [{"message": why}]},
        "code": 500,
    }
