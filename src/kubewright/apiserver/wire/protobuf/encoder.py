"""Encodes a JSON tree to the bytes of a message, byte for byte what Go would send. `envelope` calls it.

Fields are in the order of their numbers and maps in the order of their keys. A field that is no pointer in Go (a plain
string, a number, a struct) is written even if empty, as proto2 code of gogo/protobuf does. Members of the tree that the
message has no field for are left out: a validated object has none, and custom resources have no protobuf encoding.
"""

from __future__ import annotations

from base64 import b64decode
from struct import Struct
from struct import error as struct_error
from typing import Any, Final

from kubewright.apiserver.wire.protobuf.messages import Action, FieldEncoder, Message
from kubewright.errors import DecodeError

__all__ = ("encode_message", "varint")

_DOUBLE: Final = Struct("<d")
_MAX64: Final = (1 << 64) - 1

# Plain names: looking up an attribute of an enumeration for each field would be slower.
_STRING: Final = Action.STRING
_MESSAGE: Final = Action.MESSAGE
_INLINE: Final = Action.INLINE
_STRINGS: Final = Action.STRINGS
_MESSAGES: Final = Action.MESSAGES
_MAP: Final = Action.MAP
_VALUE: Final = Action.VALUE
_INT32: Final = Action.INT32
_INT64: Final = Action.INT64
_BOOL: Final = Action.BOOL


def encode_message(message: Message, tree: Any) -> bytes:
    """The bytes of a whole message, without an envelope."""
    try:
        return _encode(message, tree)
    except RecursionError as exc:
        raise DecodeError(f"{message.name} is nested too deep to be written as protobuf") from exc


def varint(number: int) -> bytes:
    """A number of up to 64 bits, seven to a byte."""
    if 0 <= number < 128:
        return bytes((number,))
    number &= _MAX64
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _encode(message: Message, tree: Any) -> bytes:  # hot
    if type(tree) is not dict:
        raise DecodeError(f"{message.name} is written from an object, not from {type(tree).__name__}")
    out = bytearray()
    field = None
    try:
        for field in message.encoders:
            _, action, name, always, _, _ = field
            value = tree if action is _INLINE else tree.get(name)
            if value is not None or always:
                _encode_field(field, value, out)
    except (TypeError, ValueError, AttributeError, OverflowError, struct_error) as exc:
        raise _encode_error(message, field, exc) from exc
    return bytes(out)


def _encode_field(field: FieldEncoder, value: Any, out: bytearray) -> None:  # hot
    tag, action, _, _, inside, write = field
    if action is _STRING:
        _append(out, tag, (value or "").encode())
    elif action is _MESSAGE or action is _INLINE:
        _append(out, tag, _encode(inside, {} if value is None else value))
    elif action is _INT32 or action is _INT64 or action is _BOOL:
        out += tag + varint(_integer(value))
    elif action is _STRINGS:
        for item in value:
            _append(out, tag, item.encode())
    elif action is _MESSAGES:
        for item in value:
            _append(out, tag, _encode(inside, item))
    elif action is _MAP:
        for name in sorted(value, key=str.encode):
            _append(out, tag, _encode(inside, {"key": name, "value": value[name]}))
    elif action is _VALUE:
        _append(out, tag, _encode(inside, write(value)))
    else:
        _encode_rare_field(field, value, out)


def _encode_rare_field(field: FieldEncoder, value: Any, out: bytearray) -> None:
    tag, action, _, _, inside, write = field
    if action is Action.VALUES:
        for item in value:
            _append(out, tag, _encode(inside, write(item)))
    elif action is Action.LIST:
        _append(out, tag, _encode(inside, {"": value}))
    elif action is Action.BYTES:
        _append(out, tag, b64decode(value))
    elif action is Action.OCTETS:
        _append(out, tag, value)
    elif action is Action.DOUBLE:
        out += tag + _DOUBLE.pack(value or 0)
    else:
        for item in value:
            out += tag + varint(_integer(item))


def _append(out: bytearray, tag: bytes, content: bytes) -> None:  # hot
    out += tag
    out += varint(len(content))
    out += content


def _integer(value: Any) -> int:
    if value is None:
        return 0
    number = int(value)
    if number != value:
        raise ValueError(f"{value!r} is no whole number")
    return number


def _encode_error(message: Message, field: FieldEncoder | None, cause: Exception) -> DecodeError:
    """The error with its path in front: each message on the way out adds its own field."""
    name = field.name if field else ""
    if isinstance(cause, DecodeError):
        return DecodeError(f"{name}.{cause}" if name else str(cause))
    return DecodeError(f"{name} of {message.name} cannot be written as protobuf: {cause}")
