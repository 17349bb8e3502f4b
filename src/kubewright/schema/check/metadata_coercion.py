"""Coerces metadata to Go's ObjectMeta: types checked, unknown fields dropped, empty ones left out.

A custom resource is free JSON, but the API server decodes its metadata, and that of embedded objects, into a Go type
(apiextensions-apiserver: pkg/apiserver/schema/objectmeta). A wrong type is rejected while decoding, before any
validation, with the messages of Go's JSON decoder.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, final

from kubewright.api.go_text import as_maps, format_value, number_text, quoted

__all__ = ("MetadataDecodeError", "coerce_embedded", "coerce_metadata")

_INT64_LIMIT: Final = 2**63
_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"


@final
class MetadataDecodeError(ValueError):
    """Metadata that cannot be decoded; the message is the server's after `cannot be handled as a ...:`."""


class _Problems(NamedTuple):
    """The type errors, of which the first is reported, and the unknown fields."""

    errors: list[str]
    unknown: list[str]


def coerce_metadata(metadata: Any, *, path: str = "metadata") -> tuple[dict[str, Any], list[str]]:
    """The metadata as it will be stored, and the paths of its unknown fields; or a MetadataDecodeError."""
    if metadata is None:
        return {}, []
    if not isinstance(metadata, dict):
        raise MetadataDecodeError(f"json: cannot unmarshal {_kind(metadata)} into Go value of type v1.ObjectMeta")
    if metadata.keys() <= _PLAIN and all(type(value) is str and value for value in metadata.values()):
        return metadata, []
    problems = _Problems([], [])
    coerced = _struct(metadata, _OBJECT_META, "ObjectMeta", "", path, problems)
    if problems.errors:
        raise MetadataDecodeError(problems.errors[0])
    return coerced, problems.unknown


def coerce_embedded(tree: Any, schema: Mapping[str, Any], path: str = "") -> list[str]:
    """Coerce the metadata of the objects embedded in a tree, in place; returns the paths of unknown fields, sorted."""
    return sorted(_embedded(tree, schema, path))


def _embedded(tree: Any, schema: Mapping[str, Any], path: str) -> list[str]:
    unknown: list[str] = []
    if isinstance(tree, dict):
        if schema.get("x-kubernetes-embedded-resource"):
            unknown.extend(_object(tree, path))
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, member in tree.items():
            if name in properties:
                unknown.extend(_embedded(member, properties[name], f"{path}.{name}" if path else name))
            elif isinstance(others, Mapping):
                unknown.extend(_embedded(member, others, f"{path}[{name}]"))
    elif isinstance(tree, list) and isinstance(items := schema.get("items"), Mapping):
        for i, item in enumerate(tree):
            unknown.extend(_embedded(item, items, f"{path}[{i}]"))
    return unknown


def _object(tree: dict[str, Any], path: str) -> list[str]:
    for name in ("apiVersion", "kind"):
        if name in tree and not isinstance(tree[name], str):
            text = format_value(as_maps(tree[name]))
            raise MetadataDecodeError(f"{path}.{name}: Invalid value: {text}: must be a string")
    if "metadata" not in tree:
        return []
    here = f"{path}.metadata" if path else "metadata"
    try:
        tree["metadata"], unknown = coerce_metadata(tree["metadata"], path=here)
    except MetadataDecodeError as exc:
        raise MetadataDecodeError(f"{here}: Invalid value: {format_value(as_maps(tree['metadata']))}: {exc}") from None
    return unknown


_Decode = Callable[[Any, str, str, str, _Problems], Any]
"""Of a value, its struct, its field, its path, and where to add problems; returns None to leave the field out."""


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list) else "object"


def _add_type_error(value: Any, struct: str, field: str, wanted: str, problems: _Problems, *, what: str = "") -> None:
    problems.errors.append(
        f"json: cannot unmarshal {what or _kind(value)} into Go struct field {struct}.{field} of type {wanted}"
    )


def _struct(
    value: dict[str, Any], fields: Mapping[str, _Decode], struct: str, field: str, path: str, problems: _Problems
) -> dict[str, Any]:
    coerced: dict[str, Any] = {}
    for name in sorted(value):
        decode = fields.get(name)
        if decode is None:
            problems.unknown.append(f"{path}.{name}")
        elif value[name] is not None:
            member = decode(value[name], struct, f"{field}.{name}" if field else name, f"{path}.{name}", problems)
            if member is not None:
                coerced[name] = member
    return coerced


def _text(wanted: str = "string") -> _Decode:
    def decode(value: Any, struct: str, field: str, path: str, problems: _Problems) -> Any:
        if not isinstance(value, str):
            _add_type_error(value, struct, field, wanted, problems)
        return value or None

    return decode


def _integer(value: Any, struct: str, field: str, path: str, problems: _Problems) -> Any:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        _add_type_error(value, struct, field, "int64", problems)
    elif not isinstance(value, int) or not -_INT64_LIMIT <= value < _INT64_LIMIT:
        _add_type_error(value, struct, field, "int64", problems, what=f"number {number_text(value)}")
    return value


def _boolean(value: Any, struct: str, field: str, path: str, problems: _Problems) -> Any:
    if not isinstance(value, bool):
        _add_type_error(value, struct, field, "bool", problems)
    return value


def _time(value: Any, struct: str, field: str, path: str, problems: _Problems) -> Any:
    if not isinstance(value, str):
        _add_type_error(value, struct, field, "string", problems)
        return None
    if problem := _time_problem(value):
        problems.errors.append(f"parsing time {quoted(value)}{problem}")
        return None
    return _utc(value)


def _texts(value: Any, struct: str, field: str, path: str, problems: _Problems) -> Any:
    if not isinstance(value, list):
        _add_type_error(value, struct, field, "[]string", problems)
        return None
    for item in value:
        if item is not None and not isinstance(item, str):
            _add_type_error(item, struct, field, "string", problems)
    return ["" if item is None else item for item in value] or None


def _text_map(value: Any, struct: str, field: str, path: str, problems: _Problems) -> Any:
    if not isinstance(value, dict):
        _add_type_error(value, struct, field, "map[string]string", problems)
        return None
    for member in value.values():
        if member is not None and not isinstance(member, str):
            _add_type_error(member, struct, field, "string", problems)
    return {name: "" if member is None else member for name, member in value.items()} or None


def _tree(value: Any, struct: str, field: str, path: str, problems: _Problems) -> Any:
    return value


def _structs(name: str, fields: Mapping[str, _Decode], always: tuple[str, ...] = ()) -> _Decode:
    def decode(value: Any, struct: str, field: str, path: str, problems: _Problems) -> Any:
        if not isinstance(value, list):
            _add_type_error(value, struct, field, f"[]v1.{name}", problems)
            return None
        coerced: list[dict[str, Any]] = []
        for i, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                _add_type_error(item, struct, field, f"v1.{name}", problems)
                continue
            members = _struct(item or {}, fields, name, field, f"{path}[{i}]", problems)
            coerced.append({**dict.fromkeys(always, ""), **members})
        return coerced or None

    return decode


_PLAIN: Final = frozenset(("name", "namespace", "generateName", "uid", "resourceVersion"))
_OWNER: Final[Mapping[str, _Decode]] = {
    "apiVersion": _text(),
    "kind": _text(),
    "name": _text(),
    "uid": _text("types.UID"),
    "controller": _boolean,
    "blockOwnerDeletion": _boolean,
}
_ENTRY: Final[Mapping[str, _Decode]] = {
    "manager": _text(),
    "operation": _text("v1.ManagedFieldsOperationType"),
    "apiVersion": _text(),
    "time": _time,
    "fieldsType": _text(),
    "fieldsV1": _tree,
    "subresource": _text(),
}
_OBJECT_META: Final[Mapping[str, _Decode]] = {
    **{name: _text() for name in ("name", "generateName", "namespace", "selfLink", "resourceVersion")},
    "uid": _text("types.UID"),
    "generation": lambda *arguments: _integer(*arguments) or None,
    "creationTimestamp": _time,
    "deletionTimestamp": _time,
    "deletionGracePeriodSeconds": _integer,
    "labels": _text_map,
    "annotations": _text_map,
    "ownerReferences": _structs("OwnerReference", _OWNER, ("apiVersion", "kind", "name", "uid")),
    "finalizers": _texts,
    "managedFields": _structs("ManagedFieldsEntry", _ENTRY),
}

_PARTS: Final = (
    ("2006", "[0-9]{4}"),
    ("-", "-"),
    ("01", "[0-9]{2}"),
    ("-", "-"),
    ("02", "[0-9]{2}"),
    ("T", "T"),
    ("15", "[0-9]{2}"),
    (":", ":"),
    ("04", "[0-9]{2}"),
    (":", ":"),
    ("05", "[0-9]{2}([.,][0-9]+)?"),
    ("Z07:00", "Z|[+-][0-9]{2}:[0-9]{2}"),
)


def _time_problem(text: str) -> str:
    """The message of Go's time.Parse after the text, or an empty string."""
    at, numbers = 0, {}
    for layout, pattern in _PARTS:
        problems = re.compile(pattern).match(text, at)
        if problems is None:
            return f" as {quoted(_LAYOUT)}: cannot parse {quoted(text[at:])} as {quoted(layout)}"
        if problems[0].isdigit():
            numbers[layout] = int(problems[0])
            limit = {"01": 12, "15": 23, "04": 59}.get(layout)
            if limit is not None and numbers[layout] > limit:
                return f": {_NAMES[layout]} out of range"
        if layout == "05" and int(problems[0][:2]) > 59:
            return ": second out of range"
        at = problems.end()
    if at < len(text):
        return f": extra text: {quoted(text[at:])}"
    if not numbers["01"]:
        return ": month out of range"
    if not 1 <= numbers["02"] <= monthrange(numbers["2006"] or 2000, numbers["01"])[1]:
        return ": day out of range"
    return ""


_NAMES: Final = {"01": "month", "15": "hour", "04": "minute"}


def _utc(text: str) -> str | None:
    """The same instant in UTC and whole seconds; None for Go's zero time."""
    moment = re.fullmatch(r"(.{19})(?:[.,][0-9]+)?(.*)", text)
    if moment is None or text.startswith("0000"):
        return text
    offset = timedelta()
    if moment[2] != "Z":
        offset = timedelta(hours=int(moment[2][1:3]), minutes=int(moment[2][4:6])) * (-1 if moment[2][0] == "-" else 1)
    try:
        instant = datetime.fromisoformat(moment[1]).replace(tzinfo=UTC) - offset
    except OverflowError:
        return text
    written = instant.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
    return None if written == "0001-01-01T00:00:00Z" else written
