"""CEL types from OpenAPI schemas.

Follows the API server (apiextensions-apiserver: pkg/apiserver/schema/cel/model): a value without a type in the schema
is not visible to expressions; int-or-string is dynamic; date-time, duration and byte formats are timestamps, durations
and bytes; the root of a resource, and of an embedded one, always has apiVersion, kind, metadata.name and
metadata.generateName. The sizes in the details bound the cost of an expression. A schema is a plain dict as in a
CustomResourceDefinition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubewright.cel import celtypes
from kubewright.cel.celtypes import CelType, Field, SchemaDetails
from kubewright.cel.names import escape_field_name

__all__ = ("REQUEST_BYTES", "type_of_schema", "with_identity")

REQUEST_BYTES: Final = 3 * 1024 * 1024
"""The largest request the API server accepts, and so the bound of every size."""

_MAX_TEXT: Final = REQUEST_BYTES - 2
# Format of a string: the type, its conversion, the minimum bytes in JSON, the maximum characters.
_FORMATS: Final = {
    "duration": (celtypes.DURATION, "duration", 3, 32),
    "date": (celtypes.TIMESTAMP, "date", 12, 12),
    "date-time": (celtypes.TIMESTAMP, "timestamp", 21, 32),
}
_TEXT: Final[dict[str, Any]] = {"type": "string"}
_META: Final[dict[str, Any]] = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}


def type_of_schema(schema: Mapping[str, Any], *, root: bool = False, name: str = "object") -> CelType | None:
    """The type of values of this schema, or None if expressions cannot see them.

    `root` says that the schema is that of a whole resource. `name` is the name of an object's type in messages; the
    types inside take their names from it.
    """
    if schema.get("x-kubernetes-int-or-string"):
        length = schema.get("maxLength")
        max_size = _MAX_TEXT if length is None else max(length, 0) * 4
        return CelType("dyn", "dyn", (), SchemaDetails(max_size=max_size, min_json_bytes=1))
    if root or schema.get("x-kubernetes-embedded-resource"):
        schema = with_identity(schema)
    kind = schema.get("type")
    if kind == "array":
        return _list(schema, name)
    if kind == "object":
        return _map(schema, name) if isinstance(schema.get("additionalProperties"), Mapping) else _object(schema, name)
    if kind == "string":
        return _text(schema)
    if kind == "boolean":
        return CelType("bool", "bool", (), SchemaDetails(min_json_bytes=4))
    if kind == "number":
        return CelType(
            "double", "double", (), SchemaDetails(min_json_bytes=1, conversion="double", needs_conversion=True)
        )
    if kind == "integer":
        return CelType("int", "int", (), SchemaDetails(min_json_bytes=1))
    return None


def with_identity(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a resource, with the fields every resource has."""
    properties = schema.get("properties") or {}
    meta = properties.get("metadata", {})
    inside = meta.get("properties") or {}
    complete = (
        all(properties.get(each, {}).get("type") == "string" for each in ("kind", "apiVersion"))
        and meta.get("type") == "object"
        and all(inside.get(each, {}).get("type") == "string" for each in ("name", "generateName"))
    )
    if complete:
        return schema
    return {**schema, "properties": {**properties, "kind": _TEXT, "apiVersion": _TEXT, "metadata": _META}}


def _list(schema: Mapping[str, Any], name: str) -> CelType | None:
    items = schema.get("items")
    element = type_of_schema(items, name=f"{name}.@idx") if isinstance(items, Mapping) else None
    if element is None:
        return None
    max_size = schema.get("maxItems")
    if max_size is None:
        max_size = (REQUEST_BYTES - 2) // (_min_json_bytes(element) + 1)
    kind = schema.get("x-kubernetes-list-type")
    keys = tuple(schema.get("x-kubernetes-list-map-keys", ())) if kind == "map" else ()
    details = SchemaDetails(
        max_size=max(max_size, 0),
        min_json_bytes=2,
        keys=keys,
        is_set=kind == "set",
        needs_conversion=element.needs_conversion or kind in ("set", "map"),
    )
    return celtypes.list_of(element, details=details)


def _map(schema: Mapping[str, Any], name: str) -> CelType | None:
    value = type_of_schema(schema["additionalProperties"], name=f"{name}.@elem")
    if value is None:
        return None
    max_size = schema.get("maxProperties")
    if max_size is None:
        max_size = (REQUEST_BYTES - 2) // (_min_json_bytes(value) + 6)
    details = SchemaDetails(max_size=max(max_size, 0), min_json_bytes=2, needs_conversion=value.needs_conversion)
    return celtypes.map_of(celtypes.STRING, value, details=details)


def _object(schema: Mapping[str, Any], name: str) -> CelType:
    required = frozenset(schema.get("required") or ())
    fields = {}
    min_bytes = 2
    converted = False
    for json, inner in (schema.get("properties") or {}).items():
        spelled = escape_field_name(json)
        inside = type_of_schema(inner, name=f"{name}.{spelled}")
        if inside is None:
            continue
        if spelled is not None:
            fields[spelled] = Field(json, inside)
            if spelled == f"__{json}__":
                # A keyword is also accepted unescaped, because after a dot it can only be a field.
                fields[json] = fields[spelled]
            converted = converted or inside.needs_conversion or spelled != json
        if json in required and "default" not in inner:
            min_bytes += len(json.encode()) + _min_json_bytes(inside) + 4
    return CelType(
        "object", name, (), SchemaDetails(fields=fields, min_json_bytes=min_bytes, needs_conversion=converted)
    )


def _text(schema: Mapping[str, Any]) -> CelType:
    format_name = schema.get("format")
    if format_name in _FORMATS:
        kind, conversion, min_bytes, max_size = _FORMATS[format_name]
        return CelType(
            kind.kind,
            kind.name,
            (),
            SchemaDetails(max_size=max_size, min_json_bytes=min_bytes, conversion=conversion, needs_conversion=True),
        )
    length = schema.get("maxLength")
    if format_name == "byte":
        max_size = _MAX_TEXT if length is None else max(length, 0)
        return CelType(
            "bytes",
            "bytes",
            (),
            SchemaDetails(max_size=max_size, min_json_bytes=2, conversion="bytes", needs_conversion=True),
        )
    if length is not None:
        # The schema counts characters, the request bytes, and a character has up to four bytes.
        max_size = max(length, 0) * 4
    elif schema.get("enum"):
        max_size = max((len(value.encode()) for value in schema["enum"] if isinstance(value, str)), default=0)
    else:
        max_size = _MAX_TEXT
    return CelType("string", "string", (), SchemaDetails(max_size=max_size, min_json_bytes=2))


def _min_json_bytes(kind: CelType) -> int:
    return kind.details.min_json_bytes if kind.details else 0
