"""The internal version of a CRD: what all versions share at the top level, and Go structs for error messages.

kube-apiserver validates its internal type, which predates per-version schemas. Its conversion moves what is the same in
all versions to the top (k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/conversion.go), so errors are about
`spec.validation` if all versions have the same schema, and print `spec.versions` as Go structs. Only `definitions`
uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubewright.api.go_text import GoStruct
from kubewright.schema.check.equality import deep_equal

__all__ = (
    "InternalSpec",
    "schema_struct",
    "set_fields",
    "to_internal_spec",
    "validation_rule_struct",
    "versions_struct",
)

_SHARED: Final = ("subresources", "schema", "additionalPrinterColumns", "selectableFields")


@dataclass(frozen=True, slots=True)
class InternalSpec:
    """The spec of a CRD in its internal version: what all versions share, and the versions without it."""

    shared: Mapping[str, Any]
    versions: tuple[Mapping[str, Any], ...]


def to_internal_spec(spec: Mapping[str, Any]) -> InternalSpec:
    """Move what is the same in every version to the top, as kube-apiserver's conversion does."""
    versions = [version for version in spec.get("versions") or () if isinstance(version, Mapping)]
    shared: dict[str, Any] = {}
    for name in _SHARED:
        if versions and all(_same(version.get(name), versions[0].get(name)) for version in versions):
            shared[name] = versions[0].get(name)
    left = tuple({name: value for name, value in version.items() if name not in shared} for version in versions)
    return InternalSpec(shared, left)


def _same(one: Any, two: Any) -> bool:
    return (not one and not two and (one is None) == (two is None)) or deep_equal(one or None, two or None)


def versions_struct(versions: tuple[Mapping[str, Any], ...]) -> list[GoStruct]:
    """The versions as an error prints them."""
    return [
        GoStruct(
            Name=version.get("name") or "",
            Served=bool(version.get("served")),
            Storage=bool(version.get("storage")),
            Deprecated=bool(version.get("deprecated")),
            DeprecationWarning=version.get("deprecationWarning"),
            Schema=_validation(version.get("schema")),
            Subresources=_subresources(version.get("subresources")),
            AdditionalPrinterColumns=[_column(one) for one in version.get("additionalPrinterColumns") or ()] or None,
            SelectableFields=[
                GoStruct(JSONPath=one.get("jsonPath") or "") for one in version.get("selectableFields") or ()
            ]
            or None,
        )
        for version in versions
    ]


def _validation(value: Mapping[str, Any] | None) -> GoStruct | None:
    if value is None:
        return None
    schema = value.get("openAPIV3Schema")
    return GoStruct(OpenAPIV3Schema=schema_struct(schema) if schema is not None else None)


def _subresources(value: Mapping[str, Any] | None) -> GoStruct | None:
    if value is None:
        return None
    scale = value.get("scale")
    shown = None
    if scale is not None:
        shown = GoStruct(
            SpecReplicasPath=scale.get("specReplicasPath") or "",
            StatusReplicasPath=scale.get("statusReplicasPath") or "",
            LabelSelectorPath=scale.get("labelSelectorPath"),
        )
    return GoStruct(Status=GoStruct() if value.get("status") is not None else None, Scale=shown)


def _column(value: Mapping[str, Any]) -> GoStruct:
    texts = {name: value.get(name.lower()) or "" for name in ("Name", "Type", "Format", "Description")}
    return GoStruct(**texts, Priority=value.get("priority") or 0, JSONPath=value.get("jsonPath") or "")


def validation_rule_struct(rule: Mapping[str, Any]) -> GoStruct:
    """A CEL rule as an error shows it."""
    return GoStruct(
        Rule=rule.get("rule") or "",
        Message=rule.get("message") or "",
        MessageExpression=rule.get("messageExpression") or "",
        Reason=rule.get("reason"),
        FieldPath=rule.get("fieldPath") or "",
        OptionalOldSelf=rule.get("optionalOldSelf"),
    )


# Name in Go, name in JSON, and what stands for an absent one; the order is that of the struct.
_FIELDS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("ID", "id", ""),
    ("Schema", "$schema", ""),
    ("Ref", "$ref", None),
    ("Description", "description", ""),
    ("Type", "type", ""),
    ("Nullable", "nullable", False),
    ("Format", "format", ""),
    ("Title", "title", ""),
    ("Default", "default", None),
    ("Maximum", "maximum", None),
    ("ExclusiveMaximum", "exclusiveMaximum", False),
    ("Minimum", "minimum", None),
    ("ExclusiveMinimum", "exclusiveMinimum", False),
    ("MaxLength", "maxLength", None),
    ("MinLength", "minLength", None),
    ("Pattern", "pattern", ""),
    ("MaxItems", "maxItems", None),
    ("MinItems", "minItems", None),
    ("UniqueItems", "uniqueItems", False),
    ("MultipleOf", "multipleOf", None),
    ("Enum", "enum", None),
    ("MaxProperties", "maxProperties", None),
    ("MinProperties", "minProperties", None),
    ("Required", "required", None),
    ("Items", "items", None),
    ("AllOf", "allOf", None),
    ("OneOf", "oneOf", None),
    ("AnyOf", "anyOf", None),
    ("Not", "not", None),
    ("Properties", "properties", None),
    ("AdditionalProperties", "additionalProperties", None),
    ("PatternProperties", "patternProperties", None),
    ("Dependencies", "dependencies", None),
    ("AdditionalItems", "additionalItems", None),
    ("Definitions", "definitions", None),
    ("ExternalDocs", "externalDocs", None),
    ("Example", "example", None),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", None),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", False),
    ("XIntOrString", "x-kubernetes-int-or-string", False),
    ("XListMapKeys", "x-kubernetes-list-map-keys", None),
    ("XListType", "x-kubernetes-list-type", None),
    ("XMapType", "x-kubernetes-map-type", None),
    ("XValidations", "x-kubernetes-validations", None),
)
_MAPS: Final = ("properties", "patternProperties", "definitions")
_LISTS: Final = ("allOf", "oneOf", "anyOf")


def schema_struct(schema: Mapping[str, Any]) -> GoStruct:
    """A schema as an error prints it."""
    return GoStruct((name, _member(key, schema.get(key), absent)) for name, key, absent in _FIELDS)


def set_fields(schema: Mapping[str, Any]) -> list[str]:
    """Go's names of the fields that a schema sets, in the order of the struct."""
    return [name for name, key, absent in _FIELDS if schema.get(key) not in (None, absent)]


def _member(key: str, value: Any, absent: Any) -> Any:
    if value is None:
        return absent
    if key in _MAPS:
        return {name: schema_struct(child) for name, child in value.items()}
    if key in _LISTS:
        return [schema_struct(child) for child in value]
    if key == "not":
        return schema_struct(value)
    if key == "items":
        many = isinstance(value, list)
        return GoStruct(
            Schema=None if many else schema_struct(value),
            JSONSchemas=[schema_struct(one) for one in value] if many else None,
        )
    if key in ("additionalProperties", "additionalItems"):
        if isinstance(value, bool):
            return GoStruct(Allows=value, Schema=None)
        return GoStruct(Allows=True, Schema=schema_struct(value))
    if key == "x-kubernetes-validations":
        return [validation_rule_struct(rule) for rule in value]
    if key == "externalDocs":
        return GoStruct(Description=value.get("description") or "", URL=value.get("url") or "")
    return value
