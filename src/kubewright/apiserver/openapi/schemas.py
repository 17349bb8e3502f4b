"""The schemas of custom resources as they are published: what the definition says, and what every object has.

Two forms. In OpenAPI v3 the structural schema is published as it is, but for what no client needs (examples, links).
In the older form there is no null and no choice, and clients take a known field for the only one there is; so wherever
values may be null or fields unknown, less is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.openapi.names import model_name
from kubewright.k8s.documents import component

__all__ = ("Published", "item_schema", "list_schema")

Tree = dict[str, Any]
Node = Mapping[str, Any]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_KIND: Final = "x-kubernetes-group-version-kind"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_EITHER: Final = [{"type": "integer"}, {"type": "string"}]
_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_OBJECT_TEXT: Final = f"Standard object's metadata. More info: {_CONVENTIONS}#metadata"
_LIST_TEXT: Final = f"Standard list metadata. More info: {_CONVENTIONS}#types-kinds"
_EMBEDDED_TEXTS: Final = {
    "apiVersion": "apiVersion defines the versioned schema of this representation of an object. "
    f"More info: {_CONVENTIONS}#resources",
    "kind": "kind is a string value representing the type of this object. In CamelCase. "
    f"More info: {_CONVENTIONS}#types-kinds",
}
# What is published when it says something, and what is published when it is there at all.
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


class Published(Protocol):
    """What is published of a version of a custom resource."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """The structural schema; empty if there is none."""
        ...

    @property
    def preserves_unknown(self) -> bool:
        """Whether the definition keeps all unknown fields."""
        ...

    @property
    def selectable_fields(self) -> Sequence[str]:
        """What field selectors may name."""
        ...


def item_schema(kind: GroupVersionKind, version: Published, *, old: bool = False) -> Tree:
    """The component of an object; `old` for the older form."""
    schema = version.schema
    if not schema or (old and (schema.get(_PRESERVE) or version.preserves_unknown)):
        found: Tree = {"type": "object"}
    else:
        found = _old_form(schema) if old else _new_form(schema)
        found["properties"] = {
            **found.get("properties", {}),
            **_type_fields(),
            "metadata": _reference("ObjectMeta", _OBJECT_TEXT, old=old),
        }
        _add_embedded(found, old=old)
    return _marked(found, kind, version)


def list_schema(kind: GroupVersionKind, list_kind: str, plural: str, version: Published, *, old: bool = False) -> Tree:
    """The component of a list of objects."""
    prefix = "#/definitions/" if old else "#/components/schemas/"
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
            "metadata": _reference("ListMeta", _LIST_TEXT, old=old),
        },
    }
    return _marked(found, GroupVersionKind(kind.group, kind.version, list_kind), version)


def _marked(schema: Tree, kind: GroupVersionKind, version: Published) -> Tree:
    schema[_KIND] = [{"group": kind.group, "kind": kind.kind, "version": kind.version}]
    if version.selectable_fields:
        schema["x-kubernetes-selectable-fields"] = [{"fieldPath": path} for path in version.selectable_fields]
    return schema


def _type_fields(texts: Mapping[str, str] | None = None) -> Tree:
    known = (component("io.k8s.api.core.v1.ConfigMap") or {})["properties"]
    return {name: {**known[name], **({"description": texts[name]} if texts else {})} for name in ("apiVersion", "kind")}


def _reference(name: str, text: str, *, old: bool) -> Tree:
    if old:
        return {"description": text, "$ref": f"#/definitions/{_META}{name}"}
    return {"description": text, "allOf": [{"$ref": f"#/components/schemas/{_META}{name}"}]}


def _add_embedded(schema: Tree, *, old: bool) -> None:
    """Give whole objects inside an object what every object has."""
    for child in _children(schema):
        _add_embedded(child, old=old)
    if not schema.get(_EMBEDDED) or (old and schema.get(_PRESERVE)):
        return
    schema["properties"] = {
        **schema.get("properties", {}),
        **_type_fields(_EMBEDDED_TEXTS),
        "metadata": _reference("ObjectMeta", _OBJECT_TEXT, old=old),
    }
    required = schema.get("required", ())
    schema["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]


def _children(schema: Tree) -> list[Tree]:
    found = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return [child for child in found if isinstance(child, dict)]


# the newer form


def _new_form(schema: Node) -> Tree:
    found = _plain(schema)
    for name in _JUNCTIONS:
        if parts := schema.get(name):
            found[name] = [_nested(part) for part in parts]
    if schema.get("not") is not None:
        found["not"] = _nested(schema["not"])
    if schema.get(_INT_OR_STRING):
        _say_either(found)
    _convert_children(schema, found, _new_form)
    return found


def _nested(schema: Node) -> Tree:
    """A part of a choice: it says nothing new about types, so nothing is added."""
    found = _plain(schema)
    for name in _JUNCTIONS:
        if parts := schema.get(name):
            found[name] = [_nested(part) for part in parts]
    if schema.get("not") is not None:
        found["not"] = _nested(schema["not"])
    _convert_children(schema, found, _nested)
    return found


def _say_either(found: Tree) -> None:
    """Spell out that an int-or-string is either, unless the definition does."""
    choices, all_of = found.get("anyOf"), found.get("allOf", [])
    if choices == _EITHER or (all_of and all_of[0].get("anyOf") == _EITHER):
        return
    if choices is None:
        found["anyOf"] = _EITHER
    else:
        found["allOf"] = [{"anyOf": _EITHER}, *all_of]


# the older form


def _old_form(schema: Node) -> Tree:
    found = _plain(schema)
    found.pop("default", None)
    open_ended = bool(schema.get("nullable")) or bool(schema.get(_PRESERVE))
    if schema.get("nullable"):
        found.pop("type", None)
        found.pop("nullable")
    _convert_children(schema, found, _old_form)
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
    """What may be null cannot be demanded: there it is the same as absent."""
    values = schema.get("additionalProperties")
    properties = schema.get("properties") or {} if "properties" in found else {}
    required = [name for name in found.get("required", ()) if not (properties.get(name) or {}).get("nullable")]
    if not required or (isinstance(values, Mapping) and values.get("nullable")):
        found.pop("required", None)
    else:
        found["required"] = required


# both


def _plain(schema: Node) -> Tree:
    found: Tree = {name: schema[name] for name in _UNLESS_EMPTY if schema.get(name)}
    for name in _IF_SET:
        if (value := schema.get(name)) is not None:
            # Whole numbers are written without a point.
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
