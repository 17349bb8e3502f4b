"""Validates that a schema is structural: every node has a type, and allOf, anyOf, oneOf and not add no structure.

It follows k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go and complete.go; errors are sorted by their
message, as there. A schema with keywords that cannot be converted to a structural schema at all has a
`structural_conversion_error`. `kubewright.schema.builder.structural` checks the same for authors of classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubewright._base.regexp import RegexpError, go_regexp
from kubewright.api.field_errors import FieldError, bad_value

__all__ = ("structural_conversion_error", "structural_errors")

_Schema = Mapping[str, Any]
# Limits kube-apiserver does not have: what it costs to read and to compile all patterns, about half a second here.
_MAX_PATTERN_LENGTH: Final = 100_000
_MAX_PATTERN_STEPS: Final = 400_000
_WHERE: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_UNSUPPORTED: Final = (
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
)
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
# Keywords that do not validate values, so they are forbidden below allOf, anyOf, oneOf and not.
_FORBIDDEN: Final = (
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)


def structural_conversion_error(schema: _Schema) -> str | None:
    """Why this cannot be converted to a structural schema; None if it can."""
    for key, name in _UNSUPPORTED:
        if schema.get(key) or (key == "additionalItems" and schema.get(key) is not None):
            return f"OpenAPIV3Schema '{name}' is not supported"
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if isinstance(schema.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    children: list[Any] = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("not")]
    children += [schema.get("additionalProperties")]
    children += [branch for key in ("allOf", "anyOf", "oneOf") for branch in schema.get(key) or ()]
    errors = (structural_conversion_error(child) for child in children if isinstance(child, Mapping))
    return next((error for error in errors if error), None)


def structural_errors(schema: _Schema, path: str) -> list[FieldError]:
    """The errors of a schema that is not structural, sorted."""
    patterns = set(_patterns(schema))
    if sum(map(len, patterns)) > _MAX_PATTERN_LENGTH:
        text = f"the patterns of a schema must not have more than {_MAX_PATTERN_LENGTH} characters together"
        return [FieldError(path, "Forbidden", text)]
    found: list[FieldError] = []
    _node(schema, "root", path, found)
    if not found and sum(map(_steps, patterns)) > _MAX_PATTERN_STEPS:
        text = "the patterns of a schema are too large together; repeat less, or use smaller classes of characters"
        return [FieldError(path, "Forbidden", text)]
    _completeness(schema, schema, path, path, found)
    return sorted(found, key=lambda error: error.message)


def _patterns(schema: _Schema) -> Iterator[str]:
    """All patterns of a schema, those of its parts included."""
    left: list[Any] = [schema]
    while left:
        each = left.pop()
        if isinstance(each, Mapping):
            if isinstance(pattern := each.get("pattern"), str):
                yield pattern
            left += [each.get(key) for key in ("items", "not", "additionalProperties")]
            left += (each.get("properties") or {}).values()
            left += (branch for key in ("allOf", "anyOf", "oneOf") for branch in each.get(key) or ())


def _steps(pattern: str) -> int:
    try:
        return go_regexp(pattern).steps
    except RegexpError:
        return 0


def _node(schema: _Schema, level: str, path: str, found: list[FieldError]) -> None:
    items, others = schema.get("items"), schema.get("additionalProperties")
    if schema.get("type") == "array" and items is None:
        found.append(FieldError(f"{path}.items", "Required", "must be specified"))
    if isinstance(items, Mapping):
        _node(items, "item", f"{path}.items", found)
    for name, child in (schema.get("properties") or {}).items():
        _node(child, "field", f"{path}.properties[{name}]", found)
    if others is not None:
        if level == "root":
            found.append(FieldError(f"{path}.additionalProperties", "Forbidden", "must not be used at the root"))
        if isinstance(others, Mapping):
            _node(others, "field", f"{path}.additionalProperties", found)
    _extensions(schema, path, found)
    _value_validation(
        schema,
        path,
        found,
        any_of=not _is_int_or_string(schema.get("anyOf")),
        all_of=_begins_with_int_or_string(schema),
    )
    _own_type(schema, level, path, found)
    _metadata(schema, level, path, found)


def _extensions(schema: _Schema, path: str, found: list[FieldError]) -> None:
    if not schema.get("x-kubernetes-int-or-string"):
        return
    for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
        if schema.get(name):
            text = "must be false if x-kubernetes-int-or-string is true"
            found.append(bad_value(f"{path}.{name}", "Invalid", True, text))


def _own_type(schema: _Schema, level: str, path: str, found: list[FieldError]) -> None:
    kind, embedded = schema.get("type") or "", schema.get("x-kubernetes-embedded-resource")
    preserve = schema.get("x-kubernetes-preserve-unknown-fields")
    if embedded and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        error = (
            bad_value(f"{path}.type", "Invalid", kind, text) if kind else FieldError(f"{path}.type", "Required", text)
        )
        found.append(error)
    elif not kind and not schema.get("x-kubernetes-int-or-string") and not preserve:
        found.append(FieldError(f"{path}.type", "Required", _WHERE[level]))
    if embedded and schema.get("additionalProperties") is not None:
        text = "must not be used if x-kubernetes-embedded-resource is set"
        found.append(FieldError(f"{path}.additionalProperties", "Forbidden", text))
    if level == "root" and kind not in ("", "object"):
        found.append(bad_value(f"{path}.type", "Invalid", kind, "must be object at the root"))
    if embedded and not preserve and not schema.get("properties"):
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        found.append(FieldError(f"{path}.properties", "Required", text))


def _metadata(schema: _Schema, level: str, path: str, found: list[FieldError]) -> None:
    properties = schema.get("properties") or {}
    is_object = level == "root" or schema.get("x-kubernetes-embedded-resource")
    for name in ("kind", "apiVersion"):
        if is_object and name in properties and properties[name].get("type") != "string":
            kind = properties[name].get("type") or ""
            found.append(bad_value(f"{path}.properties[{name}].type", "Invalid", kind, "must be string"))
    if "metadata" not in properties:
        return
    metadata, here = properties["metadata"], f"{path}.properties[metadata]"
    if is_object and metadata.get("type") != "object":
        found.append(bad_value(f"{here}.type", "Invalid", metadata.get("type") or "", "must be object"))
    if level == "root" and not _only_names(metadata):
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        found.append(FieldError(here, "Forbidden", text))


def _only_names(metadata: _Schema) -> bool:
    given = {key for key, value in metadata.items() if value not in (None, "", False, [], {})}
    fields = set(metadata.get("properties") or ())
    return given <= {"type", "default", "properties", "example", "externalDocs"} and fields <= {"name", "generateName"}


def _is_int_or_string(branches: Any) -> bool:
    return bool(branches == _INT_OR_STRING)


def _begins_with_int_or_string(schema: _Schema) -> bool:
    branches = schema.get("allOf") or []
    return bool(branches) and _is_int_or_string(branches[0].get("anyOf"))


def _value_validation(schema: _Schema, path: str, found: list[FieldError], *, any_of: bool, all_of: bool) -> None:
    """Validate the value validations of a node; the idiom for x-kubernetes-int-or-string is allowed."""
    if any_of:
        for i, branch in enumerate(schema.get("anyOf") or ()):
            _nested_value_validation(branch, f"{path}.anyOf[{i}]", found)
    for i, branch in enumerate(schema.get("allOf") or ()):
        _nested_value_validation(branch, f"{path}.allOf[{i}]", found, any_of=not (all_of and i == 0))
    for i, branch in enumerate(schema.get("oneOf") or ()):
        _nested_value_validation(branch, f"{path}.oneOf[{i}]", found)
    if schema.get("not") is not None:
        _nested_value_validation(schema["not"], f"{path}.not", found)
    if pattern := schema.get("pattern"):
        try:
            go_regexp(pattern)
        except RegexpError as exc:
            text = f"must be a valid regular expression, but isn't: {exc}"
            found.append(bad_value(f"{path}.pattern", "Invalid", pattern, text))


def _nested_value_validation(schema: _Schema, path: str, found: list[FieldError], *, any_of: bool = True) -> None:
    _value_validation(schema, path, found, any_of=any_of, all_of=False)
    if isinstance(items := schema.get("items"), Mapping):
        _nested_value_validation(items, f"{path}.items", found)
    properties = schema.get("properties") or {}
    for name, child in properties.items():
        _nested_value_validation(child, f"{path}.properties[{name}]", found)
    if schema.get("additionalProperties"):
        found.append(FieldError(f"{path}.additionalProperties", "Forbidden", "must be undefined to be structural"))
    for key, text in _FORBIDDEN:
        if schema.get(key) or (key == "default" and schema.get(key) is not None):
            found.append(FieldError(f"{path}.{key}", "Forbidden", text))
    if "metadata" in properties:
        text = "must not be specified in a nested context"
        found.append(FieldError(f"{path}.properties[metadata]", "Forbidden", text))


def _completeness(values: _Schema, schema: _Schema, s_path: str, v_path: str, found: list[FieldError]) -> None:
    """Fields below allOf, anyOf, oneOf and not must be specified outside of them too."""
    if values.get("not") is not None:
        _nested_completeness(values["not"], schema, s_path, f"{v_path}.not", found)
    for key in ("allOf", "anyOf", "oneOf"):
        for i, branch in enumerate(values.get(key) or ()):
            _nested_completeness(branch, schema, s_path, f"{v_path}.{key}[{i}]", found)


def _nested_completeness(
    values: _Schema, schema: _Schema | None, s_path: str, v_path: str, found: list[FieldError]
) -> None:
    if schema is None:
        found.append(FieldError(s_path, "Required", f"because it is defined in {v_path}"))
        return
    _completeness(values, schema, s_path, v_path, found)
    if isinstance(items := values.get("items"), Mapping):
        _nested_completeness(items, schema.get("items"), f"{s_path}.items", f"{v_path}.items", found)
    properties = schema.get("properties") or {}
    for name, child in (values.get("properties") or {}).items():
        here, there = f"{s_path}.properties[{name}]", f"{v_path}.properties[{name}]"
        _nested_completeness(child, properties.get(name), here, there, found)
