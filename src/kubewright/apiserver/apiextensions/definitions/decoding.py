"""Decodes a CRD: drops unknown fields and rejects values of a wrong type, as the typed decoder of Go does.

`builtin.golang.decoder` decodes the other built-in kinds by their Go types. A CRD contains schemas, parts of which have
alternative types (`items` is a schema or a list of them), so this follows the OpenAPI document of the kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.golang.times import canonical_micro_time, canonical_time
from kubewright.apiserver.wire.go_json import json_type_name
from kubewright.apiserver.wire.status_errors import StatusError, bad_request
from kubewright.k8s import documents
from kubewright.schema.check.reported_paths import ReportedPaths, path_text

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
_LIMITS: Final = {"int32": 2**31, "int64": 2**63}
_MAX_UNKNOWN: Final = 100
"""How many unknown fields are reported (`saveStrictError` of sigs.k8s.io/json)."""
_GO: Final = {"string": "string", "boolean": "bool", "number": "float64"}


def normalize_crd(tree: dict[str, Any]) -> list[str]:
    """Drop the unknown fields of a tree and return their paths; raises StatusError for a value of a wrong type."""
    unknown = ReportedPaths(limit=_MAX_UNKNOWN)
    _walk(tree, documents.schema_of(_KIND) or {}, [], unknown)
    return unknown.paths()


def _walk(value: Any, schema: Mapping[str, Any], steps: list[str | int], unknown: ReportedPaths) -> None:
    """Decode a value, which is not null; `steps` is its path."""
    name, schema = _resolved(schema)
    if name in _ANYTHING:
        return
    if name in _EITHER:
        _walk_alternatives(value, name, steps, unknown)
        return
    kind = str(schema.get("type", ""))
    if kind in _TYPES and (not isinstance(value, _TYPES[kind]) or (kind != "boolean" and isinstance(value, bool))):
        raise _wrong_type(value, steps, name, schema)
    if kind == "integer" and not -(limit := _LIMITS.get(str(schema.get("format")), 2**63)) <= value < limit:
        raise _wrong_type(value, steps, name, schema)
    if isinstance(value, list):
        _walk_items(value, schema.get("items") or {}, steps, unknown)
    elif isinstance(value, dict):
        _walk_members(value, schema, steps, unknown)


def _walk_alternatives(value: Any, name: str, steps: list[str | int], unknown: ReportedPaths) -> None:
    """Decode a schema, or what else the type may be (`UnmarshalJSON` in apis/apiextensions/v1/marshal.go)."""
    if isinstance(value, dict):
        _walk(value, {"$ref": f"#/components/schemas/{_SCHEMA}"}, steps, unknown)
    elif isinstance(value, list) and name.endswith("StringArray"):
        _walk_items(value, {"type": "string"}, steps, unknown)
    elif isinstance(value, list) and name.endswith("Array"):
        _walk_items(value, {"$ref": f"#/components/schemas/{_SCHEMA}"}, steps, unknown)
    elif name.endswith("Bool") and not isinstance(value, bool):
        raise _decode_error("boolean or JSON schema expected")


def _is_ignored(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether Go takes a value for a list of schemas and finds none in it."""
    return _resolved(schema)[0] == _EITHER[0] and not isinstance(value, dict | list)


def _walk_items(value: list[Any], schema: Mapping[str, Any], steps: list[str | int], unknown: ReportedPaths) -> None:
    for place, item in enumerate(value):
        if item is None:
            value[place] = _zero(schema)
            continue
        steps.append(place)
        _walk(item, schema, steps, unknown)
        steps.pop()


def _walk_members(
    value: dict[str, Any], schema: Mapping[str, Any], steps: list[str | int], unknown: ReportedPaths
) -> None:
    known, others = schema.get("properties"), schema.get("additionalProperties")
    for member in list(value):
        steps.append(member)
        if known is not None and member in known:
            if value[member] is None or _is_ignored(value[member], known[member]):
                del value[member]
            else:
                _walk(value[member], known[member], steps, unknown)
                _read_time(value, member, known[member])
        elif isinstance(others, dict):
            if value[member] is None:
                value[member] = _zero(others)
            else:
                _walk(value[member], others, steps, unknown)
        elif known is not None:
            unknown.add(steps)
            del value[member]
        steps.pop()


def _read_time(holder: dict[str, Any], member: str, schema: Mapping[str, Any]) -> None:
    """Bring a time into its canonical form."""
    name = _resolved(schema)[0].rpartition(".")[2]
    read = {"Time": canonical_time, "MicroTime": canonical_micro_time}.get(name)
    if read is not None:
        try:
            holder[member] = read(holder[member])
        except ValueError as error:
            raise _decode_error(str(error)) from None


def _zero(schema: Mapping[str, Any]) -> Any:
    """What Go makes of a null in a list or a map: the zero value."""
    name, schema = _resolved(schema)
    if name in _ANYTHING:
        return None
    zeros: dict[str, Any] = {"object": {}, "string": "", "boolean": False, "integer": 0, "number": 0}
    return {} if name in _EITHER else zeros.get(str(schema.get("type", "")))


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


def _wrong_type(value: Any, steps: list[str | int], name: str, schema: Mapping[str, Any]) -> StatusError:
    kind, path = _KIND.kind, path_text(steps)
    found, wanted = json_type_name(value), _go_type(name, schema)
    return _decode_error(f"json: cannot unmarshal {found} into Go struct field {kind}.{path} of type {wanted}")


def _decode_error(why: str) -> StatusError:
    kind = _KIND.kind
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
