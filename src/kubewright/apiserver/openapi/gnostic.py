"""Encodes the OpenAPI v2 document as protobuf, the only encoding client-go's v2 discovery accepts.

The messages are those of gnostic's OpenAPIv2.proto (github.com/google/gnostic-models), as far as this server's document
uses them: other fields do not occur in it. Values without a fixed type, such as extensions, are YAML texts. `endpoints`
calls it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from kubewright.apiserver.wire.protobuf.encoder import varint
from kubewright.apiserver.wire.responses import encode_json

__all__ = ("MEDIA_TYPE", "encode_document")

MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

Writer = Callable[[Any], bytes]
Row = tuple[int, str]
"""The number of a field, and how its value is encoded."""

_LIMITS: Final = ("default", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength")
_MORE: Final = ("pattern", "maxItems", "minItems", "uniqueItems", "enum", "multipleOf")
_KINDS: Final = {
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), "double"),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "required", "allowEmptyValue"), "bool"),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems"), "int"),
    "default": "any",
    "enum": "anys",
    "items": "primitive",
}


def _numbered(*names: str, start: int = 1) -> dict[str, Row]:
    """Fields with consecutive numbers."""
    return {name: (number, _KINDS.get(name, "text")) for number, name in enumerate(names, start=start)}


_SIMPLE: Final = ("type", "format", "items", "collectionFormat", *_LIMITS, *_MORE)
_PLACED: Final = ("required", "in", "description", "name")
_FIELDS: Final[dict[str, dict[str, Row]]] = {
    "document": {
        "swagger": (1, "text"),
        "info": (2, "info"),
        "host": (3, "text"),
        "basePath": (4, "text"),
        "schemes": (5, "texts"),
        "consumes": (6, "texts"),
        "produces": (7, "texts"),
        "paths": (8, "paths"),
        "definitions": (9, "schema_map"),
        "parameters": (10, "parameter_map"),
        "security": (12, "requirements"),
        "securityDefinitions": (13, "security_map"),
    },
    "info": _numbered("title", "version", "description", "termsOfService"),
    "path": {
        **{name: (n, "operation") for n, name in enumerate(("get", "put", "post", "delete", "options", "head"), 2)},
        "patch": (8, "operation"),
        "parameters": (9, "parameters"),
    },
    "operation": {
        "tags": (1, "texts"),
        "summary": (2, "text"),
        "description": (3, "text"),
        "operationId": (5, "text"),
        "produces": (6, "texts"),
        "consumes": (7, "texts"),
        "parameters": (8, "parameters"),
        "responses": (9, "responses"),
        "schemes": (10, "texts"),
        "deprecated": (11, "bool"),
    },
    "body": {**_numbered("description", "name", "in"), "required": (4, "bool"), "schema": (5, "schema")},
    "query": _numbered(*_PLACED, "allowEmptyValue", *_SIMPLE),
    "placed": _numbered(*_PLACED, *_SIMPLE),
    "primitive": _numbered(*_SIMPLE),
    "reference": {"$ref": (1, "text"), "description": (2, "text")},
    "response": {"description": (1, "text"), "schema": (2, "schema_item")},
    "schema": {
        "$ref": (1, "text"),
        **_numbered("format", "title", "description", start=2),
        **_numbered("default", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", start=5),
        **_numbered("maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", start=11),
        "maxProperties": (17, "int"),
        "minProperties": (18, "int"),
        "required": (19, "texts"),
        "enum": (20, "anys"),
        "additionalProperties": (21, "schema_or_bool"),
        "type": (22, "types"),
        "items": (23, "schema_items"),
        "allOf": (24, "schemas"),
        "properties": (25, "schema_map"),
        "readOnly": (27, "bool"),
        "example": (30, "any"),
    },
    "api_key": _numbered("type", "name", "in", "description"),
}
_EXTENSIONS: Final = {
    "document": 16,
    "info": 7,
    "path": 10,
    "operation": 13,
    "body": 6,
    "query": 23,
    "placed": 22,
    "primitive": 18,
    "response": 5,
    "schema": 31,
    "api_key": 5,
}
_IN_PLACE: Final = {"header": 1, "formData": 2, "query": 3, "path": 4}


def encode_document(document: Mapping[str, Any]) -> bytes:
    """A whole OpenAPI v2 document."""
    return _message("document", document)


def _message(name: str, tree: Mapping[str, Any]) -> bytes:
    fields, extensions = _FIELDS[name], _EXTENSIONS.get(name, 0)
    parts: list[tuple[int, bytes]] = []
    for key, value in tree.items():
        row = fields.get(key)
        if row is not None:
            parts.append((row[0], _field(row, value)))
        elif extensions and key.startswith("x-"):
            parts.append((extensions, _named(extensions, key, _any(value))))
    return b"".join(part for _, part in sorted(parts, key=lambda item: item[0]))


def _field(row: Row, value: Any) -> bytes:
    """One field with its tag; empty for a zero value."""
    number, kind = row
    if kind == "bool":
        return _tag(number, 0) + b"\1" if value else b""
    if kind == "int":
        return _tag(number, 0) + varint(int(value)) if value else b""
    if kind == "double":
        return _tag(number, 1) + struct.pack("<d", value) if value else b""
    if kind == "text":
        return _block(number, str(value).encode()) if value else b""
    if kind in _REPEATED:
        return b"".join(_block(number, _REPEATED[kind](item)) for item in value)
    return _block(number, _SINGLE[kind](value) if kind in _SINGLE else _message(kind, value))


def _map(number: int, write: Writer) -> Writer:
    return lambda tree: b"".join(_named(number, name, write(value)) for name, value in tree.items())


def _schema(tree: Any) -> bytes:
    return _message("schema", tree)


def _schema_or_bool(value: Any) -> bytes:
    return _tag(2, 0) + varint(int(value)) if isinstance(value, bool) else _block(1, _schema(value))


def _schema_items(value: Any) -> bytes:
    return b"".join(_block(1, _schema(item)) for item in (value if isinstance(value, list) else [value]))


def _types(value: Any) -> bytes:
    return b"".join(_block(1, item.encode()) for item in (value if isinstance(value, list) else [value]))


def _parameter(tree: Any) -> bytes:
    place = tree.get("in")
    if place == "body":
        return _block(1, _message("body", tree))
    name = "query" if place in ("query", "formData") else "placed"
    return _block(2, _block(_IN_PLACE[place], _message(name, tree)))


def _parameter_or_reference(tree: Any) -> bytes:
    return _block(2, _message("reference", tree)) if "$ref" in tree else _block(1, _parameter(tree))


def _responses(tree: Any) -> bytes:
    return b"".join(_named(1, code, _block(1, _message("response", value))) for code, value in tree.items())


def _paths(tree: Any) -> bytes:
    return b"".join(_named(2, path, _message("path", value)) for path, value in tree.items())


def _requirement(tree: Any) -> bytes:
    return b"".join(_named(1, name, _types(scopes)) for name, scopes in tree.items())


def _any(value: Any) -> bytes:
    """A value as YAML; JSON is YAML."""
    return _block(2, encode_json(value) + b"\n")


_SINGLE: Final[dict[str, Writer]] = {
    "any": _any,
    "paths": _paths,
    "responses": _responses,
    "schema_item": lambda tree: _block(1, _schema(tree)),
    "schema_items": _schema_items,
    "schema_map": _map(1, _schema),
    "schema_or_bool": _schema_or_bool,
    "parameter_map": _map(1, _parameter),
    "security_map": _map(1, lambda tree: _block(2, _message("api_key", tree))),
    "types": _types,
}
_REPEATED: Final[dict[str, Writer]] = {
    "anys": _any,
    "parameters": _parameter_or_reference,
    "requirements": _requirement,
    "schemas": _schema,
    "texts": lambda text: str(text).encode(),
}


def _named(number: int, name: str, value: bytes) -> bytes:
    return _block(number, _block(1, name.encode()) + _block(2, value))


def _block(number: int, data: bytes) -> bytes:
    return _tag(number, 2) + varint(len(data)) + data


def _tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)
