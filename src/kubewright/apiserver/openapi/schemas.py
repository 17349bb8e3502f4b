"""The published schemas of custom resources, for v2 and v3: the CRD's schema, and the fields every object has.

v3 publishes the structural schema as it is, without examples and links. v2 knows neither nullable nor oneOf, and
clients reject fields that it does not list; so where values may be null or fields unknown, v2 publishes less
(k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2/conversion.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.openapi.names import model_name
from kubewright.k8s.documents import component

__all__ = ("VersionSchema", "item_schema", "list_schema")

Tree = dict[str, Any]
Node = Mapping[str, Any]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_KIND: Final = "x-kubernetes-group-version-kind"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_INT_OR_STRING_TYPES: Final = [{"type": "integer"}, {"type": "string"}]
_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_OBJECT_TEXT: Final = f"Standard object's metadata. More info: {_CONVENTIONS}#metadata"
_LIST_TEXT: Final = f"Standard list metadata. More info: {_CONVENTIONS}#types-kinds"
_EMBEDDED_TEXTS: Final = {
    "apiVersion": "apiVersion defines the versioned schema of this representation of an object. "
    f"More info: {_CONVENTIONS}#resources",
    "kind": "kind is a string value representing the type of this object. In CamelCase. "
    f"More info: {_CONVENTIONS}#types-kinds",
}
# Keywords that are published unless empty, and keywords that are published if present.
_UNLESS_EMPTY: Final = (
    "description",
    "type",
    "format",
    "title",
    "nullable",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "pattern",
    "uniqueItems",
    "enum",
    "required",
    _PRESERVE,
    _EMBEDDED,
    _INT_OR_STRING,
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
)
_IF_SET: Final = (
    "default",
    "maximum",
    "minimum",
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
    "multipleOf",
    "maxProperties",
    "minProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
)
_JUNCTIONS: Final = ("allOf", "oneOf", "anyOf")


class VersionSchema(Protocol):
    """The version of a CRD, as far as it is published."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """The structural schema; empty if there is none."""
        ...

    @property
    def preserves_unknown(self) -> bool:
        """Whether the CRD preserves all unknown fields."""
        ...

    @property
    def selectable_fields(self) -> Sequence[str]:
        """The selectable fields."""
        ...


def item_schema(kind: GroupVersionKind, version: VersionSchema, *, v2: bool = False) -> Tree:
    """The component of an object, for v3 or v2."""
    schema = version.schema
    if not schema or (v2 and (schema.get(_PRESERVE) or version.preserves_unknown)):
        found: Tree = {"type": "object"}
    else:
        found = _to_v2(schema) if v2 else _to_v3(schema)
        found["properties"] = {
            **found.get("properties", {}),
            **_type_fields(),
            "metadata": _reference("ObjectMeta", _OBJECT_TEXT, v2=v2),
        }
        _add_embedded(found, v2=v2)
    return _with_kind(found, kind, version)


def list_schema(
    kind: GroupVersionKind, list_kind: str, plural: str, version: VersionSchema, *, v2: bool = False
) -> Tree:
    """The component of a list of objects, for v3 or v2."""
    prefix = "#/definitions/" if v2 else "#/components/schemas/"
    found: Tree = {
        "description": f"{list_kind} is a list of {kind.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_type_fields(),
            "items": {
                "description": f"List of {plural}. More info: {_CONVENTIONS}",
                "type": "array",
                "items": {"$ref": f"{prefix}{model_name(kind)}"},
            },
            "metadata": _reference("ListMeta", _LIST_TEXT, v2=v2),
        },
    }
    return _with_kind(found, GroupVersionKind(kind.group, kind.version, list_kind), version)


def _with_kind(schema: Tree, kind: GroupVersionKind, version: VersionSchema) -> Tree:
    schema[_KIND] = [{"group": kind.group, "kind": kind.kind, "version": kind.version}]
    if version.selectable_fields:
        schema["x-kubernetes-selectable-fields"] = [{"fieldPath": path} for path in version.selectable_fields]
    return schema


def _type_fields(texts: Mapping[str, str] | None = None) -> Tree:
    known = (component("io.k8s.api.core.v1.ConfigMap") or {})["properties"]
    return {name: {**known[name], **({"description": texts[name]} if texts else {})} for name in ("apiVersion", "kind")}


def _reference(name: str, text: str, *, v2: bool) -> Tree:
    if v2:
        return {"description": text, "$ref": f"#/definitions/{_META}{name}"}
    return {"description": text, "allOf": [{"$ref": f"#/components/schemas/{_META}{name}"}]}


def _add_embedded(schema: Tree, *, v2: bool) -> None:
    """Add apiVersion, kind and metadata to embedded resources."""
    for child in _children(schema):
        _add_embedded(child, v2=v2)
    if not schema.get(_EMBEDDED) or (v2 and schema.get(_PRESERVE)):
        return
    schema["properties"] = {
        **schema.get("properties", {}),
        **_type_fields(_EMBEDDED_TEXTS),
        "metadata": _reference("ObjectMeta", _OBJECT_TEXT, v2=v2),
    }
    required = schema.get("required", ())
    schema["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]


def _children(schema: Tree) -> list[Tree]:
    found = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return [child for child in found if isinstance(child, dict)]


# v3


def _to_v3(schema: Node) -> Tree:
    found = _copy_keywords(schema)
    _copy_junctions(schema, found)
    if schema.get(_INT_OR_STRING):
        _add_int_or_string(found)
    _convert_children(schema, found, _to_v3)
    return found


def _nested_to_v3(schema: Node) -> Tree:
    """A schema below allOf, anyOf, oneOf or not: it has no types, so nothing is added."""
    found = _copy_keywords(schema)
    _copy_junctions(schema, found)
    _convert_children(schema, found, _nested_to_v3)
    return found


def _copy_junctions(schema: Node, found: Tree) -> None:
    for name in _JUNCTIONS:
        if parts := schema.get(name):
            found[name] = [_nested_to_v3(part) for part in parts]
    if schema.get("not") is not None:
        found["not"] = _nested_to_v3(schema["not"])


def _add_int_or_string(found: Tree) -> None:
    """Add the anyOf of x-kubernetes-int-or-string, unless the CRD has it."""
    choices, all_of = found.get("anyOf"), found.get("allOf", [])
    if choices == _INT_OR_STRING_TYPES or (all_of and all_of[0].get("anyOf") == _INT_OR_STRING_TYPES):
        return
    if choices is None:
        found["anyOf"] = _INT_OR_STRING_TYPES
    else:
        found["allOf"] = [{"anyOf": _INT_OR_STRING_TYPES}, *all_of]


# v2


def _to_v2(schema: Node) -> Tree:
    found = _copy_keywords(schema)
    found.pop("default", None)
    open_ended = bool(schema.get("nullable")) or bool(schema.get(_PRESERVE))
    if schema.get("nullable"):
        found.pop("type", None)
        found.pop("nullable")
    _convert_children(schema, found, _to_v2)
    if open_ended:
        found.pop("items", None)
        found.pop("properties", None)
    if found.get("type") == "array" and "items" not in found:
        found.pop("type")
    if schema.get(_PRESERVE) and found.get("type") == "object":
        found.pop("type")
    _drop_required(schema, found)
    return found


def _drop_required(schema: Node, found: Tree) -> None:
    """Drop nullable fields from `required`: v2 clients do not send null."""
    values = schema.get("additionalProperties")
    properties = schema.get("properties") or {} if "properties" in found else {}
    required = [name for name in found.get("required", ()) if not (properties.get(name) or {}).get("nullable")]
    if not required or (isinstance(values, Mapping) and values.get("nullable")):
        found.pop("required", None)
    else:
        found["required"] = required


# both


def _copy_keywords(schema: Node) -> Tree:
    found: Tree = {name: schema[name] for name in _UNLESS_EMPTY if schema.get(name)}
    for name in _IF_SET:
        if (value := schema.get(name)) is not None:
            # Go encodes a float64 without a fraction as an integer.
            found[name] = int(value) if isinstance(value, float) and value.is_integer() else value
    return found


def _convert_children(schema: Node, found: Tree, convert: Callable[[Node], Tree]) -> None:
    if isinstance(items := schema.get("items"), Mapping):
        found["items"] = convert(items)
    if properties := schema.get("properties"):
        found["properties"] = {name: convert(properties[name]) for name in sorted(properties)}
    values = schema.get("additionalProperties")
    if values is not None:
        found["additionalProperties"] = convert(values) if isinstance(values, Mapping) else values
