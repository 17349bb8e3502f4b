"""Bytes at random: bodies in JSON text, YAML and protobuf that were proper before, and noise."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

from tests.security.harness.protobuf import varint

__all__ = ("as_yaml", "random_protobuf", "spoilt_bytes", "spoilt_protobuf")

_PIECES: Final = (
    *(
        b"\x00",
        b"\xff",
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\\ud800",
        b"1e9",
    ),
    *(b"\n", b"- ", b"? ", b"&a ", b"*a", b"<<: ", b"!!binary ", b"|\n", b"\t", b"#", b"%", b"\x80" * 11, b"\r\n"),
)


def spoilt_bytes(rng: Random, data: bytes, *, largest: int) -> bytes:
    """The same with pieces cut out, put in, repeated or changed."""
    spoiling = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        start = rng.randrange(len(spoiling) + 1)
        end = min(len(spoiling), start + rng.choice((1, 2, 8, 60)))
        choice = rng.randrange(6)
        if choice == 0:
            del spoiling[start:end]
        elif choice == 1:
            spoiling[start:start] = rng.choice(_PIECES)
        elif choice == 2:
            piece = bytes(spoiling[start:end])
            times = min(rng.choice((2, 100, 10_000, 1_000_000)), largest // max(1, len(piece)))
            spoiling[start:start] = piece * times
        elif choice == 3 and spoiling:
            spoiling[start % len(spoiling)] ^= 1 << rng.randrange(8)
        elif choice == 4:
            del spoiling[start:]
        else:
            spoiling[start:end] = rng.randbytes(rng.randrange(12))
    return bytes(spoiling)


def as_yaml(rng: Random, tree: Any) -> bytes:
    """A tree as YAML: JSON is YAML already, and one of its texts may be meant twice."""
    text = json.dumps(tree, indent=rng.choice((None, 1)))
    if rng.random() < 0.3 and '"' in text:
        text = text.replace(': "', ': &a "', 1) + ("" if rng.random() < 0.5 else "\n---\n{}\n")
        text = text.replace("null", "*a").replace("true", "*a")
    return text.encode("utf-8", "surrogatepass")


def random_protobuf(rng: Random, depth: int = 4, *, largest: int = 3_000) -> bytes:
    """Fields of any number and type; messages within messages."""
    written = bytearray()
    for _ in range(rng.randrange(1, 7)):
        number = rng.choice((1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 17, 30, 1000, 2**28))
        wire = rng.choice((2, 2, 2, 2, 0, 0, 1, 5, 3, 4, 6, 7))
        piece = bytearray(varint(number << 3 | wire))
        if wire == 0:
            piece += varint(rng.choice((0, 1, 127, 128, 2**31, 2**63, 2**64 - 1, 2**70)))
        elif wire in (1, 5):
            piece += rng.randbytes(8 if wire == 1 else 4)
        elif wire == 2:
            inside = rng.choice((b"", b"a", b"v1", b"\xff", rng.randbytes(rng.randrange(20))))
            if depth and rng.random() < 0.6:
                inside = random_protobuf(rng, depth - 1, largest=largest // 4)
            piece += (
                varint(len(inside) + (0 if rng.random() < 0.97 else rng.choice((1, -1, 2**31, 2**60))) % 2**64) + inside
            )
        times = rng.choice((1, 1, 1, 1, 2, 30, 1_000_000)) if rng.random() < 0.2 else 1
        written += bytes(piece) * max(1, min(times, largest // len(piece)))
    return bytes(written)


def spoilt_protobuf(rng: Random, data: bytes, *, largest: int) -> bytes:
    """A message with fields added, repeated or taken away at some level, and the lengths around them put right."""
    fields = _fields(data)
    if not fields or rng.random() < 0.15:
        return spoilt_bytes(rng, data, largest=largest)
    place = rng.randrange(len(fields))
    number, wire, payload, raw = fields[place]
    choice = rng.randrange(8)
    if wire == 2 and choice < 4:
        inside = spoilt_protobuf(rng, payload, largest=largest)
        raw = varint(number << 3 | 2) + varint(len(inside)) + inside
    elif choice == 4:
        raw = b""
    elif choice == 5:
        raw = raw * max(1, min(rng.choice((2, 50, 1_000_000)), largest // max(1, len(raw))))
    elif choice == 6:
        raw = raw + random_protobuf(rng, 2, largest=largest)
    else:
        raw = varint(number << 3 | rng.randrange(8)) + payload
    return b"".join(raw if at == place else each[3] for at, each in enumerate(fields))


def _fields(data: bytes) -> list[tuple[int, int, bytes, bytes]]:
    """Number, wire type, payload and all bytes of each field; nothing if it is no message."""
    found, at = [], 0
    while at < len(data):
        start = at
        key, at = _read_varint(data, at)
        wire = key & 7
        if wire == 0:
            begin = at
            _, at = _read_varint(data, at)
        elif wire == 2:
            length, begin = _read_varint(data, at)
            at = begin + length
        elif wire in (1, 5):
            begin, at = at, at + (8 if wire == 1 else 4)
        else:
            return []
        if at > len(data) or at < 0 or not key >> 3:
            return []
        found.append((key >> 3, wire, data[begin:at], data[start:at]))
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at
    return 0, len(data) + 1
