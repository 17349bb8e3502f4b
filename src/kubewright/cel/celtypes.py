"""The types of CEL: the basic ones, lists, maps and optionals of types, and objects with declared fields.

A type may carry `SchemaDetails`, which go beyond CEL's type system: an object's fields, the maximum size of a value,
and how its JSON is converted. Two types are equal whatever their details. `schema_types` makes types from schemas,
`checker` compares them; nothing here looks at values.
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
    "SchemaDetails",
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
class SchemaDetails:
    """What a schema declares about values of a type."""

    fields: Mapping[str, Field] | None = None
    """The fields of an object, by the name used in expressions."""
    max_size: int = 0
    """The maximum size of a value: characters, bytes, items or entries."""
    min_json_bytes: int = 0
    """The minimum number of bytes of a value in JSON."""
    conversion: str = ""
    """How a scalar is converted from JSON, if it is: `double`, `timestamp`, `date`, `duration` or `bytes`."""
    keys: tuple[str, ...] = ()
    """The list map keys, of a list of type map."""
    is_set: bool = False
    """Whether it is a list of type set."""
    needs_conversion: bool = False
    """Whether the JSON of this type, or of anything inside it, differs from the CEL value."""


@final
@dataclass(frozen=True, slots=True)
class CelType:
    """A type: its `kind`, its `name` as `type()` prints it, and its `parameters` if it is a list or map."""

    kind: str
    name: str
    parameters: tuple[CelType, ...] = ()
    details: SchemaDetails | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """As in messages: `list(int)`."""
        if self.kind in _SHORT:
            return _SHORT[self.kind]
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    @property
    def needs_conversion(self) -> bool:
        """Whether a value of this type must be converted from JSON."""
        return self.details is not None and self.details.needs_conversion


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


def list_of(element: CelType, *, details: SchemaDetails | None = None) -> CelType:
    """Lists of one type."""
    return CelType("list", "list", (element,), details)


def map_of(key: CelType, value: CelType, *, details: SchemaDetails | None = None) -> CelType:
    """Maps from one type to another."""
    return CelType("map", "map", (key, value), details)


def optional_of(value: CelType) -> CelType:
    """A value of the type, or none."""
    return CelType("opaque", "optional_type", (value,))


def type_of_type(named_type: CelType) -> CelType:
    """The type of `type(x)`, or of the name of a type."""
    return CelType("type", "type", (named_type,))


def object_type(
    name: str, fields: Mapping[str, Field] | None = None, *, details: SchemaDetails | None = None
) -> CelType:
    """An object with declared fields; without any, only functions can use it."""
    return CelType("object", name, (), details or SchemaDetails(fields=fields or {}))


def opaque(name: str) -> CelType:
    """A type whose values only functions can use."""
    return CelType("opaque", name)


def param(name: str) -> CelType:
    """A type variable, in the signature of a generic function."""
    return CelType("param", name)
