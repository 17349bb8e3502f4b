"""Types from schemas: what an expression may do with a value that an OpenAPI schema describes.

Follows the API server: what has no type in the schema cannot be seen by expressions; int-or-string is dynamic;
date-time, duration and byte formats are times, durations and bytes; the root of a resource, and of an embedded one,
always has apiVersion, kind, metadata.name and metadata.generateName. The sizes noted in the shapes bound the cost of
an expression. A schema is a plain dict as in a CustomResourceDefinition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubewright.cel import celtypes
from kubewright.cel.celtypes import CelType, Field, Shape
from kubewright.cel.names import escaped

__all__ = ("REQUEST_BYTES", "type_of_schema", "with_identity")

REQUEST_BYTES: Final = 3 * 1024 * 1024
"""The largest request the API server takes, and so the bound of every size."""

_LONGEST_TEXT: Final = REQUEST_BYTES - 2
# Format of a string: the type, how it is read, the fewest bytes in JSON, the most characters.
_FORMATS: Final = {
    "duration": (celtypes.DURATION, "duration", 3, 32),
    "date": (celtypes.TIMESTAMP, "date", 12, 12),
    "date-time": (celtypes.TIMESTAMP, "timestamp", 21, 32),
}
_TEXT: Final[dict[str, Any]] = {"type": "string"}
_META: Final[dict[str, Any]] = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}


def type_of_schema(schema: Mapping[str, Any], *, root: bool = False, name: str = "object") -> CelType | None:
    """The type of values of this schema, or None if expressions cannot see them.

    `root` says that the schema is that of a whole resource. `name` is what an object's type is called in messages;
    the types inside take their names from it.
    """
    if schema.get("x-kubernetes-int-or-string"):
        length = schema.get("maxLength")
        most = _LONGEST_TEXT if length is None else max(length, 0) * 4
        return CelType("dyn", "dyn", (), Shape(most=most, least_bytes=1))
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
        return CelType("bool", "bool", (), Shape(least_bytes=4))
    if kind == "number":
        return CelType("double", "double", (), Shape(least_bytes=1, read="double", converted=True))
    if kind == "integer":
        return CelType("int", "int", (), Shape(least_bytes=1))
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
    most = schema.get("maxItems")
    if most is None:
        most = (REQUEST_BYTES - 2) // (_least(element) + 1)
    kind = schema.get("x-kubernetes-list-type")
    keys = tuple(schema.get("x-kubernetes-list-map-keys", ())) if kind == "map" else ()
    shape = Shape(
        most=max(most, 0),
        least_bytes=2,
        keys=keys,
        unordered=kind == "set",
        converted=element.converted or kind in ("set", "map"),
    )
    return celtypes.list_of(element, shape=shape)


def _map(schema: Mapping[str, Any], name: str) -> CelType | None:
    value = type_of_schema(schema["additionalProperties"], name=f"{name}.@elem")
    if value is None:
        return None
    most = schema.get("maxProperties")
    if most is None:
        most = (REQUEST_BYTES - 2) // (_least(value) + 6)
    shape = Shape(most=max(most, 0), least_bytes=2, converted=value.converted)
    return celtypes.map_of(celtypes.STRING, value, shape=shape)


def _object(schema: Mapping[str, Any], name: str) -> CelType:
    required = frozenset(schema.get("required") or ())
    fields = {}
    least = 2
    converted = False
    for json, inner in (schema.get("properties") or {}).items():
        spelled = escaped(json)
        inside = type_of_schema(inner, name=f"{name}.{spelled}")
        if inside is None:
            continue
        if spelled is not None:
            fields[spelled] = Field(json, inside)
            if spelled == f"__{json}__":
                # A word of the language is understood as it is, too, where nothing but a field can be meant.
                fields[json] = fields[spelled]
            converted = converted or inside.converted or spelled != json
        if json in required and "default" not in inner:
            least += len(json.encode()) + _least(inside) + 4
    return CelType("object", name, (), Shape(fields=fields, least_bytes=least, converted=converted))


def _text(schema: Mapping[str, Any]) -> CelType:
    form = schema.get("format")
    if form in _FORMATS:
        kind, read, least, most = _FORMATS[form]
        return CelType(kind.kind, kind.name, (), Shape(most=most, least_bytes=least, read=read, converted=True))
    length = schema.get("maxLength")
    if form == "byte":
        most = _LONGEST_TEXT if length is None else max(length, 0)
        return CelType("bytes", "bytes", (), Shape(most=most, least_bytes=2, read="bytes", converted=True))
    if length is not None:
        # The schema counts characters, the request bytes, and a character is up to four of them.
        most = max(length, 0) * 4
    elif schema.get("enum"):
        most = max((len(value.encode()) for value in schema["enum"] if isinstance(value, str)), default=0)
    else:
        most = _LONGEST_TEXT
    return CelType("string", "string", (), Shape(most=most, least_bytes=2))


def _least(kind: CelType) -> int:
    return kind.shape.least_bytes if kind.shape else 0
