"""Metadata made into what Go's ObjectMeta can hold: types checked, unknown fields dropped, empty ones left out.

A custom resource is free JSON, but its metadata, and that of objects embedded in it, goes through a Go type on the
API server. What does not fit is refused while decoding, before any validation, in the words of Go's JSON decoder.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, final

from kubewright.api.go_text import as_maps, format_value, number_text, quoted

__all__ = ("MetadataMisfit", "coerce_embedded", "coerce_metadata")

_WIDEST: Final = 2**63
_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"


@final
class MetadataMisfit(ValueError):
    """Metadata that cannot be decoded; the message is what the server says after `cannot be handled as a ...:`."""


class _Found(NamedTuple):
    """What decoding came upon: the first misfit, and the fields nobody knows."""

    misfits: list[str]
    unknown: list[str]


def coerce_metadata(metadata: Any, *, path: str = "metadata") -> tuple[dict[str, Any], list[str]]:
    """The metadata as it will be stored, and the paths of its unknown fields. Raises a MetadataMisfit."""
    if metadata is None:
        return {}, []
    if not isinstance(metadata, dict):
        raise MetadataMisfit(f"json: cannot unmarshal {_kind(metadata)} into Go value of type v1.ObjectMeta")
    if metadata.keys() <= _PLAIN and all(type(value) is str and value for value in metadata.values()):
        return metadata, []
    found = _Found([], [])
    coerced = _struct(metadata, _OBJECT_META, "ObjectMeta", "", path, found)
    if found.misfits:
        raise MetadataMisfit(found.misfits[0])
    return coerced, found.unknown


def coerce_embedded(tree: Any, schema: Mapping[str, Any], path: str = "") -> list[str]:
    """Coerce the metadata of the objects embedded in a tree, which is changed; the paths of unknown fields, sorted."""
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
            raise MetadataMisfit(f"{path}.{name}: Invalid value: {format_value(as_maps(tree[name]))}: must be a string")
    if "metadata" not in tree:
        return []
    here = f"{path}.metadata" if path else "metadata"
    try:
        tree["metadata"], unknown = coerce_metadata(tree["metadata"], path=here)
    except MetadataMisfit as exc:
        raise MetadataMisfit(f"{here}: Invalid value: {format_value(as_maps(tree['metadata']))}: {exc}") from None
    return unknown


_Decode = Callable[[Any, str, str, str, _Found], Any]
"""A value, the struct it is in, its field, its path, and where to note what is found; None for what is left out."""


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list) else "object"


def _misfit(value: Any, struct: str, field: str, wanted: str, found: _Found, *, what: str = "") -> None:
    found.misfits.append(
        f"json: cannot unmarshal {what or _kind(value)} into Go struct field {struct}.{field} of type {wanted}"
    )


def _struct(
    value: dict[str, Any], fields: Mapping[str, _Decode], struct: str, field: str, path: str, found: _Found
) -> dict[str, Any]:
    coerced: dict[str, Any] = {}
    for name in sorted(value):
        decode = fields.get(name)
        if decode is None:
            found.unknown.append(f"{path}.{name}")
        elif value[name] is not None:
            member = decode(value[name], struct, f"{field}.{name}" if field else name, f"{path}.{name}", found)
            if member is not None:
                coerced[name] = member
    return coerced


def _text(wanted: str = "string") -> _Decode:
    def decode(value: Any, struct: str, field: str, path: str, found: _Found) -> Any:
        if not isinstance(value, str):
            _misfit(value, struct, field, wanted, found)
        return value or None

    return decode


def _integer(value: Any, struct: str, field: str, path: str, found: _Found) -> Any:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        _misfit(value, struct, field, "int64", found)
    elif not isinstance(value, int) or not -_WIDEST <= value < _WIDEST:
        _misfit(value, struct, field, "int64", found, what=f"number {number_text(value)}")
    return value


def _boolean(value: Any, struct: str, field: str, path: str, found: _Found) -> Any:
    if not isinstance(value, bool):
        _misfit(value, struct, field, "bool", found)
    return value


def _time(value: Any, struct: str, field: str, path: str, found: _Found) -> Any:
    if not isinstance(value, str):
        _misfit(value, struct, field, "string", found)
        return None
    if problem := _time_problem(value):
        found.misfits.append(f"parsing time {quoted(value)}{problem}")
        return None
    return _utc(value)


def _texts(value: Any, struct: str, field: str, path: str, found: _Found) -> Any:
    if not isinstance(value, list):
        _misfit(value, struct, field, "[]string", found)
        return None
    for item in value:
        if item is not None and not isinstance(item, str):
            _misfit(item, struct, field, "string", found)
    return ["" if item is None else item for item in value] or None


def _text_map(value: Any, struct: str, field: str, path: str, found: _Found) -> Any:
    if not isinstance(value, dict):
        _misfit(value, struct, field, "map[string]string", found)
        return None
    for member in value.values():
        if member is not None and not isinstance(member, str):
            _misfit(member, struct, field, "string", found)
    return {name: "" if member is None else member for name, member in value.items()} or None


def _tree(value: Any, struct: str, field: str, path: str, found: _Found) -> Any:
    return value


def _structs(name: str, fields: Mapping[str, _Decode], always: tuple[str, ...] = ()) -> _Decode:
    def decode(value: Any, struct: str, field: str, path: str, found: _Found) -> Any:
        if not isinstance(value, list):
            _misfit(value, struct, field, f"[]v1.{name}", found)
            return None
        coerced: list[dict[str, Any]] = []
        for i, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                _misfit(item, struct, field, f"v1.{name}", found)
                continue
            members = _struct(item or {}, fields, name, field, f"{path}[{i}]", found)
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
    "generation": lambda *given: _integer(*given) or None,
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
    """What Go's time.Parse says after the text, or nothing."""
    at, numbers = 0, {}
    for layout, pattern in _PARTS:
        found = re.compile(pattern).match(text, at)
        if found is None:
            return f" as {quoted(_LAYOUT)}: cannot parse {quoted(text[at:])} as {quoted(layout)}"
        if found[0].isdigit():
            numbers[layout] = int(found[0])
            limit = {"01": 12, "15": 23, "04": 59}.get(layout)
            if limit is not None and numbers[layout] > limit:
                return f": {_NAMES[layout]} out of range"
        if layout == "05" and int(found[0][:2]) > 59:
            return ": second out of range"
        at = found.end()
    if at < len(text):
        return f": extra text: {quoted(text[at:])}"
    if not numbers["01"]:
        return ": month out of range"
    if not 1 <= numbers["02"] <= monthrange(numbers["2006"] or 2000, numbers["01"])[1]:
        return ": day out of range"
    return ""


_NAMES: Final = {"01": "month", "15": "hour", "04": "minute"}


def _utc(text: str) -> str | None:
    """The same instant in UTC and whole seconds; nothing for Go's zero time."""
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
