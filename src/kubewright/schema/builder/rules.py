"""Rules: CEL expressions that stand for a marker, for what OpenAPI alone cannot say.

An immutable value, exactly one of several fields: the API server checks them as `x-kubernetes-validations`. Nothing is
parsed or evaluated here. Called by `schema.builder`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kubewright.api.fields import Field, Rule
from kubewright.errors import SchemaError

__all__ = ("any_of", "cel_name", "choices", "kept_once_set", "unchanged", "written")

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

# Option of Field, how many of the fields must be there, and how to say it.
_CHOICES: Final = (
    ("one_of", "== 1", "exactly one of {} must be set"),
    ("at_most_one_of", "<= 1", "at most one of {} may be set"),
    ("at_least_one_of", ">= 1", "at least one of {} must be set"),
)


def written(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """Rules as the schema has them."""
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


def unchanged(what: str) -> Rule:
    """The value stays what it was."""
    return Rule(rule="self == oldSelf", message=f"{what} is immutable")


def kept_once_set(wire_name: str) -> Rule:
    """The field of this object is not removed again: a rule on the field itself is not asked when the field is gone."""
    name = cel_name(wire_name)
    return Rule(
        rule=f"!has(oldSelf.{name}) || has(self.{name})", message=f"{wire_name} is immutable and cannot be removed"
    )


def any_of(values: Sequence[Any]) -> Rule:
    """The value is one of these scalars."""
    shown = ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
    return Rule(rule=f"self in [{shown}]", message=f"must be one of {shown}")


def choices(marker: Field, schema: Mapping[str, Any], wire_names: Mapping[str, str], *, subject: str) -> list[Rule]:
    """The rules for one_of and its kin; `wire_names` maps the attributes of the object to their names on the wire."""
    rules = []
    for option, count, words in _CHOICES:
        for group in getattr(marker, option):
            names = _choice(group, option, schema, wire_names, subject)
            present = ", ".join(f"has(self.{cel_name(name)})" for name in names)
            rules.append(Rule(rule=f"[{present}].filter(x, x).size() {count}", message=words.format(", ".join(names))))
    return rules


def cel_name(wire_name: str) -> str:
    """How CEL spells a field: some names would be operators or keywords there."""
    if wire_name in _KEYWORDS:
        return f"__{wire_name}__"
    for text, escape in _ESCAPES:
        wire_name = wire_name.replace(text, escape)
    return wire_name


def _choice(
    group: Sequence[str] | str, option: str, schema: Mapping[str, Any], wire_names: Mapping[str, str], subject: str
) -> list[str]:
    """The wire names of one set, each checked to be a field that can be absent."""
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
