"""The streams of exec and attach: stdin, stdout, stderr and the error stream with the exit status.

`ChannelStreams` carries them over the channels of a WebSocket, `SpdyStreams` over SPDY streams. Subprotocols as in
staging/src/k8s.io/apimachinery/pkg/util/remotecommand/constants.go: from v4 the error stream has a Status with the exit
code, older ones a message; v5 (WebSocket only) adds a message that closes one stream, so that a client can end stdin.
With a tty there is no stderr, and LF becomes CR LF. Opened by `streaming_handlers`, used by `sandbox.shell`.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final, final

import msgspec

from kubewright.cluster.kubelet.streaming.connections import ConnectionLost, UnreadBytes
from kubewright.cluster.kubelet.streaming.spdy import SpdySession, SpdyStream
from kubewright.cluster.kubelet.streaming.web_sockets import WebSocket

__all__ = (
    "ChannelStreams",
    "CommandStreams",
    "SpdyStreams",
    "StreamOptions",
    "channel_protocol",
    "decode_message",
    "exit_status",
    "internal_error_status",
    "send_message",
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
    """The streams that the client requests."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> StreamOptions:
        """Decode the query of a request; with a tty there is no stderr."""
        tty = query.get("tty") == "1"
        return cls(
            stdin=query.get("input") == "1",
            stdout=query.get("output") == "1",
            stderr=query.get("error") == "1" and not tty,
            tty=tty,
        )

    @property
    def error(self) -> str:
        """The kubelet's message for invalid options; empty if they are valid."""
        if self.stdin or self.stdout or self.stderr:
            return ""
        return "you must specify at least 1 of stdin, stdout, stderr"


class CommandStreams(abc.ABC):
    """The streams of one command."""

    def __init__(self, options: StreamOptions) -> None:
        self.options = options
        self.disconnected = asyncio.Event()
        """Set when the client has disconnected."""

    @abc.abstractmethod
    async def read(self) -> bytes:
        """The next input; empty at the end."""

    @abc.abstractmethod
    async def _send(self, data: bytes, *, error: bool) -> None: ...

    @abc.abstractmethod
    async def _write_status(self, status: Mapping[str, Any]) -> None: ...

    async def write(self, data: bytes) -> None:
        """Write to stdout."""
        await self._write(data, error=False)

    async def write_error(self, data: bytes) -> None:
        """Write to stderr, or to the terminal if there is one."""
        await self._write(data, error=not self.options.tty)

    async def close(self, status: Mapping[str, Any]) -> None:
        """Send the status of the command and close the streams."""
        with contextlib.suppress(ConnectionLost):
            await self._write_status(status)

    async def _write(self, data: bytes, *, error: bool) -> None:
        if data and (self.options.stderr if error else self.options.stdout):
            try:
                await self._send(data.replace(b"\n", b"\r\n") if self.options.tty else data, error=error)
            except ConnectionLost:
                self.disconnected.set()


@final
class ChannelStreams(CommandStreams):
    """Streams over a WebSocket: the first byte of a message is the number of its channel."""

    def __init__(self, socket: WebSocket, protocol: str, options: StreamOptions) -> None:
        super().__init__(options)
        self._socket = socket
        self._protocol = protocol
        self._base64 = "base64" in protocol
        self._input: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._unread = UnreadBytes()
        self._stdin_closed = not options.stdin
        self._stdin_ended = False

    async def open(self) -> None:
        """Send an empty message on the first output channel, as upstream does to show that the streams are open."""
        options = self.options
        await self._send_message(_STDOUT if options.stdout else _STDERR if options.stderr else _ERROR, b"")

    async def run(self) -> None:
        """Receive input until the client disconnects."""
        while (message := await self._socket.receive()) is not None:
            channel, data = decode_message(message, base64=self._base64)
            if channel == _STDIN:
                if data and not self._stdin_closed and not self._stdin_ended:
                    self._unread.add(data)
                    self._input.put_nowait(data)
            elif channel == _CLOSE and data[:1] == bytes((_STDIN,)) and self._protocol.startswith("v5"):
                self._end_stdin()
            await self._unread.wait_for_room()
        self.disconnected.set()
        self._end_stdin()

    def _end_stdin(self) -> None:
        if not self._stdin_ended:
            self._stdin_ended = True
            self._input.put_nowait(None)

    async def read(self) -> bytes:
        if self._stdin_closed:
            return b""
        data = await self._input.get()
        if data is None:
            self._stdin_closed = True
            return b""
        self._unread.remove(data)
        return data

    async def _send(self, data: bytes, *, error: bool) -> None:
        await self._send_message(_STDERR if error else _STDOUT, data)

    async def _write_status(self, status: Mapping[str, Any]) -> None:
        if self._protocol.startswith("v"):
            await self._send_message(_ERROR, _encode(status))
        elif status["status"] != "Success":
            await self._send_message(_ERROR, str(status["message"]).encode())
        await self._socket.close()

    async def _send_message(self, channel: int, data: bytes) -> None:
        await send_message(self._socket, channel, data, base64=self._base64)


@final
class SpdyStreams(CommandStreams):
    """Streams over SPDY: the header streamType names each stream."""

    def __init__(self, session: SpdySession, protocol: str, options: StreamOptions) -> None:
        super().__init__(options)
        self._session = session
        self._protocol = protocol
        self._streams: dict[str, SpdyStream] = {}

    async def open(self, *, seconds: float) -> bool:
        """Wait until the client has opened the requested streams; whether it has."""
        options = self.options
        has_resize_stream = options.tty and self._protocol[:2] in ("v4", "v3")
        expected = 1 + options.stdin + options.stdout + options.stderr + has_resize_stream
        try:
            async with asyncio.timeout(seconds):
                while len(self._streams) < expected:
                    stream = await self._session.accept()
                    if stream is None:
                        return False
                    name = stream.headers.get("streamtype", "")
                    self._streams[name] = stream
                    if name != "stdin":
                        stream.discard()
        except TimeoutError:
            return False
        return True

    async def run(self) -> None:
        """Return when the client disconnects; reset the streams that it opens and the command has no use for."""
        with contextlib.suppress(ConnectionLost):
            while (stream := await self._session.accept()) is not None:
                await stream.reset()
        self.disconnected.set()

    async def read(self) -> bytes:
        stream = self._streams.get("stdin")
        return await stream.read() if stream is not None else b""

    async def _send(self, data: bytes, *, error: bool) -> None:
        stream = self._streams.get("stderr" if error else "stdout")
        if stream is not None:
            await stream.write(data)

    async def _write_status(self, status: Mapping[str, Any]) -> None:
        stream = self._streams.get("error")
        if stream is not None:
            if self._protocol.startswith("v4"):
                await stream.write(_encode(status))
            elif status["status"] != "Success":
                await stream.write(str(status["message"]).encode())
        for each in self._streams.values():
            await each.finish()
        await self._session.close()


def decode_message(message: bytes, *, base64: bool) -> tuple[int, bytes]:
    """The channel and the data of a message; channel -1 if it is invalid."""
    if not message:
        return -1, b""
    if not base64:
        return message[0], message[1:]
    try:
        return message[0] - ord("0"), b64decode(message[1:])
    except ValueError:
        return -1, b""


async def send_message(socket: WebSocket, channel: int, data: bytes, *, base64: bool) -> None:
    """Send data on a channel."""
    if base64:
        await socket.send(b"%d%s" % (channel, b64encode(data)), text=True)
    else:
        await socket.send(bytes((channel,)) + data)


def channel_protocol(offered: Sequence[str]) -> str | None:
    """The first offered subprotocol that is known; empty (the oldest) if the client offers none, None if none fits."""
    if not offered:
        return ""
    return next((name for name in offered if name in _CHANNEL_PROTOCOLS), None)


def exit_status(code: int) -> dict[str, Any]:
    """The Status for an exit code."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: command terminated with exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def internal_error_status(reason: str) -> dict[str, Any]:
    """The Status for a command that was not started."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {reason}",
        "reason": "InternalError",
        "details": {"causes": [{"message": reason}]},
        "code": 500,
    }
