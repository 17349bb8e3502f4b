"""What is on the wire, message by message: field numbers, names, types, and what JSON makes of a zero.

The rows are package data of `kubewright.k8s`, one file per group-version, made by `generate.protobuf` from the sources
of Kubernetes. Here they become `Message` objects, each when it is first met: `reads` follows `fields` and
`constants`, `writes` follows `plan`. A message that stands for one JSON value (a time, a quantity) has a table like
any other and a pair of functions from `values`.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from enum import IntEnum
from functools import cache, cached_property
from importlib import resources
from typing import Any, Final, NamedTuple, TypeAlias, final

from kubewright.api.codec import decode_tree
from kubewright.apiserver.wire.protobuf.values import VALUES, Value
from kubewright.k8s.index import MODULES

__all__ = ("Action", "Field", "Message", "Reading", "Step", "message_of_kind", "small_message")

Row: TypeAlias = list[Any]
"""Number, JSON name, type, shape, flags and perhaps the name in Go, as `generate.protobuf` writes them."""


class Action(IntEnum):
    """What is to be done with a field; one flat list, since the reader goes through it for each field."""

    STRING = 0
    MESSAGE = 1
    INT32 = 2
    INT64 = 3
    BOOL = 4
    STRINGS = 5
    MESSAGES = 6
    MAP = 7
    INLINE = 8
    VALUE = 9
    VALUES = 10
    LIST = 11
    BYTES = 12
    OCTETS = 13
    DOUBLE = 14
    INT32S = 15
    INT64S = 16
    PACKED32 = 17
    PACKED64 = 18


Reading: TypeAlias = tuple[int, str, bool, Any, Any]
"""Action, JSON name, whether a zero is kept, the message inside and, for a value, what makes JSON of it; for a map,
what makes a value that was not sent, where that is not null."""


class Field(NamedTuple):
    """One field of a message."""

    number: int
    name: str
    go_name: str
    action: Action
    inside: Message | None
    value: Value | None
    pointer: bool
    omit_empty: bool
    omit_zero: bool
    entry: Action | None
    """For a map, what its values are."""


class Step(NamedTuple):
    """One step of writing a message."""

    tag: bytes
    action: Action
    name: str
    always: bool
    inside: Any
    value: Any


_SCALARS: Final = {
    "string": (Action.STRING, Action.STRINGS),
    "int32": (Action.INT32, Action.INT32S),
    "int64": (Action.INT64, Action.INT64S),
    "bool": (Action.BOOL, None),
    "bytes": (Action.BYTES, None),
    "double": (Action.DOUBLE, None),
    "octets": (Action.OCTETS, None),
}
_WIRE_TYPES: Final = {
    Action.INT32: 0,
    Action.INT64: 0,
    Action.BOOL: 0,
    Action.INT32S: 0,
    Action.INT64S: 0,
    Action.DOUBLE: 1,
}
_PACKED: Final = {Action.INT32S: Action.PACKED32, Action.INT64S: Action.PACKED64}
_ZEROS: Final[dict[Action, Any]] = {
    Action.STRING: "",
    Action.INT32: 0,
    Action.INT64: 0,
    Action.BOOL: False,
    Action.DOUBLE: 0,
}
"""The zeros that are not null; every list, map and string of bytes starts as null in Go."""

_MISSING: Final[dict[Action | None, Any]] = {Action.BYTES: str, Action.LIST: list}
"""In a map Go makes these empty instead."""


@final
class Message:
    """The table of one message; its parts are worked out when first asked for."""

    def __init__(self, name: str, module: str, rows: list[Row]) -> None:
        self.name = name
        self._module = module
        self._rows = rows

    @cached_property
    def all_fields(self) -> tuple[Field, ...]:
        """Every field, by number."""
        return tuple(sorted((self._field(row) for row in self._rows), key=lambda field: field.number))

    @cached_property
    def fields(self) -> dict[int, Reading]:
        """What to do, by tag: the number and the wire type in one, as they come."""
        found: dict[int, Reading] = {}
        for field in self.all_fields:
            keep = not field.omit_zero and (field.pointer or not field.omit_empty or field.action is Action.VALUE)
            read = field.value.read if field.value else _MISSING.get(field.entry)
            reads = (int(field.action), field.name, keep, field.inside, read)
            found[field.number << 3 | _WIRE_TYPES.get(field.action, 2)] = reads
            if field.action in _PACKED:
                found[field.number << 3 | 2] = (int(_PACKED[field.action]), *reads[1:])
        return found

    @cached_property
    def go_names(self) -> dict[int, str]:
        """Names of the fields in Go, by number, which errors mention."""
        return {field.number: field.go_name for field in self.all_fields}

    @cached_property
    def constants(self) -> tuple[tuple[str, Any], ...]:
        """What JSON shows for fields that were not sent, where that is no object."""
        found: list[tuple[str, Any]] = []
        for field in self.all_fields:
            if field.action is Action.INLINE:
                assert field.inside is not None  # that is what is laid in
                found.extend(field.inside.constants)
            elif field.action is Action.VALUE and not field.pointer and not field.omit_zero:
                assert field.value is not None  # an action VALUE has one
                found.append((field.name, field.value.zero))
            elif field.action not in (Action.MESSAGE, Action.VALUE) and not field.omit_empty:
                found.append((field.name, None if field.pointer else _ZEROS.get(field.action)))
            elif field.pointer and not field.omit_empty:
                found.append((field.name, None))
        return tuple(found)

    @cached_property
    def structs(self) -> tuple[tuple[str, Message], ...]:
        """Parts that JSON shows even if nothing of them was sent: Go leaves out no struct."""
        found: list[tuple[str, Message]] = []
        for field in self.all_fields:
            if field.action is Action.INLINE:
                assert field.inside is not None  # that is what is laid in
                found.extend(field.inside.structs)
            elif field.action is Action.MESSAGE and not field.pointer and not field.omit_zero:
                assert field.inside is not None  # an action MESSAGE has one
                found.append((field.name, field.inside))
        return tuple(found)

    @cached_property
    def plan(self) -> tuple[Step, ...]:
        """How to write it, in the order of the numbers, as Go does."""
        steps = []
        for field in self.all_fields:
            tag = field.number << 3 | _WIRE_TYPES.get(field.action, 2)
            written = bytes([tag]) if tag < 128 else bytes([tag & 127 | 128, tag >> 7])
            always = not field.pointer and (
                field.action in _ZEROS or field.action in (Action.MESSAGE, Action.INLINE, Action.VALUE)
            )
            write = field.value.write if field.value else None
            steps.append(Step(written, field.action, field.name, always, field.inside, write))
        return tuple(steps)

    def _field(self, row: Row) -> Field:
        number, name, kind, shape, flags, *go_name = row
        action, inside, value = self._action(kind, shape, flags)
        return Field(
            number,
            name,
            go_name[0] if go_name else name[:1].upper() + name[1:],
            action,
            inside,
            value,
            "p" in flags,
            "o" in flags,
            "z" in flags,
            inside.all_fields[1].action if action is Action.MAP and inside else None,
        )

    def _action(self, kind: str, shape: str, flags: str) -> tuple[Action, Message | None, Value | None]:
        if shape == "map":
            rows: list[Row] = [[1, "key", "string", "one", ""], [2, "value", kind, "one", flags.replace("o", "")]]
            return Action.MAP, Message("Entry", self._module, rows), None
        many = shape == "list"
        if kind in _SCALARS:
            action = _SCALARS[kind][many]
            assert action is not None  # no Kubernetes message has a list of these
            return action, None, None
        if kind in VALUES:
            return Action.VALUES if many else Action.VALUE, *_value(kind)
        module, _, name = kind.partition(":")
        inside = _message(module or self._module, name)
        if "l" in flags:
            return Action.LIST, inside, None
        if "i" in flags:
            return Action.INLINE, inside, None
        return Action.MESSAGES if many else Action.MESSAGE, inside, None


def message_of_kind(api_version: str, kind: str) -> Message | None:
    """The message of a kind or of a list of it; None for what has none, as custom resources.

    Options, Status and other kinds of the machinery are known in every group, as they are to the real server.
    """
    module = _modules().get(api_version)
    return (_messages(module).get(kind) if module else None) or _messages("meta.v1").get(kind)


def small_message(name: str, *rows: Row) -> Message:
    """A message that is in no file."""
    return Message(name, "meta.v1", list(rows))


@cache
def _modules() -> dict[str, str]:
    return {
        **{group_version: module for group_version, (module, _) in MODULES.items()},
        "meta.k8s.io/v1": "meta.v1",
        "apidiscovery.k8s.io/v2": "apidiscovery.v2",
        "apidiscovery.k8s.io/v2beta1": "apidiscovery.v2beta1",
    }


@cache
def _value(kind: str) -> tuple[Message, Value]:
    value = VALUES[kind]
    if value.rows is None:
        return _message("apiextensions.v1", value.message), value
    return Message(value.message, "apiextensions.v1", [list(row) for row in value.rows]), value


def _message(module: str, name: str) -> Message:
    return _messages(module)[name]


@cache
def _messages(module: str) -> dict[str, Message]:
    return dict(_read(module))


def _read(module: str) -> Iterator[tuple[str, Message]]:
    file = resources.files("kubewright.k8s") / "protobuf" / f"{module}.json.gz"
    for name, rows in decode_tree(gzip.decompress(file.read_bytes()))["messages"].items():
        yield name, Message(name, module, rows)
