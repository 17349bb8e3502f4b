"""JSON trees to the bytes of a message, byte for byte what Go would send for the same object.

Fields in the order of their numbers, maps in the order of their keys; what Go cannot leave out (a plain string, a
number, a struct) is written even if empty. What the message has no field for is left out: custom resources never come
here, and an object that was validated has nothing else.
"""

from __future__ import annotations

from base64 import b64decode
from struct import Struct
from typing import Any, Final

from kubewright.apiserver.wire.protobuf.messages import Action, Message, Step
from kubewright.errors import DecodeError

__all__ = ("varint", "write_message")

_DOUBLE: Final = Struct("<d")
_MAX64: Final = (1 << 64) - 1

# Plain names: an attribute of an enumeration would be looked up for each field.
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


def write_message(message: Message, tree: Any) -> bytes:
    """The bytes of a whole message; the envelope around it is the caller's business."""
    try:
        return _write(message, tree)
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


def _write(message: Message, tree: Any) -> bytes:  # hot
    if type(tree) is not dict:
        raise DecodeError(f"{message.name} is written from an object, not from {type(tree).__name__}")
    out = bytearray()
    step = None
    try:
        for step in message.plan:
            _, action, name, always, _, _ = step
            value = tree if action is _INLINE else tree.get(name)
            if value is not None or always:
                _field(step, value, out)
    except (TypeError, ValueError, AttributeError, OverflowError) as exc:
        raise _misfit(message, step, exc) from exc
    return bytes(out)


def _field(step: Step, value: Any, out: bytearray) -> None:  # hot
    tag, action, _, _, inside, write = step
    if action is _STRING:
        _append(out, tag, (value or "").encode())
    elif action is _MESSAGE or action is _INLINE:
        _append(out, tag, _write(inside, {} if value is None else value))
    elif action is _INT32 or action is _INT64 or action is _BOOL:
        out += tag + varint(_whole(value))
    elif action is _STRINGS:
        for item in value:
            _append(out, tag, item.encode())
    elif action is _MESSAGES:
        for item in value:
            _append(out, tag, _write(inside, item))
    elif action is _MAP:
        for name in sorted(value, key=str.encode):
            _append(out, tag, _write(inside, {"key": name, "value": value[name]}))
    elif action is _VALUE:
        _append(out, tag, _write(inside, write(value)))
    else:
        _rare_field(step, value, out)


def _rare_field(step: Step, value: Any, out: bytearray) -> None:
    tag, action, _, _, inside, write = step
    if action is Action.VALUES:
        for item in value:
            _append(out, tag, _write(inside, write(item)))
    elif action is Action.LIST:
        _append(out, tag, _write(inside, {"": value}))
    elif action is Action.BYTES:
        _append(out, tag, b64decode(value))
    elif action is Action.OCTETS:
        _append(out, tag, value)
    elif action is Action.DOUBLE:
        out += tag + _DOUBLE.pack(value or 0)
    else:
        for item in value:
            out += tag + varint(_whole(item))


def _append(out: bytearray, tag: bytes, content: bytes) -> None:  # hot
    out += tag
    out += varint(len(content))
    out += content


def _whole(value: Any) -> int:
    if value is None:
        return 0
    number = int(value)
    if number != value:
        raise ValueError(f"{value!r} is no whole number")
    return number


def _misfit(message: Message, step: Step | None, cause: Exception) -> DecodeError:
    """Led by the path: each message on the way out puts its own step in front."""
    name = step.name if step else ""
    if isinstance(cause, DecodeError):
        return DecodeError(f"{name}.{cause}" if name else str(cause))
    return DecodeError(f"{name} of {message.name} cannot be written as protobuf: {cause}")
