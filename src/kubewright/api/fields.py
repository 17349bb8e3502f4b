"""Field: markers for annotations, for what a Python type cannot express (kubebuilder's `+kubebuilder:validation`).

    size: Annotated[int, Field(ge=0, le=10)] = 1
    ports: Annotated[list[Port], Field(list_type="map", list_map_keys=("name",), max_items=16)] = []
    tags: Annotated[list[Annotated[str, Field(min_length=1)]], Field(list_type="set")] = []

    class Range(Model, marker=Field(rules=[Rule(rule="self.low <= self.high")])): ...

A `Field` may stand on an attribute, on a type that is an alias (`Port = Annotated[int, Field(ge=1, le=65535)]`), on the
items of a list or the values of a map, and on a class. If several apply, the outer one wins and rules add up.
Markers are data: `schema.builder` turns them into a structural schema and the API server enforces them. They are not
checked when an object is decoded, so an object stored under older rules can still be read; `unknown_values` is about
those that no longer fit the types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeVar, final

import msgspec

from kubewright.errors import SchemaError

__all__ = ("Field", "Rule")

T = TypeVar("T")
RuleReason = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]
ListType = Literal["atomic", "set", "map"]
MapType = Literal["granular", "atomic"]


@final
class Rule(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A CEL validation rule, evaluated by the API server; `self` is the value, `oldSelf` the stored value."""

    rule: str = msgspec.field()
    """The expression, such as `self.min <= self.max`."""
    message: str | None = None
    """The error message."""
    message_expression: str | None = None
    """A CEL expression for the error message."""
    reason: RuleReason | None = None
    field_path: str | None = None
    """The field to report, such as `.spec.max`."""
    optional_old_self: bool | None = None
    """True to evaluate a transition rule on creation too, with `oldSelf` as an optional."""


class _FieldMeta(msgspec.StructMeta):
    """Names the marker that is meant by one of another framework, or by a slip."""

    def __call__(cls: type[T], *args: Any, **markers: Any) -> T:  # noqa: N805 - of a metaclass
        if args:
            raise SchemaError(f"Field({args[0]!r}) does not say what that is; write it like Field(ge=0)")
        for given in markers:
            if given not in Field.__struct_fields__:
                raise SchemaError(f"Field has no {given}; {_nearest_marker(given)}")
        return super().__call__(**markers)  # type: ignore[no-any-return, misc]  # msgspec's metaclass says nothing


_MEANT: Final = {"minimum": "ge", "maximum": "le", "min": "ge", "max": "le", "regex": "pattern", "cel": "rules"}


def _nearest_marker(given: str) -> str:
    from difflib import get_close_matches  # only needed for the error message

    name = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", given).lower()  # MinLength, minLength
    known = Field.__struct_fields__
    close = _MEANT.get(name) or next(iter(get_close_matches(name, known, n=1)), "")
    return f"did you mean {close}?" if close else f"it has {', '.join(known)}"


@final
class Field(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True, metaclass=_FieldMeta):
    """Constraints of a value beyond its type. All are optional."""

    ge: float | int | None = None
    """Smallest value allowed (`minimum`)."""
    gt: float | int | None = None
    """The value must be above this (`minimum` with `exclusiveMinimum`)."""
    le: float | int | None = None
    """Largest value allowed (`maximum`)."""
    lt: float | int | None = None
    """The value must be below this (`maximum` with `exclusiveMaximum`)."""
    multiple_of: float | int | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    """A regular expression in RE2 syntax that must match somewhere; anchor it with ^ and $."""
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool | None = None
    """Items must differ. Only `False` is allowed in a CRD; say `list_type="set"` for a set of scalars."""
    min_properties: int | None = None
    max_properties: int | None = None
    enum: Sequence[Any] | None = None
    """The values allowed, if they are not already a `Literal` or an `enum.Enum`."""
    format: str | None = None
    """A format name such as `int32`, `date-time`, `ipv4`, `uri`, `byte`."""
    type: str | None = None
    """The OpenAPI type, where the Python type cannot tell it."""
    default: Any = msgspec.UNSET
    """What the server fills in; given by the attribute's own default where there is one."""
    example: Any = msgspec.UNSET
    nullable: bool | None = None
    """An explicit null is allowed and kept."""
    title: str | None = None
    description: str | None = None
    """Documentation; the docstring under the attribute is the better place."""
    required: bool | None = None
    """Overrides what the attribute's default says."""
    list_type: ListType | None = None
    list_map_keys: Sequence[str] | None = None
    """Which attributes of an item identify it in a `map` list."""
    map_type: MapType | None = None
    immutable: bool | None = None
    """Set once, never changed or removed."""
    embedded_object: bool | None = None
    """The value is a whole Kubernetes object with apiVersion, kind and metadata."""
    int_or_string: bool | None = None
    preserve_unknown_fields: bool | None = None
    """Keep what the schema does not name instead of pruning it."""
    rules: Sequence[Rule] = ()
    one_of: Sequence[Sequence[str]] = ()
    """Sets of attributes of which exactly one must be given."""
    at_most_one_of: Sequence[Sequence[str]] = ()
    at_least_one_of: Sequence[Sequence[str]] = ()
    external_docs: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        for marker in ("ge", "gt", "le", "lt", "multiple_of"):
            _check_number(marker, getattr(self, marker), int | float)
        for marker in ("min_length", "max_length", "min_items", "max_items", "min_properties", "max_properties"):
            _check_number(marker, getattr(self, marker), int)

    def __hash__(self) -> int:
        # `Annotated[int, Field(enum=[1, 2])] | None` hashes its markers, and lists have no hash. A few fields suffice.
        return hash((self.ge, self.le, self.min_length, self.max_length, self.pattern, self.format, self.title))


def _check_number(marker: str, value: object, wanted: Any) -> None:
    if value is not None and (not isinstance(value, wanted) or isinstance(value, bool)):
        raise SchemaError(f"Field({marker}={value!r}): give a number, as in {marker}=1")
