"""Decodes a CRD: drops unknown fields and rejects values of a wrong type, as the typed decoder of Go does.

`builtin.golang.decoder` decodes the other built-in kinds by their Go types. A CRD contains schemas, parts of which have
alternative types (`items` is a schema or a list of them), so this follows the OpenAPI document of the kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.wire.go_json import json_type_name
from kubewright.apiserver.wire.status_errors import StatusError, bad_request
from kubewright.k8s import documents

__all__ = ("normalize_crd",)

_KIND: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_PACKAGE: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_SCHEMA: Final = f"{_PACKAGE}JSONSchemaProps"
_EITHER: Final = tuple(f"{_SCHEMA}Or{other}" for other in ("Array", "Bool", "StringArray"))
_ANYTHING: Final = (f"{_PACKAGE}JSON", "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1")
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_GO: Final = {"string": "string", "boolean": "bool", "number": "float64"}


def normalize_crd(tree: dict[str, Any]) -> list[str]:
    """Drop the unknown fields of a tree and return their paths; raises StatusError for a value of a wrong type."""
    unknown: list[str] = []
    _walk(tree, documents.schema_of(_KIND) or {}, "", unknown)
    return unknown


def _walk(value: Any, schema: Mapping[str, Any], path: str, unknown: list[str]) -> None:
    name, schema = _resolved(schema)
    if value is None or name in _ANYTHING:
        return
    if name in _EITHER:
        for place, part in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(part, dict):
                _walk(part, {"$ref": f"#/components/schemas/{_SCHEMA}"}, _item(path, place), unknown)
        return
    kind = str(schema.get("type", ""))
    if kind in _TYPES and (not isinstance(value, _TYPES[kind]) or (kind != "boolean" and isinstance(value, bool))):
        raise _wrong_type(value, path, name, schema)
    if isinstance(value, list):
        for place, part in enumerate(value):
            _walk(part, schema.get("items") or {}, f"{path}[{place}]", unknown)
    elif isinstance(value, dict):
        _walk_members(value, schema, path, unknown)


def _walk_members(value: dict[str, Any], schema: Mapping[str, Any], path: str, unknown: list[str]) -> None:
    known, others = schema.get("properties"), schema.get("additionalProperties")
    for member in list(value):
        below = f"{path}.{member}" if path else member
        if known is not None and member in known:
            _walk(value[member], known[member], below, unknown)
        elif isinstance(others, dict):
            _walk(value[member], others, below, unknown)
        elif known is not None:
            unknown.append(below)
            del value[member]


def _item(path: str, place: int | None) -> str:
    return path if place is None else f"{path}[{place}]"


def _resolved(schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The name of the component that a schema refers to, if it does, and the resolved schema."""
    for part in (schema, *(schema.get("allOf") or ())):
        reference = part.get("$ref")
        if reference:
            name = reference.rpartition("/")[2]
            return name, _component(name)
    return "", schema


@cache
def _component(name: str) -> Mapping[str, Any]:
    return documents.component(name) or {}


def _wrong_type(value: Any, path: str, name: str, schema: Mapping[str, Any]) -> StatusError:
    kind = _KIND.kind
    found, wanted = json_type_name(value), _go_type(name, schema)
    why = f"json: cannot unmarshal {found} into Go struct field {kind}.{path} of type {wanted}"
    return bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {why}')


def _go_type(name: str, schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "")
    if name and kind == "object":
        return f"v1.{name.rpartition('.')[2]}"
    if kind == "array":
        return f"[]{_go_type(*_resolved(schema.get('items') or {}))}"
    if kind == "object":
        return f"map[string]{_go_type(*_resolved(schema.get('additionalProperties') or {}))}"
    return str(schema.get("format", "int64")) if kind == "integer" else _GO.get(kind, kind)
