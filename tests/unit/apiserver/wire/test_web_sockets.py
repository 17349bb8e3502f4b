"""A stream over a WebSocket: what the handshake decides, and what the connection does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubewright._base.http.web_sockets import CLOSE, NORMAL, PONG, TEXT, frame
from kubewright.apiserver.wire.requests import Peer, Request
from kubewright.apiserver.wire.responses import Hijack, Response, Sink, Stream
from kubewright.apiserver.wire.web_sockets import is_web_socket, web_socket_reply

ASKED = {
    "connection": "keep-alive, Upgrade",
    "upgrade": "WebSocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "origin": "https://example.com",
}


class Events(Stream):
    """A stream that notes what happens to it."""

    def __init__(self) -> None:
        self.sink: Sink | None = None
        self.said: list[str] = []
        self.on_finish = lambda: self.said.append("finished")

    def start(self, sink: Sink) -> None:
        self.sink = sink

    def unblocked(self) -> None:
        self.said.append("unblocked")

    def disconnected(self) -> None:
        self.said.append("disconnected")


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 7

    def write(self, data: Any) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True


def request(**headers: str) -> Request:
    given = {**ASKED, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Request("GET", "/", {}, {name: value for name, value in given.items() if value}, b"", Peer())


def opened(events: Events) -> tuple[asyncio.Protocol, Wire]:
    reply = web_socket_reply(request(), events, text=True)
    assert isinstance(reply, Hijack)
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in reply.head
    wire = Wire()
    reply.protocol.connection_made(wire)
    return reply.protocol, wire


@pytest.mark.parametrize("headers", [{"upgrade": ""}, {"upgrade": "h2c"}, {"connection": "keep-alive"}])
def test_other_requests_are_none_for_a_web_socket(headers: dict[str, str]) -> None:
    assert is_web_socket(request())
    assert not is_web_socket(request(**headers))


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"origin": ""}, 403),
        ({"origin": "here"}, 403),
        ({"sec_websocket_key": ""}, 400),
        ({"sec_websocket_version": "8"}, 400),
        ({"sec_websocket_protocol": "a, b"}, 400),
    ],
)
def test_a_handshake_that_fails_ends_the_stream(headers: dict[str, str], code: int) -> None:
    events = Events()

    reply = web_socket_reply(request(**headers), events, text=True)

    assert isinstance(reply, Response)
    assert reply.code == code
    assert events.said == ["finished"]


def test_each_write_is_a_message_and_the_end_closes() -> None:
    events = Events()
    _, wire = opened(events)
    assert events.sink is not None

    events.sink.write(b"one")
    events.sink.write(b"two")
    events.sink.end()

    assert wire.written == frame(TEXT, b"one") + frame(TEXT, b"two") + frame(CLOSE, NORMAL)
    assert wire.closed
    assert events.said == ["finished"]


def test_pings_are_answered_and_a_close_frame_ends_the_stream() -> None:
    events = Events()
    protocol, wire = opened(events)

    protocol.data_received(b"\x89\x82\x00\x00\x00\x00hi\x88\x82\x00\x00\x00\x00\x03\xe9")
    protocol.connection_lost(None)

    assert wire.written == frame(PONG, b"hi") + frame(CLOSE, b"\x03\xe9")
    assert events.said == ["disconnected", "finished"]


def test_a_client_that_does_not_read_blocks_the_stream() -> None:
    events = Events()
    protocol, wire = opened(events)
    assert events.sink is not None

    protocol.pause_writing()
    assert events.sink.blocked
    assert events.sink.backlog == 7
    protocol.resume_writing()
    events.sink.abort()

    assert not events.sink.blocked
    assert events.said == ["unblocked"]
    assert wire.closed
