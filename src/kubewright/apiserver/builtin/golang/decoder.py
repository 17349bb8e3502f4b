"""Reads a decoded tree as the Go type of its kind does.

A tree from a JSON decoder may hold anything. Here wrong types are refused with the words of Go's decoder, fields
the kind does not have are taken out and reported, nulls and zeros go where Go does not tell them from nothing, and
quantities and times take their canonical form. What values mean is no concern of this module; `validate_create`
judges them later, and `builtin.canonical` gives the object its final form.

The request path calls `normalize` once for each body. A walker is made once for each type, and no paths are built
until something is wrong.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.golang.quantities import canonical_quantity
from kubewright.apiserver.builtin.golang.times import canonical_duration, canonical_micro_time, canonical_time
from kubewright.apiserver.builtin.golang.types import GoField, fields_of, go_name, kind_type, named_type
from kubewright.apiserver.wire.status_errors import StatusError, bad_request

__all__ = ("normalize", "normalize_type", "unknown_fields")

JSON: TypeAlias = Any
Walker: TypeAlias = Callable[[JSON], JSON]

_GONE: Final = object()
"""What a walker returns for a value that is not printed."""

_LIMITS: Final = {"int32": 2**31, "int64": 2**63, "int": 2**63}


class _WrongType(Exception):
    """A value does not fit; the frames it passes add the struct and the path."""

    def __init__(self, value: JSON, kind: str, *, number: bool = False) -> None:
        super().__init__()
        self.value = f"number {value}" if number else _word(value)
        self.kind = kind
        self.struct = ""
        self.path: list[str] = []

    def __str__(self) -> str:
        place = f"struct field {self.struct}.{'.'.join(reversed(self.path))}" if self.path else "value"
        return f"json: cannot unmarshal {self.value} into Go {place} of type {go_name(self.kind)}"


class _Unreadable(Exception):
    """A quantity, a time or encoded bytes that cannot be read; the message is the whole story."""


class _UnknownField(Exception):
    """There is a field the type does not have."""


def normalize(gvk: GroupVersionKind, obj: dict[str, JSON]) -> list[str]:  # hot
    """Bring the tree into shape, in place; the paths of unknown fields, which are taken out, are returned.

    Raises the 400 the real server gives for a value of a wrong type.
    """
    kind = kind_type(gvk)
    if kind is None:
        return []
    try:
        return _fitted(kind, obj)
    except (_WrongType, _Unreadable) as wrong:
        raise _refusal(gvk, str(wrong)) from None


def normalize_type(kind: str, obj: dict[str, JSON]) -> None:
    """As `normalize`, for a type by its Go name that is no kind of a group; only what is wrong is said, in a 400."""
    try:
        _fitted(kind, obj)
    except (_WrongType, _Unreadable) as wrong:
        raise bad_request(str(wrong)) from None


def _fitted(kind: str, obj: dict[str, JSON]) -> list[str]:
    try:
        _walker(kind)(obj)
    except _UnknownField:
        unknown: list[str] = []
        _prune(kind, obj, "", unknown)
        _walker(kind)(obj)
        return unknown
    return []


def unknown_fields(gvk: GroupVersionKind, obj: dict[str, JSON]) -> list[str]:
    """The paths of fields the kind does not have, in the order of the body; they are taken out of the tree."""
    kind = kind_type(gvk)
    found: list[str] = []
    if kind is not None:
        _prune(kind, obj, "", found)
    return found


def _refusal(gvk: GroupVersionKind, why: str) -> StatusError:
    return bad_request(f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: {why}')


def _word(value: JSON) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "number"


@cache
def _walker(kind: str) -> Walker:
    """The walker of a type; it returns the value, another one, or raises."""
    if kind.startswith("*"):
        return _walker(kind[1:])
    special = _SPECIAL.get(kind)
    if special is not None:
        return special
    target = named_type(kind)
    if fields_of(kind) is not None:
        return _struct(kind)
    if target is not None and kind not in _LEAVES:
        return _of_shape(target, kind)
    return _of_shape(kind, kind)


def _of_shape(shape: str, kind: str) -> Walker:
    """A walker for a shape (`string`, `[]T`, `map[K]V`) that errors call by the name of the type."""
    if shape == "[]byte":
        return _bytes(kind)
    if shape.startswith("[]"):
        return _sequence(shape[2:], kind)
    if shape.startswith("map["):
        return _mapping(shape.partition("]")[2], kind)
    if shape in ("string", "bool", "float64"):
        return _scalar({"string": (str,), "bool": (bool,), "float64": (int, float)}[shape], kind)
    if shape in _LIMITS:
        return _integer(_LIMITS[shape], kind)
    named = named_type(shape)
    if named is not None and named != shape:
        return _of_shape(named, kind)
    return _struct(shape) if fields_of(shape) is not None else _anything


def _anything(value: JSON) -> JSON:
    return value


def _scalar(accepted: tuple[type, ...], kind: str) -> Walker:
    first = accepted[0]

    def walk(value: JSON) -> JSON:
        if type(value) is first or (type(value) in accepted):
            return value
        raise _WrongType(value, kind)

    return walk


def _integer(limit: int, kind: str) -> Walker:
    def walk(value: JSON) -> JSON:
        if type(value) is int:
            if -limit <= value < limit:
                return value
            raise _WrongType(value, kind, number=True)
        raise _WrongType(value, kind, number=type(value) is float)

    return walk


def _bytes(kind: str) -> Walker:
    def walk(value: JSON) -> JSON:
        if type(value) is not str:
            raise _WrongType(value, kind if kind != "[]byte" else "[]uint8")
        text = value.replace("\r", "").replace("\n", "") if "\n" in value or "\r" in value else value
        try:
            b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise _Unreadable(f"illegal base64 data at input byte {_bad_byte(text)}") from None
        return text

    return walk


def _bad_byte(text: str) -> int:
    """Where Go's decoder stops."""
    alphabet = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    for position, letter in enumerate(text):
        if letter not in alphabet:
            padded = text[position:].rstrip("=") == "" and position % 4 >= 2 and len(text) == position // 4 * 4 + 4
            if not padded:
                return position if letter != "=" or position % 4 < 2 else len(text)
    return len(text) - len(text) % 4 if len(text) % 4 else len(text)


def _sequence(item: str, kind: str) -> Walker:
    walk_item = _later(item)
    zero = _zero(item)

    def walk(value: JSON) -> JSON:
        if type(value) is not list:
            raise _WrongType(value, kind)
        for position, entry in enumerate(value):
            if entry is None:
                value[position] = zero()
                continue
            new = walk_item(entry)
            if new is not entry:
                value[position] = new
        return value

    return walk


def _mapping(item: str, kind: str) -> Walker:
    walk_item = _later(item)
    zero = _zero(item)

    def walk(value: JSON) -> JSON:
        if type(value) is not dict:
            raise _WrongType(value, kind)
        for key, entry in value.items():
            if entry is None:
                value[key] = zero()
                continue
            new = walk_item(entry)
            if new is not entry:
                value[key] = new
        return value

    return _text_mapping(kind) if item == "string" else walk


def _text_mapping(kind: str) -> Walker:
    """Labels, annotations, data: the most common maps, without a call for each value."""

    def walk(value: JSON) -> JSON:
        if type(value) is not dict:
            raise _WrongType(value, kind)
        for key, entry in value.items():
            if type(entry) is not str:
                if entry is not None:
                    raise _WrongType(entry, "string")
                value[key] = ""
        return value

    return walk


def _later(kind: str) -> Walker:
    """The walker of a type that may contain itself: looked up when first used."""
    found: list[Walker] = []

    def walk(value: JSON) -> JSON:
        if not found:
            found.append(_walker(kind))
        return found[0](value)

    return walk if fields_of(kind.lstrip("*")) is not None else _walker(kind)


def _zero(kind: str) -> Callable[[], JSON]:
    """What stands for null in a list or a map."""
    if kind.startswith(("*", "[]", "map[")):
        return lambda: None
    if kind == "resource.Quantity":
        return lambda: "0"
    shape = named_type(kind) or kind
    if fields_of(kind) is not None:
        return dict
    return lambda: {"string": "", "bool": False}.get(shape, 0 if shape in _LIMITS else None)


def _struct(kind: str) -> Walker:
    fields = {field.json: _field(field) for field in fields_of(kind) or ()}
    within = {field.json: field.within for field in fields_of(kind) or () if field.within}
    get = fields.get
    name = kind.rpartition(".")[2]

    def walk(tree: JSON) -> JSON:
        if type(tree) is not dict:
            raise _WrongType(tree, kind)
        gone: list[str] | None = None
        key = ""
        try:
            for key, value in tree.items():
                check = get(key)
                if check is None:
                    raise _UnknownField
                new = _GONE if value is None else check(value)
                if new is not value:
                    if new is not _GONE:
                        tree[key] = new
                    elif gone is None:
                        gone = [key]
                    else:
                        gone.append(key)
        except _WrongType as wrong:
            wrong.struct = wrong.struct or name
            wrong.path += (key, *reversed(within.get(key, ())))
            raise
        if gone is not None:
            for key in gone:
                del tree[key]
        return tree

    return walk


def _field(field: GoField) -> Walker:
    walk = _later(field.type)
    shape = named_type(field.type) or field.type
    if field.type.startswith("*") or not field.omits_empty:
        return walk
    if shape == "string":
        return _printed_text(field.type)
    if shape not in ("bool", "float64", *_LIMITS):
        return walk  # an empty list is not the same as none to defaults; `canonical` takes it out later

    def printed(value: JSON) -> JSON:
        return walk(value) or _GONE

    return printed


def _printed_text(kind: str) -> Walker:
    def walk(value: JSON) -> JSON:
        if type(value) is str:
            return value or _GONE
        raise _WrongType(value, kind)

    return walk


def _quantity(value: JSON) -> JSON:
    if type(value) is str:
        text = value
    elif type(value) in (int, float):
        text = str(value)
    else:
        text = ""
    try:
        return canonical_quantity(text)
    except ValueError as exc:
        raise _Unreadable(str(exc)) from None


def _int_or_string(value: JSON) -> JSON:
    if type(value) is str:
        return value
    if type(value) is int and -(2**31) <= value < 2**31:
        return value
    raise _WrongType(value, "int32", number=type(value) in (int, float))


def _moment(read: Callable[[str], str]) -> Walker:
    def walk(value: JSON) -> JSON:
        if type(value) is not str:
            raise _WrongType(value, "string")
        try:
            return read(value)
        except ValueError as exc:
            raise _Unreadable(str(exc)) from None

    return walk


_SPECIAL: Final[dict[str, Walker]] = {
    "resource.Quantity": _quantity,
    "intstr.IntOrString": _int_or_string,
    "meta/v1.Time": _moment(canonical_time),
    "meta/v1.MicroTime": _moment(canonical_micro_time),
    "meta/v1.Duration": _moment(canonical_duration),
    "meta/v1.FieldsV1": _anything,
    "runtime.RawExtension": _anything,
}
_LEAVES: Final = frozenset(_SPECIAL)


def _prune(kind: str, tree: JSON, path: str, found: list[str]) -> None:
    kind = kind.lstrip("*")
    shape = named_type(kind) or kind
    if kind in _LEAVES:
        return
    if shape.startswith("[]") and isinstance(tree, list):
        for position, entry in enumerate(tree):
            _prune(shape[2:], entry, f"{path}[{position}]", found)
    elif shape.startswith("map[") and isinstance(tree, dict):
        for key, entry in tree.items():
            _prune(shape.partition("]")[2], entry, f"{path}.{key}", found)
    elif isinstance(tree, dict) and (fields := fields_of(kind)) is not None:
        known = {field.json: field.type for field in fields}
        for key in list(tree):
            place = f"{path}.{key}" if path else key
            if key in known:
                _prune(known[key], tree[key], place, found)
            else:
                found.append(place)
                del tree[key]
