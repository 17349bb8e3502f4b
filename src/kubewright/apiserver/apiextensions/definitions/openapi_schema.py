"""Validates the keywords of a CRD's OpenAPI schema: unsupported ones, list and map types, the texts of rules.

It is `ValidateCustomResourceDefinitionOpenAPISchema` of
k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go. `structural_schema` validates that
the schema is structural, `cel_rule_validation` compiles the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kubewright.api.field_errors import FieldError, bad_value, unsupported
from kubewright.apiserver.apiextensions.definitions.field_paths import InvalidPathError, resolve
from kubewright.apiserver.apiextensions.definitions.structural_schema import structural_conversion_error

__all__ = (
    "ListRules",
    "has_invalid_set_items",
    "has_unsupported_type",
    "keyword_errors",
    "list_map_errors",
    "schemas_in",
)

_Schema = Mapping[str, Any]
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_META: Final = ("metadata", "kind", "apiVersion")
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")


@dataclass(frozen=True, slots=True)
class ListRules:
    """Requirements that an update need not meet if the stored CRD does not."""

    types: bool = True
    atomic_sets: bool = True
    map_keys: bool = True


@dataclass(frozen=True, slots=True)
class _Context:
    """What the parents of a schema node mean for it."""

    rules: ListRules
    no_defaults: str = ""
    in_meta: bool = False


def keyword_errors(schema: _Schema, path: str, rules: ListRules) -> list[FieldError]:
    """The errors of a schema and all schemas in it."""
    found: list[FieldError] = []
    _node(schema, path, _Context(rules), found, root=True)
    return found


def schemas_in(schema: Any) -> Iterator[_Schema]:
    """A schema and all schemas in it."""
    if not isinstance(schema, Mapping):
        return
    yield schema
    for key in ("items", "additionalProperties", "not", "additionalItems"):
        child = schema.get(key)
        for one in child if isinstance(child, list) else (child,):
            yield from schemas_in(one)
    for key in ("allOf", "anyOf", "oneOf"):
        for one in schema.get(key) or ():
            yield from schemas_in(one)
    for key in ("properties", "patternProperties", "definitions"):
        for one in (schema.get(key) or {}).values():
            yield from schemas_in(one)


def has_unsupported_type(schema: _Schema) -> bool:
    """Whether a schema has an unsupported type."""
    return bool(schema.get("type")) and schema["type"] not in _TYPES


def _node(schema: _Schema, path: str, context: _Context, found: list[FieldError], *, root: bool = False) -> None:
    found.extend(_keywords(schema, path, context))
    others, properties = schema.get("additionalProperties"), schema.get("properties") or {}
    if others is not None:
        if properties and others is not True:
            text = "additionalProperties and properties are mutual exclusive"
            found.append(FieldError(f"{path}.additionalProperties", "Forbidden", text))
        if isinstance(others, Mapping):
            reason = "inside additionalProperties applying to object metadata"
            inner = replace(context, no_defaults=reason) if context.in_meta else context
            _node(others, f"{path}.additionalProperties", inner, found)
    for name, child in properties.items():
        inner = context
        if name in _META and (root or schema.get("x-kubernetes-embedded-resource")):
            inner = replace(inner, in_meta=True, no_defaults=f"in top-level {name}" if root else inner.no_defaults)
        _node(child, f"{path}.properties[{name}]", inner, found)
    _branches(schema, path, context, found)
    items = schema.get("items")
    for i, child in enumerate(items if isinstance(items, list) else ()):
        _node(child, f"{path}.items[{i}]", context, found)
    if isinstance(items, Mapping):
        _node(items, f"{path}.items", context, found)
    found.extend(_extensions(schema, path, context.rules))
    for i, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        found.extend(rule_errors(rule, schema, f"{path}.x-kubernetes-validations[{i}]"))


def _branches(schema: _Schema, path: str, context: _Context, found: list[FieldError]) -> None:
    if isinstance(schema.get("not"), Mapping):
        _node(schema["not"], f"{path}.not", context, found)
    for key in ("allOf", "oneOf", "anyOf"):
        for i, branch in enumerate(schema.get(key) or ()):
            _node(branch, f"{path}.{key}[{i}]", context, found)
    for name, child in (schema.get("definitions") or {}).items():
        _node(child, f"{path}.definitions[{name}]", context, found)


def _keywords(schema: _Schema, path: str, context: _Context) -> list[FieldError]:
    found: list[FieldError] = []
    if context.rules.types and has_unsupported_type(schema):
        found.append(unsupported(f"{path}.type", schema["type"], _TYPES))
    if schema.get("default") is not None and context.no_defaults:
        found.append(FieldError(f"{path}.default", "Forbidden", f"must not be set {context.no_defaults}"))
    for key in _UNSUPPORTED:
        value = schema.get(key)
        empty = value in ("", {}) if key in ("id", "patternProperties", "definitions") else False
        if value is not None and not empty:
            found.append(FieldError(f"{path}.{key}", "Forbidden", f"{key} is not supported"))
    if schema.get("type") == "null":
        text = "type cannot be set to null, use nullable as an alternative"
        found.append(FieldError(f"{path}.type", "Forbidden", text))
    if isinstance(schema.get("items"), list) and schema["items"]:
        found.append(FieldError(f"{path}.items", "Forbidden", "items must be a schema object and not an array"))
    if context.in_meta and schema.get("x-kubernetes-embedded-resource"):
        text = "must not be used inside of resource meta"
        found.append(FieldError(f"{path}.x-kubernetes-embedded-resource", "Forbidden", text))
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(FieldError(f"{path}.uniqueItems", "Forbidden", text))
    return found


def _extensions(schema: _Schema, path: str, rules: ListRules) -> list[FieldError]:
    found: list[FieldError] = []
    preserve = "x-kubernetes-preserve-unknown-fields"
    if schema.get(preserve) is False:
        found.append(bad_value(f"{path}.{preserve}", "Invalid", False, "must be true or undefined"))
    map_type, list_type = schema.get("x-kubernetes-map-type"), schema.get("x-kubernetes-list-type")
    if map_type is not None:
        found.extend(_required_type_errors(schema, "object", "x-kubernetes-map-type", path))
        if map_type not in ("atomic", "granular"):
            found.append(unsupported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular")))
    if list_type is not None:
        wrong = _required_type_errors(schema, "array", "x-kubernetes-list-type", path)
        found.extend(wrong or (_set_items(schema, path) if rules.atomic_sets else ()))
        if list_type not in ("atomic", "set", "map"):
            found.append(unsupported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map")))
    found.extend(_map_list(schema, path))
    if rules.map_keys:
        found.extend(list_map_errors(schema, path))
    return found


def _required_type_errors(schema: _Schema, wanted: str, extension: str, path: str) -> list[FieldError]:
    kind = schema.get("type") or ""
    if kind == wanted:
        return []
    text = f"must be {wanted} if {extension} is specified"
    return [bad_value(f"{path}.type", "Invalid", kind, text) if kind else FieldError(f"{path}.type", "Required", text)]


def has_invalid_set_items(schema: _Schema) -> bool:
    """Whether a list is a set of items that are not atomic."""
    return bool(_set_items(schema, ""))


def _set_items(schema: _Schema, path: str) -> list[FieldError]:
    items = schema.get("items")
    if schema.get("x-kubernetes-list-type") != "set" or not isinstance(items, Mapping):
        return []
    inner = items.get("x-kubernetes-list-type")
    text = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and inner not in (None, "atomic"):
        return [bad_value(f"{path}.items.x-kubernetes-list-type", "Invalid", inner, text)]
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        # kube-apiserver prints the list type here, whatever the map type is.
        return [bad_value(f"{path}.items.x-kubernetes-map-type", "Invalid", inner, text)]
    return []


def _map_list(schema: _Schema, path: str) -> list[FieldError]:
    kind, keys, items = (schema.get(name) for name in ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "items"))
    found: list[FieldError] = []
    if keys and kind != "map":
        here, text = f"{path}.x-kubernetes-list-type", "must be map if x-kubernetes-list-map-keys is non-empty"
        found.append(FieldError(here, "Required", text) if kind is None else bad_value(here, "Invalid", kind, text))
    if kind != "map":
        return found
    if not keys:
        text = "must not be empty if x-kubernetes-list-type is map"
        found.append(FieldError(f"{path}.x-kubernetes-list-map-keys", "Required", text))
    if items is None:
        found.append(FieldError(f"{path}.items", "Required", "must have a schema if x-kubernetes-list-type is map"))
    if isinstance(items, Mapping):
        found.extend(_map_items(keys or [], items, path))
    return found


def _map_items(keys: list[str], items: _Schema, path: str) -> list[FieldError]:
    if items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        return [bad_value(f"{path}.items.type", "Invalid", items.get("type") or "", text)]
    found: list[FieldError] = []
    here, properties = f"{path}.x-kubernetes-list-map-keys", items.get("properties") or {}
    for i, key in enumerate(keys):
        if key not in properties:
            found.append(bad_value(here, "Invalid", keys, "entries must all be names of item properties"))
        elif properties[key].get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            # kube-apiserver prints the type of the items, not that of the key.
            found.append(bad_value(f"{path}.items.properties[{key}].type", "Invalid", items["type"], text))
        if key in keys[:i]:
            found.append(bad_value(here, "Invalid", keys, "must not contain duplicate entries"))
    return found


def list_map_errors(schema: _Schema, path: str) -> list[FieldError]:
    """The errors of items of sets and maps, and of keys of maps, that may be null or absent."""
    kind, items = schema.get("x-kubernetes-list-type"), schema.get("items")
    if kind not in ("set", "map") or not isinstance(items, Mapping):
        return []
    found: list[FieldError] = []
    if items.get("nullable"):
        text = f"cannot be nullable when x-kubernetes-list-type is {kind}"
        found.append(FieldError(f"{path}.items.nullable", "Forbidden", text))
    for key in (schema.get("x-kubernetes-list-map-keys") or ()) if kind == "map" else ():
        child = (items.get("properties") or {}).get(key)
        if child is None:
            continue
        here, subject = f"{path}.items.properties[{key}]", "this property is in x-kubernetes-list-map-keys, so it"
        if key not in (items.get("required") or ()) and child.get("default") is None:
            text = f"{subject} must have a default or be a required property"
            found.append(FieldError(f"{here}.default", "Required", text))
        if child.get("nullable"):
            found.append(FieldError(f"{here}.nullable", "Forbidden", f"{subject} cannot be nullable"))
    return found


def rule_errors(rule: _Schema, schema: _Schema, path: str) -> list[FieldError]:
    """The errors of a rule that show without compiling it."""
    texts = {name: str(rule.get(name) or "") for name in ("rule", "message", "messageExpression", "fieldPath")}
    found = _rule_message(texts, path)
    if texts["messageExpression"] and not texts["messageExpression"].strip():
        text = "messageExpression must be non-empty if specified"
        found.append(FieldError(f"{path}.messageExpression", "Required", text))
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        found.append(unsupported(f"{path}.reason", rule["reason"], _REASONS))
    if field := texts["fieldPath"]:
        error: Callable[[str], FieldError] = lambda text: bad_value(f"{path}.fieldPath", "Invalid", field, text)  # noqa: E731
        if not field.strip():
            found.append(error("must be non-empty if specified"))
        if _has_line_breaks(field):
            found.append(error("must not contain line breaks"))
        if not _is_valid_path(field, schema):
            found.append(error("must be a valid path"))
    return found


def _rule_message(texts: Mapping[str, str], path: str) -> list[FieldError]:
    rule, message = texts["rule"].strip(), texts["message"].strip()
    here = f"{path}.message"
    if not rule:
        return [FieldError(f"{path}.rule", "Required", "rule is not specified")]
    if texts["message"] and not message:
        return [bad_value(here, "Invalid", texts["message"], "must be non-empty if specified")]
    if _has_line_breaks(message):
        return [bad_value(here, "Invalid", texts["message"], "must not contain line breaks")]
    if _has_line_breaks(rule) and not message:
        return [FieldError(here, "Required", "message must be specified if rule contains line breaks")]
    return []


def _has_line_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def _is_valid_path(path: str, schema: _Schema) -> bool:
    if structural_conversion_error(schema) is not None:
        return True
    try:
        resolve(path, schema)
    except InvalidPathError:
        return False
    return True
