"""The field tables of the protobuf messages: numbers, names and types of fields, and how JSON shows zero values.

The rows are package data of `kubewright.k8s`, one file per group-version, which `generate.models.protobuf` makes from
the sources of Kubernetes. Here they become `Message` objects, each on first use: `decoder` follows `decoders`,
`constants` and `structs`, `encoder` follows `encoders`. A message that is one value in JSON (a time, a quantity) has a
table like any other and a pair of functions from `values`.
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

__all__ = ("Action", "Field", "FieldDecoder", "FieldEncoder", "Message", "inline_message", "message_of_kind")

Row: TypeAlias = list[Any]
"""Number, JSON name, type, cardinality (one, list or map), flags and perhaps the name in Go, as
`generate.models.protobuf` writes them. Flags: p pointer, o omitempty, z omitzero, i inline, l a list in a message of
its own."""


class Action(IntEnum):
    """How to encode and decode a field: type and cardinality in one, so that the decoder branches once."""

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


FieldDecoder: TypeAlias = tuple[int, str, bool, Any, Any]
"""Action, JSON name, whether a zero stays in the tree, the message inside, and a function: for a value, from its
members to JSON; for a map, the value of an entry that was sent without one, where that is not null. A plain tuple,
since the decoder unpacks one for each field."""


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
    """For a map, the action of its values."""


class FieldEncoder(NamedTuple):
    """How to encode one field; `tag` is its number and wire type, encoded."""

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
"""The zero values that are not null in JSON; lists, maps and byte slices are nil in Go until set."""

_MISSING: Final[dict[Action | None, Any]] = {Action.BYTES: str, Action.LIST: list}
"""Go's decoder makes these empty, not nil, as values of a map."""


@final
class Message:
    """The table of one message; its parts are computed on first use."""

    def __init__(self, name: str, module: str, rows: list[Row]) -> None:
        self.name = name
        self._module = module
        self._rows = rows

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Every field, by number."""
        return tuple(sorted((self._field(row) for row in self._rows), key=lambda field: field.number))

    @cached_property
    def decoders(self) -> dict[int, FieldDecoder]:
        """How to decode, by tag: the number and the wire type in one, as on the wire."""
        found: dict[int, FieldDecoder] = {}
        for field in self.fields:
            keep = not field.omit_zero and (field.pointer or not field.omit_empty or field.action is Action.VALUE)
            read = field.value.read if field.value else _MISSING.get(field.entry)
            reads = (int(field.action), field.name, keep, field.inside, read)
            found[field.number << 3 | _WIRE_TYPES.get(field.action, 2)] = reads
            if field.action in _PACKED:
                found[field.number << 3 | 2] = (int(_PACKED[field.action]), *reads[1:])
        return found

    @cached_property
    def go_names(self) -> dict[int, str]:
        """Names of the fields in Go, by number, for error messages."""
        return {field.number: field.go_name for field in self.fields}

    @cached_property
    def constants(self) -> tuple[tuple[str, Any], ...]:
        """The JSON of fields that were not sent, where that is not an object."""
        found: list[tuple[str, Any]] = []
        for field in self.fields:
            if field.action is Action.INLINE:
                assert field.inside is not None  # the fields of the inlined message
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
        """The fields that JSON shows as an object even if they were not sent: omitempty does not omit a Go struct."""
        found: list[tuple[str, Message]] = []
        for field in self.fields:
            if field.action is Action.INLINE:
                assert field.inside is not None  # the fields of the inlined message
                found.extend(field.inside.structs)
            elif field.action is Action.MESSAGE and not field.pointer and not field.omit_zero:
                assert field.inside is not None  # an action MESSAGE has one
                found.append((field.name, field.inside))
        return tuple(found)

    @cached_property
    def values(self) -> int:
        """How many values an empty message has in JSON, itself included."""
        return 1 + len(self.constants) + sum(inside.values for _, inside in self.structs)

    @cached_property
    def encoders(self) -> tuple[FieldEncoder, ...]:
        """How to encode, in the order of the field numbers."""
        steps = []
        for field in self.fields:
            tag = field.number << 3 | _WIRE_TYPES.get(field.action, 2)
            encoded = bytes([tag]) if tag < 128 else bytes([tag & 127 | 128, tag >> 7])
            always = not field.pointer and (
                field.action in _ZEROS or field.action in (Action.MESSAGE, Action.INLINE, Action.VALUE)
            )
            write = field.value.write if field.value else None
            steps.append(FieldEncoder(encoded, field.action, field.name, always, field.inside, write))
        return tuple(steps)

    def _field(self, row: Row) -> Field:
        number, name, kind, cardinality, flags, *go_name = row
        action, inside, value = self._action(kind, cardinality, flags)
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
            inside.fields[1].action if action is Action.MAP and inside else None,
        )

    def _action(self, kind: str, cardinality: str, flags: str) -> tuple[Action, Message | None, Value | None]:
        if cardinality == "map":
            rows: list[Row] = [[1, "key", "string", "one", ""], [2, "value", kind, "one", flags.replace("o", "")]]
            return Action.MAP, Message("Entry", self._module, rows), None
        many = cardinality == "list"
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
    """The message of a kind or of a list of it; None for kinds without one, such as custom resources.

    Options, Status and other kinds of meta/v1 are registered in every group, as in kube-apiserver's scheme.
    """
    module = _modules().get(api_version)
    return (_messages(module).get(kind) if module else None) or _messages("meta.v1").get(kind)


def inline_message(name: str, *rows: Row) -> Message:
    """A message whose table is in the code, not in a file."""
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
