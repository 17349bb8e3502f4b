"""The rules of structural schemas, checked before a server sees the schema.

The API server rejects the same schemas, one error at a time and in terms of JSON (apiextensions-apiserver:
pkg/apiserver/schema/validation.go and pkg/apis/apiextensions/validation); here the message names the attribute and what
to do. `check` takes any schema: made from a class, or read from a file. The types and costs of CEL rules are not
checked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from kubewright._base.regexp import RegexpError, go_regexp
from kubewright.errors import SchemaError
from kubewright.schema.builder.node import Schema, subject_of
from kubewright.schema.builder.values import schema_violation, type_of

__all__ = ("check", "check_root")

_Violations: TypeAlias = Iterator[tuple[str, str]]
"""The rule that is broken, and what to do."""

_TYPES: Final = ("object", "array", "string", "integer", "number", "boolean")
_SCALARS: Final = ("string", "integer", "number", "boolean", "int-or-string")
_NUMERIC: Final = ("integer", "number", "int-or-string")
_TEXT: Final = ("string", "int-or-string")

# Keyword, the types it is valid for, and the option of Field that makes it.
_BOUNDS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    ("minimum", _NUMERIC, "ge or gt"),
    ("maximum", _NUMERIC, "le or lt"),
    ("multipleOf", _NUMERIC, "multiple_of"),
    ("minLength", _TEXT, "min_length"),
    ("maxLength", _TEXT, "max_length"),
    ("pattern", _TEXT, "pattern"),
    ("minItems", ("array",), "min_items"),
    ("maxItems", ("array",), "max_items"),
    ("minProperties", ("object",), "min_properties"),
    ("maxProperties", ("object",), "max_properties"),
)
_RANGES: Final = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)
_FORMATS: Final = frozenset(
    (
        "bsonobjectid",
        "byte",
        "cidr",
        "creditcard",
        "date",
        "date-time",
        "datetime",
        "duration",
        "email",
        "hexcolor",
        "hostname",
        "ipv4",
        "ipv6",
        "isbn",
        "isbn10",
        "isbn13",
        "k8s-long-name",
        "k8s-short-name",
        "mac",
        "password",
        "rgbcolor",
        "ssn",
        "uri",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
    )
)
_REASONS: Final = ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
_AT_ROOT: Final = frozenset(
    (
        "description",
        "example",
        "externalDocs",
        "properties",
        "required",
        "title",
        "type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    )
)
_CEL_STRING: Final = re.compile(r"""r?("(\\.|[^"\\])*"|'(\\.|[^'\\])*')""")


def check(schema: Schema, *, name: str = "schema") -> None:
    """Raise a SchemaError for the first rule a schema breaks.

    `name` begins the path of a schema that was not made from a class.
    """
    _walk(schema, subject_of(schema, name), correlated=True)


def check_root(schema: Schema, *, name: str = "schema") -> None:
    """Raise for a keyword that is valid in a schema but not at the top of a kind."""
    for keyword in schema:
        if keyword not in _AT_ROOT:
            subject = subject_of(schema, name)
            raise SchemaError(
                f"{subject}: {keyword} is not allowed at the top of a kind; use a rule, or put it on the spec"
            )


def _walk(schema: Schema, subject: str, *, correlated: bool) -> None:
    for rules in (_type, _bounds, _values, _list, _map, _extensions):
        for rule, advice in rules(schema):
            raise SchemaError(f"{subject}: {rule}; {advice}")
    for rule, advice in _validations(schema, correlated=correlated):
        raise SchemaError(f"{subject}: {rule}; {advice}")
    for name, child in schema.get("properties", {}).items():
        _walk(child, subject_of(child, f"{subject}.{name}"), correlated=correlated)
    if isinstance(child := schema.get("additionalProperties"), dict):
        _walk(child, subject_of(child, f"{subject}[*]"), correlated=correlated)
    if isinstance(child := schema.get("items"), dict):
        # The server finds the old value of an item by its list map keys; an item without keys has no oldSelf.
        keyed = correlated and schema.get("x-kubernetes-list-type") == "map"
        _walk(child, subject_of(child, f"{subject}[]"), correlated=keyed)


def _type(schema: Schema) -> _Violations:
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        if kind:
            yield "an int-or-string has no type of its own", "drop the type"
    elif not kind and not schema.get("x-kubernetes-preserve-unknown-fields"):
        yield "it has no type", "give it one, or use preserve_unknown_fields=True"
    elif kind and kind not in _TYPES:
        yield f"{kind} is no type", f"use one of {', '.join(_TYPES)}"
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield "a list needs the type of its items", "annotate it as list[...]"
    for keyword, wanted in (("items", "array"), ("properties", "object"), ("additionalProperties", "object")):
        if keyword in schema and kind != wanted:
            yield f"{keyword} belongs to type {wanted}, not {kind}", f"drop it or make the type {wanted}"
    if schema.get("properties") and "additionalProperties" in schema:
        yield "an object has either named fields or free keys, not both", "move the free keys into a field of their own"
    format_name = schema.get("format")
    if kind == "string" and format_name is not None and format_name not in _FORMATS:
        yield f"the server does not know the format {format_name} and would ignore it", "use a pattern or a rule"


def _bounds(schema: Schema) -> _Violations:
    kind = type_of(schema)
    for keyword, kinds, option in _BOUNDS:
        if keyword in schema and kind not in kinds:
            yield f"{option} does not apply to {_a(kind)}", f"use it on {_a(' or '.join(kinds))}, or drop it"
    for low, high in _RANGES:
        if low in schema and high in schema and schema[low] > schema[high]:
            yield f"{low} {schema[low]} is above {high} {schema[high]}", "swap them"
    for keyword, _, option in _BOUNDS:
        if keyword.startswith(("min", "max")) and not keyword.endswith("imum") and schema.get(keyword, 0) < 0:
            yield f"{option} is negative", "use 0 or more"
    if schema.get("multipleOf", 1) <= 0:
        yield "multiple_of must be above zero", "change it"
    if kind == "integer":
        for keyword in ("minimum", "maximum", "multipleOf"):
            if isinstance(value := schema.get(keyword), float) and not value.is_integer():
                yield f"{keyword} {value} of an integer is no integer", "round it"
    if (pattern := schema.get("pattern")) is not None:
        try:
            go_regexp(pattern)
        except RegexpError as error:
            yield f"the server cannot read the pattern {pattern} ({error})", "rewrite it in RE2 syntax"


def _values(schema: Schema) -> _Violations:
    if "enum" in schema:
        values = schema["enum"]
        if not values:
            yield "the enum is empty", "name at least one value"
        if any(value in values[:i] for i, value in enumerate(values)):
            yield "the enum names a value twice", "drop one"
        if schema.get("nullable"):
            yield "the server rejects null wherever there is an enum", "use a rule such as self in ['a', 'b']"
        for value in values:
            if problem := schema_violation(value, schema):
                yield f"the enum violates its own schema: {problem}", "change the type or the value"
    if "default" in schema and (problem := schema_violation(schema["default"], schema)):
        yield (
            f"the default violates its own schema: {problem}",
            "change the default, or use None and T | None for an attribute that may be absent",
        )


def _list(schema: Schema) -> _Violations:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    if schema.get("uniqueItems"):
        yield (
            "the server rejects unique_items, because it is costly to check",
            'use list_type="set" for scalars or list_type="map"',
        )
    if kind is None and keys is None:
        return
    if schema.get("type") != "array":
        yield f"list_type and list_map_keys do not apply to {_a(type_of(schema))}", "put them on a list"
    if kind not in (None, "atomic", "set", "map"):
        yield f"{kind} is no list type", "use atomic, set or map"
    if kind != "map" and keys is not None:
        yield "list_map_keys identify the items of a map list", 'add list_type="map" or drop them'
    items = schema.get("items", {})
    if kind in ("set", "map") and items.get("nullable"):
        yield f"an item of a {kind} list cannot be null", "drop None from the items"
    if kind == "set" and not _is_atomic(items):
        yield "a set holds scalars", 'use list_type="map" with keys, or list_type="atomic"'
    if kind == "map":
        yield from _list_keys(keys, items)


def _list_keys(keys: list[str] | None, items: Schema) -> _Violations:
    if not keys:
        yield "a map list needs keys that identify its items", 'add list_map_keys=("name",)'
        return
    if items.get("type") != "object":
        yield f"a map list holds objects, not {_a(type_of(items))}", 'use list_type="set" or "atomic"'
        return
    if len(set(keys)) != len(keys):
        yield "list_map_keys names a key twice", "drop one"
    properties = items.get("properties", {})
    for key in keys:
        if key not in properties:
            yield f"list_map_keys names {key}, which the items do not have", f"use {', '.join(properties) or 'a Model'}"
        elif type_of(properties[key]) not in _SCALARS:
            yield f"the list key {key} is {_a(type_of(properties[key]))}", "use a key that is a scalar"
        elif properties[key].get("nullable"):
            yield f"the list key {key} can be null", "drop None from its annotation"
        elif key not in items.get("required", ()) and "default" not in properties[key]:
            yield f"the list key {key} can be absent", "make it required or give it a default"


def _is_atomic(items: Schema) -> bool:
    kind = type_of(items)
    return kind in _SCALARS or (
        items.get("x-kubernetes-list-type", "atomic" if kind == "array" else None) == "atomic"
        or items.get("x-kubernetes-map-type") == "atomic"
    )


def _map(schema: Schema) -> _Violations:
    kind = schema.get("x-kubernetes-map-type")
    if kind is None:
        return
    if schema.get("type") != "object":
        yield f"map_type does not apply to {_a(type_of(schema))}", "put it on a dict or a model"
    if kind not in ("granular", "atomic"):
        yield f"{kind} is no map type", "use granular or atomic"


def _extensions(schema: Schema) -> _Violations:
    embedded = schema.get("x-kubernetes-embedded-resource")
    preserved = schema.get("x-kubernetes-preserve-unknown-fields")
    if schema.get("x-kubernetes-int-or-string") and (embedded or preserved):
        yield (
            "an int-or-string cannot be an object or preserve unknown fields",
            "drop embedded_object and preserve_unknown_fields",
        )
    if preserved and schema.get("type") not in (None, "object"):
        yield f"preserve_unknown_fields does not apply to {_a(type_of(schema))}", "put it on an object, or on the items"
    if embedded and schema.get("type") != "object":
        yield f"embedded_object does not apply to {_a(type_of(schema))}", "put it on dict[str, Any] or a model"
    if embedded and "additionalProperties" in schema:
        yield "an embedded object has fields, not free keys", "use dict[str, Any]"


def _validations(schema: Schema, *, correlated: bool) -> _Violations:
    for rule in schema.get("x-kubernetes-validations", ()):
        text, message = rule.get("rule", ""), rule.get("message")
        if not text.strip():
            yield "a rule is empty", "write an expression or drop it"
        if message is not None and not message.strip():
            yield f"the message of the rule {text} is empty", "write a sentence or drop it"
        if message is not None and "\n" in message.strip():
            yield f"the message of the rule {text} has several lines", "write it in one"
        if message is None and "\n" in text.strip():
            yield "a rule of several lines needs a message", "add message="
        if rule.get("messageExpression") is not None and not rule["messageExpression"].strip():
            yield f"the message_expression of the rule {text} is empty", "write an expression or drop it"
        if rule.get("reason") not in (None, *_REASONS):
            yield f"{rule['reason']} is no reason", f"use one of {', '.join(_REASONS)}"
        if rule.get("fieldPath") is not None and not rule["fieldPath"].startswith((".", "[")):
            yield f"the field_path {rule['fieldPath']} is no path", f"write it as .{rule['fieldPath']}"
        yield from _transition(rule, correlated=correlated)


def _transition(rule: Mapping[str, Any], *, correlated: bool) -> _Violations:
    uses_old = re.search(r"\boldSelf\b", _CEL_STRING.sub("", rule.get("rule", ""))) is not None
    if rule.get("optionalOldSelf") is not None and not uses_old:
        yield f"optional_old_self is set but the rule {rule['rule']} has no oldSelf", "drop it"
    if uses_old and not correlated:
        yield (
            "a rule with oldSelf (or immutable) needs items that the server can correlate with the old ones",
            'give the list around it list_type="map" with list_map_keys, or put the rule on the whole list',
        )


def _a(kind: str) -> str:
    """A type with its article."""
    if not kind:
        return "a value without a type"
    return f"an {kind}" if kind[0] in "aio" else f"a {kind}"
