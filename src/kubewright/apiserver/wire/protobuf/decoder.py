"""Decodes the bytes of a message to the JSON tree that Go's types would marshal to. `envelope` calls it.

The rules of the wire format hold: unknown fields are skipped, the last of several scalars wins, messages sent in pieces
are merged. Whether a field that was not sent is left out, null, "" or {} follows the Go structs. Errors are those of
the code that gogo/protobuf generates (`Unmarshal` in the generated.pb.go of each API group). The bytes are not
trusted: the depth is bounded, each byte is read once for each message that contains it, and the values are counted
before they are made, for an empty message of two bytes may be an object of fifty zero values.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final, TypeAlias, final

from kubewright.apiserver.wire.go_json import decode_text
from kubewright.apiserver.wire.protobuf.messages import Action, FieldDecoder, Message
from kubewright.apiserver.wire.value_limits import MAX_VALUES, too_many_values
from kubewright.errors import DecodeError

__all__ = ("decode_message",)

_MAX_DEPTH: Final = 200
_DOUBLE: Final = Struct("<d")
_SIGN64: Final = 1 << 63
_MAX64: Final = (1 << 64) - 1
_EOF: Final = "unexpected EOF"
_NEGATIVE: Final = "proto: negative length found during unmarshaling"

# The wire types of protobuf.
_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH_DELIMITED: Final = 2
_START_GROUP: Final = 3
_END_GROUP: Final = 4
_FIXED32: Final = 5

# Plain integers: looking up an attribute of an enumeration for each field would be slower.
_INT32: Final = int(Action.INT32)
_INT64: Final = int(Action.INT64)
_BOOL: Final = int(Action.BOOL)


@final
class _State:
    """How deep the decoder is, and how many values it may still make."""

    __slots__ = ("depth", "left")

    def __init__(self) -> None:
        self.depth = 0
        self.left = MAX_VALUES


def decode_message(message: Message, data: bytes) -> dict[str, Any]:
    """The tree of a whole message, without an envelope."""
    tree: dict[str, Any] = {}
    try:
        _decode(message, data, 0, len(data), tree, _State())
    except IndexError:
        raise DecodeError(_EOF) from None
    except RecursionError:
        raise DecodeError(f"proto: {message.name}: the JSON in it is nested too deep") from None
    return tree


def _decode(message: Message, data: bytes, pos: int, end: int, out: dict[str, Any], state: _State) -> None:  # hot
    """Decode the fields between two positions into a tree.

    Positions only grow, so a field that reads past the end of this message is noticed after the loop, and one that
    reads past the end of the body is an IndexError: checking every byte would be slower.
    """
    state.left -= message.values
    if state.left < 0:
        raise too_many_values()
    state.depth += 1
    if state.depth > _MAX_DEPTH:
        raise DecodeError(f"proto: {message.name}: more than {_MAX_DEPTH} messages inside each other")
    decoders = message.decoders
    while pos < end:
        tag = data[pos]
        pos += 1
        if tag > 127:
            tag, pos = _varint(data, pos - 1)
        field = decoders.get(tag)
        if field is None:
            pos = _skip_unknown(message, data, pos, tag)
            continue
        wire_type = tag & 7
        if wire_type == _FIXED64:
            _decode_double(field, data[pos : pos + 8], out)
            pos += 8
            continue
        number = data[pos]
        pos += 1
        if number > 127:
            number, pos = _varint(data, pos - 1)
        if wire_type == _VARINT:
            _decode_integer(field, number, out)
            continue
        stop = pos + number
        if stop > end:
            raise DecodeError(_EOF if number < _SIGN64 else _NEGATIVE)
        _DELIMITED[field[0]](field, data, pos, stop, out, state)
        pos = stop
    if pos > end:
        raise DecodeError(_EOF)
    state.depth -= 1
    _set_zeros(message, out)


def _set_zeros(message: Message, out: dict[str, Any]) -> None:  # hot
    """Set the fields that were not sent to what Go's zero values are in JSON."""
    for name, value in message.constants:
        if name not in out:
            out[name] = value
    for name, inside in message.structs:
        if name not in out:
            part: dict[str, Any] = {}
            _set_zeros(inside, part)
            out[name] = part


# The decoders of length-delimited fields: each gets the positions of its content and puts the value into the tree.


def _decode_string(field: FieldDecoder, data: bytes, pos: int, stop: int, out: dict[str, Any], state: _State) -> None:
    text = decode_text(data[pos:stop])
    if text or field[2]:
        out[field[1]] = text
    else:
        out.pop(field[1], None)


def _decode_submessage(
    field: FieldDecoder, data: bytes, pos: int, stop: int, out: dict[str, Any], state: _State
) -> None:
    name = field[1]
    part = out.get(name)  # a message may come in pieces, which are merged
    if part is None:
        part = {}
    _decode(field[3], data, pos, stop, part, state)
    out[name] = part


def _decode_inline(field: FieldDecoder, data: bytes, pos: int, stop: int, out: dict[str, Any], state: _State) -> None:
    _decode(field[3], data, pos, stop, out, state)


def _decode_value(field: FieldDecoder, data: bytes, pos: int, stop: int, out: dict[str, Any], state: _State) -> None:
    _, name, keep, inside, read = field
    members: dict[str, Any] = {}
    _decode(inside, data, pos, stop, members, state)
    value = read(members)
    if keep or value is not None:
        out[name] = value
    else:
        out.pop(name, None)


def _decode_strings(field: FieldDecoder, data: bytes, pos: int, stop: int, out: dict[str, Any], state: _State) -> None:
    state.left -= 1
    if state.left < 0:
        raise too_many_values()
    _list(out, field[1]).append(decode_text(data[pos:stop]))


def _decode_map(field: FieldDecoder, data: bytes, pos: int, stop: int, out: dict[str, Any], state: _State) -> None:
    _, name, _, inside, read = field
    part: dict[str, Any] = {}
    _decode(inside, data, pos, stop, part, state)
    entries = out.get(name)
    if entries is None:
        entries = out[name] = {}
    value = part["value"]
    entries[part["key"]] = read() if value is None and read else value


def _decode_messages(field: FieldDecoder, data: bytes, pos: int, stop: int, out: dict[str, Any], state: _State) -> None:
    part: dict[str, Any] = {}
    _decode(field[3], data, pos, stop, part, state)
    _list(out, field[1]).append(part)


def _decode_values(field: FieldDecoder, data: bytes, pos: int, stop: int, out: dict[str, Any], state: _State) -> None:
    members: dict[str, Any] = {}
    _decode(field[3], data, pos, stop, members, state)
    _list(out, field[1]).append(field[4](members))


def _decode_list(field: FieldDecoder, data: bytes, pos: int, stop: int, out: dict[str, Any], state: _State) -> None:
    _, name, keep, inside, _ = field
    part = {"": out.get(name) or []}
    _decode(inside, data, pos, stop, part, state)
    if part[""] or keep:
        out[name] = part[""]


def _decode_bytes(field: FieldDecoder, data: bytes, pos: int, stop: int, out: dict[str, Any], state: _State) -> None:
    if pos < stop or field[2]:
        out[field[1]] = b64encode(data[pos:stop]).decode()
    else:
        out.pop(field[1], None)


def _decode_octets(field: FieldDecoder, data: bytes, pos: int, stop: int, out: dict[str, Any], state: _State) -> None:
    out[field[1]] = data[pos:stop]


def _decode_packed(field: FieldDecoder, data: bytes, pos: int, stop: int, out: dict[str, Any], state: _State) -> None:
    signed = _signed32 if field[0] == Action.PACKED32 else _signed64
    numbers = _list(out, field[1])
    while pos < stop:
        number, pos = _varint(data, pos)
        numbers.append(signed(number))
        if len(numbers) > MAX_VALUES:
            raise too_many_values()
    if pos > stop:
        raise DecodeError(_EOF)


_DecodeField: TypeAlias = Callable[[FieldDecoder, bytes, int, int, dict[str, Any], _State], None]

_BY_ACTION: Final[Mapping[Action, _DecodeField]] = {
    Action.STRING: _decode_string,
    Action.MESSAGE: _decode_submessage,
    Action.STRINGS: _decode_strings,
    Action.MESSAGES: _decode_messages,
    Action.MAP: _decode_map,
    Action.INLINE: _decode_inline,
    Action.VALUE: _decode_value,
    Action.VALUES: _decode_values,
    Action.LIST: _decode_list,
    Action.BYTES: _decode_bytes,
    Action.OCTETS: _decode_octets,
    Action.PACKED32: _decode_packed,
    Action.PACKED64: _decode_packed,
}
# A tuple is indexed faster than a dictionary. The gaps are actions of other wire types, which never get here.
_DELIMITED: Final[tuple[_DecodeField, ...]] = tuple(_BY_ACTION.get(action, _decode_packed) for action in Action)


def _decode_integer(field: FieldDecoder, number: int, out: dict[str, Any]) -> None:  # hot
    action, name, keep, _, _ = field
    value: int | bool
    if action == _BOOL:
        value = number != 0
    elif action == _INT32:
        value = _signed32(number)
    elif action == _INT64:
        value = _signed64(number)
    else:
        numbers = _list(out, name)
        numbers.append(_signed32(number) if action == Action.INT32S else _signed64(number))
        if len(numbers) > MAX_VALUES:
            raise too_many_values()
        return
    if value or keep:
        out[name] = value
    else:
        out.pop(name, None)


def _decode_double(field: FieldDecoder, eight: bytes, out: dict[str, Any]) -> None:
    if len(eight) < 8:
        raise DecodeError(_EOF)
    (value,) = _DOUBLE.unpack(eight)
    if not math.isfinite(value):
        raise DecodeError(f"json: unsupported value: {value}")
    # A whole number has no point in JSON, so a JSON decoder would give an int.
    out[field[1]] = int(value) if value.is_integer() and abs(value) < 1e21 else value


def _list(out: dict[str, Any], name: str) -> list[Any]:  # hot
    # Null if an earlier piece of this message set the zero value.
    found: list[Any] | None = out.get(name)
    if found is None:
        found = out[name] = []
    return found


def _signed32(number: int) -> int:
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number & 0x80000000 else number


def _signed64(number: int) -> int:
    return number - (1 << 64) if number & _SIGN64 else number


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    """A number of up to ten bytes, truncated to 64 bits as in Go, and the position after it."""
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
    if wire_type == _END_GROUP:
        raise DecodeError(f"proto: {message.name}: wiretype end group for non-group")
    if number <= 0:
        raise DecodeError(f"proto: {message.name}: illegal tag {number} (wire type {tag})")
    if number in message.go_names:
        raise DecodeError(f"proto: wrong wireType = {wire_type} for field {message.go_names[number]}")
    groups = 0
    while True:
        if wire_type == _START_GROUP:
            groups += 1
        elif wire_type == _END_GROUP:
            groups -= 1
        else:
            pos = _skip_content(data, pos, wire_type)
        if groups == 0:
            return pos
        tag, pos = _varint(data, pos)
        wire_type = tag & 7


def _skip_content(data: bytes, pos: int, wire_type: int) -> int:
    if wire_type == _VARINT:
        return _varint(data, pos)[1]
    if wire_type == _FIXED64:
        return pos + 8
    if wire_type == _FIXED32:
        return pos + 4
    if wire_type != _LENGTH_DELIMITED:
        raise DecodeError(f"proto: illegal wireType {wire_type}")
    size, pos = _varint(data, pos)
    if size >= _SIGN64:
        raise DecodeError(_NEGATIVE)
    return pos + size
