"""The types of CEL: the basic ones, lists, maps and optionals of types, and objects with declared fields.

A type may carry a `Shape`: what a schema says beyond CEL's type system, namely an object's fields, how large a value
can get, and how the JSON of a value is to be read. Two types are equal whatever their shapes. `schema_types` builds
types from schemas, `checker` compares them; nothing here looks at values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

__all__ = (
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DURATION",
    "DYN",
    "ERROR",
    "INT",
    "NULL",
    "STRING",
    "TIMESTAMP",
    "TYPE",
    "UINT",
    "CelType",
    "Field",
    "Shape",
    "list_of",
    "map_of",
    "object_type",
    "opaque",
    "optional_of",
    "param",
    "type_of_type",
)


@final
@dataclass(frozen=True, slots=True)
class Field:
    """A field of an object type: its name in JSON, which may differ from the one in expressions, and its type."""

    json: str
    type: CelType


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """What a schema knows about values of a type."""

    fields: Mapping[str, Field] | None = None
    """Of an object, by the name used in expressions."""
    most: int = 0
    """The largest size a value may have: characters, bytes, items or entries."""
    least_bytes: int = 0
    """The fewest bytes a value takes in JSON."""
    read: str = ""
    """How a leaf is read from JSON if not as it is: `double`, `timestamp`, `date`, `duration` or `bytes`."""
    keys: tuple[str, ...] = ()
    """Of a list whose items are told apart by these fields."""
    unordered: bool = False
    """Of a list that is a set."""
    converted: bool = False
    """Whether JSON of this type, or anything inside it, differs from the CEL value."""


@final
@dataclass(frozen=True, slots=True)
class CelType:
    """A type; `kind` is its family, `name` what `type()` prints, `parameters` what it is a list or map of."""

    kind: str
    name: str
    parameters: tuple[CelType, ...] = ()
    shape: Shape | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """As in messages: `list(int)`."""
        if self.kind in _SHORT:
            return _SHORT[self.kind]
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    @property
    def converted(self) -> bool:
        """Whether a value of this type must be read from JSON rather than used as it is."""
        return self.shape is not None and self.shape.converted


_SHORT: Final = {"duration": "duration", "timestamp": "timestamp", "null": "null", "error": "!error!"}

BOOL: Final = CelType("bool", "bool")
BYTES: Final = CelType("bytes", "bytes")
DOUBLE: Final = CelType("double", "double")
DURATION: Final = CelType("duration", "google.protobuf.Duration")
DYN: Final = CelType("dyn", "dyn")
ERROR: Final = CelType("error", "!error!")
INT: Final = CelType("int", "int")
NULL: Final = CelType("null", "null_type")
STRING: Final = CelType("string", "string")
TIMESTAMP: Final = CelType("timestamp", "google.protobuf.Timestamp")
TYPE: Final = CelType("type", "type")
UINT: Final = CelType("uint", "uint")


def list_of(element: CelType, *, shape: Shape | None = None) -> CelType:
    """Lists of one type."""
    return CelType("list", "list", (element,), shape)


def map_of(key: CelType, value: CelType, *, shape: Shape | None = None) -> CelType:
    """Maps from one type to another."""
    return CelType("map", "map", (key, value), shape)


def optional_of(value: CelType) -> CelType:
    """A value of the type, or none."""
    return CelType("opaque", "optional_type", (value,))


def type_of_type(meant: CelType) -> CelType:
    """The type of the value that `type(x)` is, or that the name of a type is."""
    return CelType("type", "type", (meant,))


def object_type(name: str, fields: Mapping[str, Field] | None = None, *, shape: Shape | None = None) -> CelType:
    """An object whose fields are declared; without any, a value only functions can look into."""
    return CelType("object", name, (), shape or Shape(fields=fields or {}))


def opaque(name: str) -> CelType:
    """A value only functions can look into."""
    return CelType("opaque", name)


def param(name: str) -> CelType:
    """A type still open, in the signature of a function that takes any."""
    return CelType("param", name)
