"""Decodes a JSON tree as Go decodes into the struct of its kind.

A value of a wrong type is a 400 with the error of Go's decoder; unknown fields are dropped and reported; nulls and zero
values are dropped where Go cannot tell them from absent ones; quantities and times become canonical. Validation of the
values comes later (`validation`), and `canonical` gives the object its final encoding.

The strategy calls `normalize` once for each body. A walker is compiled once for each type, and paths are built only for
errors.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.golang.quantities import canonical_quantity
from kubewright.apiserver.builtin.golang.times import canonical_duration, canonical_micro_time, canonical_time
from kubewright.apiserver.builtin.golang.types import GoField, fields_of, go_name, kind_type, named_type
from kubewright.apiserver.wire.go_json import json_type_name
from kubewright.apiserver.wire.status_errors import StatusError, bad_request
from kubewright.schema.check.reported_paths import ReportedPaths

__all__ = ("check_integer", "normalize", "normalize_type", "unknown_fields")

JSON: TypeAlias = Any
Walker: TypeAlias = Callable[[JSON], JSON]

_OMIT: Final = object()
"""What a walker returns for a value that Go omits."""

_MAX_UNKNOWN: Final = 100
"""How many unknown fields are reported (`saveStrictError` of sigs.k8s.io/json)."""
_INTEGER: Final = re.compile("[+-]?[0-9]{1,400}", re.ASCII)
_LIMITS: Final = {"int32": 2**31, "int64": 2**63, "int": 2**63}


class _WrongType(Exception):
    """A value has a wrong type; the walkers it passes add the struct and the path."""

    def __init__(self, value: JSON, kind: str, *, number: bool = False) -> None:
        super().__init__()
        self.value = f"number {value}" if number else json_type_name(value)
        self.kind = kind
        self.struct = ""
        self.path: list[str] = []

    def __str__(self) -> str:
        place = f"struct field {self.struct}.{'.'.join(reversed(self.path))}" if self.path else "value"
        return f"json: cannot unmarshal {self.value} into Go {place} of type {go_name(self.kind)}"


class _UnparsableValue(Exception):
    """A quantity, a time or base64 data does not parse; the message is that of its UnmarshalJSON."""


class _UnknownField(Exception):
    """The tree has a field that the type does not have."""


def normalize(gvk: GroupVersionKind, obj: dict[str, JSON]) -> list[str]:  # hot
    """Decode a tree in place; returns the paths of the unknown fields, which are dropped.

    Raises kube-apiserver's 400 for a value of a wrong type.
    """
    kind = kind_type(gvk)
    if kind is None:
        return []
    try:
        return _decode(kind, obj)
    except (_WrongType, _UnparsableValue) as wrong:
        raise _decode_error(gvk, str(wrong)) from None


def check_integer(gvk: GroupVersionKind, text: str) -> None:
    """Refuse a text that is no number (strconv.ParseInt), where a conversion of a kind reads one."""
    problem = "" if _INTEGER.fullmatch(text) else "invalid syntax"
    if not problem and not -_LIMITS["int64"] <= int(text) < _LIMITS["int64"]:
        problem = "value out of range"
    if problem:
        raise _decode_error(gvk, f"strconv.ParseInt: parsing {json.dumps(text, ensure_ascii=False)}: {problem}")


def normalize_type(kind: str, obj: dict[str, JSON]) -> None:
    """As `normalize`, for a Go type that is not a kind of a group; the 400 has the decoder's error alone."""
    try:
        _decode(kind, obj)
    except (_WrongType, _UnparsableValue) as wrong:
        raise bad_request(str(wrong)) from None


def _decode(kind: str, obj: dict[str, JSON]) -> list[str]:
    try:
        _walker(kind)(obj)
    except _UnknownField:
        unknown = ReportedPaths(limit=_MAX_UNKNOWN)
        _prune(kind, obj, [], unknown)
        _walker(kind)(obj)
        return unknown.paths()
    return []


def unknown_fields(gvk: GroupVersionKind, obj: dict[str, JSON]) -> list[str]:
    """The paths of unknown fields, in the order of the body; they are dropped."""
    kind = kind_type(gvk)
    found = ReportedPaths(limit=_MAX_UNKNOWN)
    if kind is not None:
        _prune(kind, obj, [], found)
    return found.paths()


def _decode_error(gvk: GroupVersionKind, why: str) -> StatusError:
    return bad_request(f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: {why}')


@cache
def _walker(kind: str) -> Walker:
    """The walker of a type; it returns the value, another one, or raises."""
    if kind.startswith("*"):
        return _walker(kind[1:])
    known = _MARSHALERS.get(kind)
    if known is not None:
        return known
    target = named_type(kind)
    if fields_of(kind) is not None:
        return _struct(kind)
    if target is not None and kind not in _LEAVES:
        return _underlying_walker(target, kind)
    return _underlying_walker(kind, kind)


def _underlying_walker(underlying: str, kind: str) -> Walker:
    """The walker of an underlying type (`string`, `[]T`, `map[K]V`); `kind` is the name of the type, for errors."""
    if underlying == "[]byte":
        return _bytes(kind)
    if underlying.startswith("[]"):
        return _sequence(underlying[2:], kind)
    if underlying.startswith("map["):
        return _mapping(underlying.partition("]")[2], kind)
    if underlying in ("string", "bool", "float64"):
        return _scalar({"string": (str,), "bool": (bool,), "float64": (int, float)}[underlying], kind)
    if underlying in _LIMITS:
        return _integer(_LIMITS[underlying], kind)
    named = named_type(underlying)
    if named is not None and named != underlying:
        return _underlying_walker(named, kind)
    return _struct(underlying) if fields_of(underlying) is not None else _any


def _any(value: JSON) -> JSON:
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
            raise _UnparsableValue(f"illegal base64 data at input byte {_bad_byte(text)}") from None
        return text

    return walk


def _bad_byte(text: str) -> int:
    """The position in the error of Go's base64 decoder."""
    alphabet = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    for position, letter in enumerate(text):
        if letter not in alphabet:
            padded = text[position:].rstrip("=") == "" and position % 4 >= 2 and len(text) == position // 4 * 4 + 4
            if not padded:
                return position if letter != "=" or position % 4 < 2 else len(text)
    return len(text) - len(text) % 4 if len(text) % 4 else len(text)


def _sequence(item: str, kind: str) -> Walker:
    walk_item = _lazy_walker(item)
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
    walk_item = _lazy_walker(item)
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
    """The walker of map[string]string, the most common map, without a call for each value."""

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


def _lazy_walker(kind: str) -> Walker:
    """The walker of a type that may contain itself: compiled on first use."""
    found: list[Walker] = []

    def walk(value: JSON) -> JSON:
        if not found:
            found.append(_walker(kind))
        return found[0](value)

    return walk if fields_of(kind.lstrip("*")) is not None else _walker(kind)


def _zero(kind: str) -> Callable[[], JSON]:
    """The JSON of a null in a list or a map: Go decodes it to the zero value."""
    if kind.startswith(("*", "[]", "map[")):
        return lambda: None
    if kind == "resource.Quantity":
        return lambda: "0"
    underlying = named_type(kind) or kind
    if fields_of(kind) is not None:
        return dict
    return lambda: {"string": "", "bool": False}.get(underlying, 0 if underlying in _LIMITS else None)


def _struct(kind: str) -> Walker:
    fields = {field.json: _field(field) for field in fields_of(kind) or ()}
    within = {field.json: field.within for field in fields_of(kind) or () if field.within}
    get = fields.get
    name = kind.rpartition(".")[2]

    def walk(tree: JSON) -> JSON:
        if type(tree) is not dict:
            raise _WrongType(tree, kind)
        omitted: list[str] | None = None
        key = ""
        try:
            for key, value in tree.items():
                check = get(key)
                if check is None:
                    raise _UnknownField
                new = _OMIT if value is None else check(value)
                if new is not value:
                    if new is not _OMIT:
                        tree[key] = new
                    elif omitted is None:
                        omitted = [key]
                    else:
                        omitted.append(key)
        except _WrongType as wrong:
            wrong.struct = wrong.struct or name
            wrong.path += (key, *reversed(within.get(key, ())))
            raise
        if omitted is not None:
            for key in omitted:
                del tree[key]
        return tree

    return walk


def _field(field: GoField) -> Walker:
    walk = _lazy_walker(field.type)
    underlying = named_type(field.type) or field.type
    if field.type.startswith("*") or not field.omits_empty:
        return walk
    if underlying == "string":
        return _omit_empty_string(field.type)
    if underlying not in ("bool", "float64", *_LIMITS):
        return walk  # defaults tell an empty list from none; `canonical` drops it later

    def omit_zero(value: JSON) -> JSON:
        return walk(value) or _OMIT

    return omit_zero


def _omit_empty_string(kind: str) -> Walker:
    def walk(value: JSON) -> JSON:
        if type(value) is str:
            return value or _OMIT
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
        raise _UnparsableValue(str(exc)) from None


def _int_or_string(value: JSON) -> JSON:
    if type(value) is str:
        return value
    if type(value) is int and -(2**31) <= value < 2**31:
        return value
    raise _WrongType(value, "int32", number=type(value) in (int, float))


def _time(read: Callable[[str], str]) -> Walker:
    def walk(value: JSON) -> JSON:
        if type(value) is not str:
            raise _WrongType(value, "string")
        try:
            return read(value)
        except ValueError as exc:
            raise _UnparsableValue(str(exc)) from None

    return walk


_MARSHALERS: Final[dict[str, Walker]] = {
    "resource.Quantity": _quantity,
    "intstr.IntOrString": _int_or_string,
    "meta/v1.Time": _time(canonical_time),
    "meta/v1.MicroTime": _time(canonical_micro_time),
    "meta/v1.Duration": _time(canonical_duration),
    "meta/v1.FieldsV1": _any,
    "runtime.RawExtension": _any,
}
_LEAVES: Final = frozenset(_MARSHALERS)


def _prune(kind: str, tree: JSON, steps: list[str | int], found: ReportedPaths) -> None:
    """Drop the unknown fields of a value; `steps` is its path."""
    kind = kind.lstrip("*")
    underlying = named_type(kind) or kind
    if kind in _LEAVES:
        return
    if underlying.startswith("[]") and isinstance(tree, list):
        item = underlying[2:]
        for position, entry in enumerate(tree):
            if isinstance(entry, (dict, list)):
                steps.append(position)
                _prune(item, entry, steps, found)
                steps.pop()
    elif underlying.startswith("map[") and isinstance(tree, dict):
        item = underlying.partition("]")[2]
        for key, entry in tree.items():
            if isinstance(entry, (dict, list)):
                steps.append(key)
                _prune(item, entry, steps, found)
                steps.pop()
    elif isinstance(tree, dict) and fields_of(kind) is not None:
        known = _field_types(kind)
        for key in list(tree):
            steps.append(key)
            if key in known:
                _prune(known[key], tree[key], steps, found)
            else:
                found.add(steps)
                del tree[key]
            steps.pop()


@cache
def _field_types(kind: str) -> dict[str, str]:
    return {field.json: field.type for field in fields_of(kind) or ()}
