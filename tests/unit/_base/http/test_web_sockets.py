"""Frames of WebSockets."""

from __future__ import annotations

import pytest

from kubewright._base.http.web_sockets import BINARY, CLOSE, PING, TEXT, Control, FrameReader, accept_key, frame

MASK = b"\x01\x02\x03\x04"


def masked(kind: int, data: bytes) -> bytes:
    """A frame of a client."""
    plain = frame(kind, data)
    head = plain[: len(plain) - len(data)]
    body = bytes(byte ^ MASK[position % 4] for position, byte in enumerate(data))
    return bytes((head[0], head[1] | 0x80)) + head[2:] + MASK + body


def test_the_key_of_the_rfc_is_accepted_as_it_says() -> None:
    assert accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_a_frame_says_its_length(size: int) -> None:
    made = frame(BINARY, b"x" * size)

    head = made[: len(made) - size]
    length = head[1] if head[1] < 126 else int.from_bytes(head[2:], "big")
    assert (head[0], length) == (0x82, size)


@pytest.mark.parametrize("piece", [1, 3, 1_000_000])
def test_control_frames_are_found_between_messages_of_any_size(piece: int) -> None:
    sent = masked(TEXT, b"a" * 70_000) + masked(PING, b"there?") + masked(BINARY, b"") + masked(CLOSE, b"\x03\xe8bye")
    reader, found = FrameReader(), list[Control]()

    for start in range(0, len(sent), piece):
        found += reader.feed(sent[start : start + piece])

    assert found == [Control(PING, b"there?"), Control(CLOSE, b"\x03\xe8bye")]


@pytest.mark.parametrize("sent", [frame(TEXT, b"not masked"), masked(PING, b"x" * 126)])
def test_what_violates_the_protocol_ends_it(sent: bytes) -> None:
    assert next(iter(FrameReader().feed(sent))) == Control(CLOSE, b"\x03\xea")
