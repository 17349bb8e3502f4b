"""Bytes of a message to the JSON tree that Go's types make of them.

Unknown fields are skipped, the last of several scalars counts, parts sent in pieces are merged: the rules of the wire
format. What is left out or shown as null, "" or {} follows the Go structs. Errors are in the words of the code that
kube-apiserver runs. Nothing here trusts the bytes: depth is bounded and each byte is looked at once per message it
belongs to.
"""

from __future__ import annotations

import math
from base64 import b64encode
from struct import Struct
from typing import Any, Final

from kubewright.apiserver.wire.protobuf.messages import Action, Message, Reading
from kubewright.errors import DecodeError

__all__ = ("read_message",)

_DEEPEST: Final = 200
_DOUBLE: Final = Struct("<d")
_SIGN64: Final = 1 << 63
_MAX64: Final = (1 << 64) - 1
_EOF: Final = "unexpected EOF"
_NEGATIVE: Final = "proto: negative length found during unmarshaling"

# Plain integers: an attribute of an enumeration would be looked up for each field.
_STRING: Final = int(Action.STRING)
_MESSAGE: Final = int(Action.MESSAGE)
_INT32: Final = int(Action.INT32)
_INT64: Final = int(Action.INT64)
_BOOL: Final = int(Action.BOOL)
_STRINGS: Final = int(Action.STRINGS)
_MESSAGES: Final = int(Action.MESSAGES)
_MAP: Final = int(Action.MAP)
_INLINE: Final = int(Action.INLINE)
_VALUE: Final = int(Action.VALUE)


def read_message(message: Message, data: bytes) -> dict[str, Any]:
    """The tree of a whole message; the envelope around it is the caller's business."""
    tree: dict[str, Any] = {}
    try:
        _read(message, data, 0, len(data), tree, 0)
    except IndexError:
        raise DecodeError(_EOF) from None
    return tree


def _read(message: Message, data: bytes, pos: int, end: int, out: dict[str, Any], depth: int) -> None:  # hot
    """Lay what stands between two positions into a tree.

    A read past the end of this part but inside the body is noticed after it: positions only grow.
    """
    if depth > _DEEPEST:
        raise DecodeError(f"proto: {message.name}: more than {_DEEPEST} messages inside each other")
    fields = message.fields
    while pos < end:
        tag = data[pos]
        pos += 1
        if tag > 127:
            tag, pos = _varint(data, pos - 1)
        field = fields.get(tag)
        if field is None:
            pos = _skip_unknown(message, data, pos, tag)
        elif tag & 7 == 1:
            _lay_double(field, data[pos : pos + 8], out)
            pos += 8
        else:
            number = data[pos]
            pos += 1
            if number > 127:
                number, pos = _varint(data, pos - 1)
            if tag & 7 == 0:
                _lay_integer(field, number, out)
                continue
            stop = pos + number
            if stop > end:
                raise DecodeError(_EOF if number < _SIGN64 else _NEGATIVE)
            _lay(field, data, pos, stop, out, depth)
            pos = stop
    if pos > end:
        raise DecodeError(_EOF)
    _fill(message, out)


def _fill(message: Message, out: dict[str, Any]) -> None:  # hot
    """What JSON shows of fields that were not sent."""
    for name, value in message.constants:
        if name not in out:
            out[name] = value
    for name, inside in message.structs:
        if name not in out:
            part: dict[str, Any] = {}
            _fill(inside, part)
            out[name] = part


def _lay(field: Reading, data: bytes, pos: int, stop: int, out: dict[str, Any], depth: int) -> None:  # hot
    """Lay a field with a length into the tree."""
    action, name, keep, inside, read = field
    if action == _STRING:
        text = _text(data[pos:stop])
        if text or keep:
            out[name] = text
        else:
            out.pop(name, None)
    elif action == _MESSAGE:
        part = out.get(name)
        if part is None:
            part = {}
        _read(inside, data, pos, stop, part, depth + 1)
        out[name] = part
    elif action == _INLINE:
        _read(inside, data, pos, stop, out, depth + 1)
    elif action == _VALUE:
        part = {}
        _read(inside, data, pos, stop, part, depth + 1)
        part = read(part)
        if keep or part is not None:
            out[name] = part
        else:
            out.pop(name, None)
    elif action == _STRINGS:
        _list(out, name).append(_text(data[pos:stop]))
    elif action == _MAP:
        part = {}
        _read(inside, data, pos, stop, part, depth + 1)
        entries = out.get(name)
        if entries is None:
            entries = out[name] = {}
        value = part["value"]
        entries[part["key"]] = read() if value is None and read else value
    elif action == _MESSAGES:
        part = {}
        _read(inside, data, pos, stop, part, depth + 1)
        _list(out, name).append(part)
    else:
        _lay_rare(field, data, pos, stop, out, depth)


def _lay_rare(field: Reading, data: bytes, pos: int, stop: int, out: dict[str, Any], depth: int) -> None:
    action, name, keep, inside, read = field
    if action == Action.VALUES:
        part: dict[str, Any] = {}
        _read(inside, data, pos, stop, part, depth + 1)
        _list(out, name).append(read(part))
    elif action == Action.LIST:
        part = {"": out.get(name) or []}
        _read(inside, data, pos, stop, part, depth + 1)
        if part[""] or keep:
            out[name] = part[""]
    elif action == Action.BYTES:
        if pos < stop or keep:
            out[name] = b64encode(data[pos:stop]).decode()
        else:
            out.pop(name, None)
    elif action == Action.OCTETS:
        out[name] = data[pos:stop]
    else:
        signed = _signed32 if action == Action.PACKED32 else _signed64
        numbers = _list(out, name)
        while pos < stop:
            number, pos = _varint(data, pos)
            numbers.append(signed(number))
        if pos > stop:
            raise DecodeError(_EOF)


def _lay_integer(field: Reading, number: int, out: dict[str, Any]) -> None:  # hot
    action, name, keep, _, _ = field
    value: int | bool
    if action == _BOOL:
        value = number != 0
    elif action == _INT32:
        value = _signed32(number)
    elif action == _INT64:
        value = _signed64(number)
    else:
        _list(out, name).append(_signed32(number) if action == Action.INT32S else _signed64(number))
        return
    if value or keep:
        out[name] = value
    else:
        out.pop(name, None)


def _lay_double(field: Reading, eight: bytes, out: dict[str, Any]) -> None:
    if len(eight) < 8:
        raise DecodeError(_EOF)
    (value,) = _DOUBLE.unpack(eight)
    if not math.isfinite(value):
        raise DecodeError(f"json: unsupported value: {value}")
    # A whole number has no point in JSON, so a JSON decoder would give an int.
    out[field[1]] = int(value) if value.is_integer() and abs(value) < 1e21 else value


def _list(out: dict[str, Any], name: str) -> list[Any]:  # hot
    # Null, if an earlier piece of this message was filled up without it.
    found: list[Any] | None = out.get(name)
    if found is None:
        found = out[name] = []
    return found


def _signed32(number: int) -> int:
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number & 0x80000000 else number


def _signed64(number: int) -> int:
    return number - (1 << 64) if number & _SIGN64 else number


def _text(raw: bytes) -> str:  # hot
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _repaired(raw)


def _repaired(raw: bytes) -> str:
    """As Go writes broken UTF-8 into JSON: each byte that belongs to no character becomes a replacement character."""
    parts, pos = [], 0
    while pos < len(raw):
        try:
            parts.append(raw[pos:].decode())
            break
        except UnicodeDecodeError as exc:
            parts.append(raw[pos : pos + exc.start].decode())
            parts.append("\ufffd" * (exc.end - exc.start))
            pos += exc.end
    return "".join(parts)


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    """A number of up to ten bytes, cut to 64 bits as Go does, and the position after it."""
    number = shift = 0
    while shift < 64:
        byte = data[pos]
        pos += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & _MAX64, pos
        shift += 7
    raise DecodeError("proto: integer overflow")


def _skip_unknown(message: Message, data: bytes, pos: int, tag: int) -> int:
    """The position after a field this message does not have, or has with another wire type."""
    number, wire_type = _signed32(tag >> 3), tag & 7
    if wire_type == 4:
        raise DecodeError(f"proto: {message.name}: wiretype end group for non-group")
    if number <= 0:
        raise DecodeError(f"proto: {message.name}: illegal tag {number} (wire type {tag})")
    if number in message.go_names:
        raise DecodeError(f"proto: wrong wireType = {wire_type} for field {message.go_names[number]}")
    groups = 0
    while True:
        if wire_type == 0:
            _, pos = _varint(data, pos)
        elif wire_type == 1:
            pos += 8
        elif wire_type == 2:
            size, pos = _varint(data, pos)
            if size >= _SIGN64:
                raise DecodeError(_NEGATIVE)
            pos += size
        elif wire_type == 3:
            groups += 1
        elif wire_type == 4:
            groups -= 1
        elif wire_type == 5:
            pos += 4
        else:
            raise DecodeError(f"proto: illegal wireType {wire_type}")
        if groups == 0:
            return pos
        tag, pos = _varint(data, pos)
        wire_type = tag & 7
