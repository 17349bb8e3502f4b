"""CEL rules for markers that OpenAPI cannot express: an immutable value, exactly one of several fields.

They become `x-kubernetes-validations`, which the API server evaluates. Nothing is parsed or evaluated here.
`builder.builder` calls this.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kubewright.api.fields import Field, Rule
from kubewright.errors import SchemaError

__all__ = ("cel_name", "choice_rules", "enum_rule", "immutable_rule", "no_removal_rule", "rules_schema")

_KEYWORDS: Final = frozenset(
    (
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
    )
)
_ESCAPES: Final = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))

# Option of Field, how many of the fields must be set, and the message.
_CHOICES: Final = (
    ("one_of", "== 1", "exactly one of {} must be set"),
    ("at_most_one_of", "<= 1", "at most one of {} may be set"),
    ("at_least_one_of", ">= 1", "at least one of {} must be set"),
)


def rules_schema(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """Rules as `x-kubernetes-validations`."""
    names = {
        "rule": "rule",
        "message": "message",
        "message_expression": "messageExpression",
        "reason": "reason",
        "field_path": "fieldPath",
        "optional_old_self": "optionalOldSelf",
    }
    return [
        {wire: value for name, wire in names.items() if (value := getattr(rule, name)) is not None} for rule in rules
    ]


def immutable_rule(what: str) -> Rule:
    """The value cannot change."""
    return Rule(rule="self == oldSelf", message=f"{what} is immutable")


def no_removal_rule(wire_name: str) -> Rule:
    """The field cannot be removed. It stands on the object: a rule on the field is not evaluated when the field is
    gone.
    """
    name = cel_name(wire_name)
    return Rule(
        rule=f"!has(oldSelf.{name}) || has(self.{name})", message=f"{wire_name} is immutable and cannot be removed"
    )


def enum_rule(values: Sequence[Any]) -> Rule:
    """The value is one of these scalars."""
    values_text = ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
    return Rule(rule=f"self in [{values_text}]", message=f"must be one of {values_text}")


def choice_rules(
    marker: Field, schema: Mapping[str, Any], wire_names: Mapping[str, str], *, subject: str
) -> list[Rule]:
    """The rules for one_of, at_most_one_of, at_least_one_of; `wire_names` maps attributes to JSON names."""
    rules = []
    for option, count, words in _CHOICES:
        for group in getattr(marker, option):
            names = _choice(group, option, schema, wire_names, subject)
            present = ", ".join(f"has(self.{cel_name(name)})" for name in names)
            rules.append(Rule(rule=f"[{present}].filter(x, x).size() {count}", message=words.format(", ".join(names))))
    return rules


def cel_name(wire_name: str) -> str:
    """The CEL identifier of a field: keywords and special characters are escaped (apiserver: pkg/cel/escaping.go)."""
    if wire_name in _KEYWORDS:
        return f"__{wire_name}__"
    for text, escape in _ESCAPES:
        wire_name = wire_name.replace(text, escape)
    return wire_name


def _choice(
    group: Sequence[str] | str, option: str, schema: Mapping[str, Any], wire_names: Mapping[str, str], subject: str
) -> list[str]:
    """The JSON names of one set, each checked to be a field that can be absent."""
    if isinstance(group, str):
        raise SchemaError(f'{subject}: {option} takes sets of attributes; write {option}=[("a", "b")]')
    if len(group) < 2:
        raise SchemaError(
            f"{subject}: {option} needs at least two attributes to choose from; add one or drop the marker"
        )
    names = [wire_names.get(name, name) for name in group]
    for attribute, name in zip(group, names, strict=True):
        known = schema.get("properties", {})
        if name not in known:
            raise SchemaError(
                f"{subject}: {option} names {attribute}, which is no attribute; use {', '.join(wire_names)}"
            )
        if name in schema.get("required", ()) or "default" in known[name]:
            raise SchemaError(
                f"{subject}: {option} names {attribute}, which is always set; "
                f"make it optional without a default, as in {attribute}: T | None = None"
            )
    return names
