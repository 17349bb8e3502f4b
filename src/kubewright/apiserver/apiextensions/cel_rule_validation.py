"""What is wrong with the rules in a schema, found when a CustomResourceDefinition is written.

Rules must be well-formed, compile, give the right type, ask for old values only where they can be found, and not be
able to cost too much: each alone, and all together. The causes are the API server's, word for word. What else must
be right about a schema is checked elsewhere, and should be before this is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from kubewright.api.field_errors import FieldError, unsupported
from kubewright.apiserver.apiextensions.cel_rule_programs import (
    RuleProgram,
    compile_rule,
    environments,
    normal_path,
    type_of_node,
)
from kubewright.cel import REQUEST_BYTES, CelType, Program

__all__ = ("check_rules",)

_RULE_LIMIT: Final = 10_000_000
_SCHEMA_LIMIT: Final = 100_000_000
_LARGEST: Final = 2**64 - 1
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_NEWLINE: Final = re.compile(r"[\n\r]")
_ADVICE: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are"
    " declared)"
)


def check_rules(schema: Mapping[str, Any], *, path: str) -> list[FieldError]:
    """Everything wrong with the rules of a schema; `path` is where the schema stands in the definition."""
    check = _Check()
    shape, rules = check.node(_Place(schema, path, root=True, repeated=1, uncorrelated=""))
    return [*shape, *rules, *check.total(path)]


@final
@dataclass(frozen=True, slots=True)
class _Place:
    """A schema node, and what its surroundings mean for it."""

    schema: Mapping[str, Any]
    path: str
    root: bool
    repeated: int | None
    """How often a value of it can occur in an object at most; None if nothing bounds that."""
    uncorrelated: str
    """The list above whose items cannot be matched with old ones, if there is one."""

    def below(self, schema: Any, path: str, *, uncorrelated: str = "") -> _Place:
        """An inner schema."""
        factor = _factor(self.schema)
        repeated = None if self.repeated is None or factor is None else min(self.repeated * factor, _LARGEST)
        return _Place(schema, f"{self.path}.{path}", False, repeated, self.uncorrelated or uncorrelated)


def _factor(schema: Mapping[str, Any]) -> int | None:
    """By how much a schema multiplies what is in it; None if without bound."""
    kind = schema.get("type")
    if kind == "array":
        most = schema.get("maxItems")
    elif kind == "object" and schema.get("additionalProperties") not in (None, False):
        most = schema.get("maxProperties")
    else:
        return 1
    return None if most is None else max(most, 0)


@final
@dataclass
class _Check:
    """One definition's schema: the cost of all its rules so far."""

    cost: int = 0
    dearest: list[tuple[int, str]] = field(default_factory=list)

    def node(self, place: _Place) -> tuple[list[FieldError], list[FieldError]]:
        """Errors in the form of rules, and errors of rules that are well-formed, here and below."""
        shape: list[FieldError] = []
        rules: list[FieldError] = []
        for inner in _below(place):
            found = self.node(inner)
            shape += found[0]
            rules += found[1]
        written = place.schema.get("x-kubernetes-validations") or ()
        for number, rule in enumerate(written):
            shape += _form(rule, place.schema, f"{place.path}.x-kubernetes-validations[{number}]")
        if written and not shape:
            rules += self._programs(place, written)
        return shape, rules

    def _programs(self, place: _Place, written: list[Mapping[str, Any]]) -> Iterator[FieldError]:
        where = f"{place.path}.x-kubernetes-validations"
        embedded = bool(place.schema.get("x-kubernetes-embedded-resource"))
        kind = type_of_node(place.schema, root=place.root or embedded)
        if kind is None:
            why = "failed to construct type information for x-kubernetes-validations rules"
            reason = "unable to convert structural schema to CEL declarations"
            yield FieldError(where, "Internal", f"internal error: {why}: {reason}")
            return
        both = environments(kind)
        for number, rule in enumerate(written):
            program = compile_rule(rule, place.schema, both)
            yield from self._costs(place, kind, program, f"{where}[{number}]")
            yield from _problems(program, rule, f"{where}[{number}]")
            yield from self._message_cost(program.message_program, f"{where}[{number}].messageExpression")
            yield from _old_values(program, rule, place.uncorrelated, f"{where}[{number}]")

    def _costs(self, place: _Place, kind: CelType, rule: RuleProgram, path: str) -> Iterator[FieldError]:
        if rule.program is None:
            return
        least = kind.details.min_json_bytes if kind.details else 0
        times = REQUEST_BYTES // (least + 1) if place.repeated is None else place.repeated
        cost = min(rule.program.estimate() * times, _LARGEST)
        if cost > _RULE_LIMIT:
            yield FieldError(f"{path}.rule", "Forbidden", _too_dear("estimated rule cost", cost, _RULE_LIMIT))
        self._observe(f"{path}.rule", cost)

    def _message_cost(self, program: Program | None, path: str) -> Iterator[FieldError]:
        if program is None:
            return
        cost = program.estimate()
        if cost > _RULE_LIMIT:
            yield FieldError(path, "Forbidden", _too_dear("estimated messageExpression cost", cost, _RULE_LIMIT))
        self._observe(path, cost)

    def _observe(self, path: str, cost: int) -> None:
        self.cost = min(self.cost + cost, _LARGEST)
        if cost >= _SCHEMA_LIMIT // 100:
            self.dearest = sorted([*self.dearest, (cost, path)], key=lambda each: -each[0])[:4]

    def total(self, path: str) -> Iterator[FieldError]:
        """The errors of all rules together."""
        if self.cost <= _SCHEMA_LIMIT:
            return
        for _, dear in self.dearest:
            detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield FieldError(dear, "Forbidden", detail)
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield FieldError(path, "Forbidden", _too_dear(name, self.cost, _SCHEMA_LIMIT))


def _below(place: _Place) -> Iterator[_Place]:
    schema = place.schema
    extra, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(extra, Mapping):
        yield place.below(extra, "additionalProperties")
    for name, inner in (schema.get("properties") or {}).items():
        yield place.below(inner, f"properties[{name}]")
    if isinstance(items, Mapping):
        keyed = schema.get("x-kubernetes-list-type") == "map"
        yield place.below(items, "items", uncorrelated="" if keyed else place.path)


def _form(rule: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    text, message = rule.get("rule", ""), rule.get("message", "")
    expression, where = rule.get("messageExpression", ""), rule.get("fieldPath", "")
    if not text.strip():
        yield FieldError(f"{path}.rule", "Required", "rule is not specified")
    elif message and not message.strip():
        yield FieldError(f"{path}.message", "Invalid", "must be non-empty if specified", message)
    elif _NEWLINE.search(message.strip()):
        yield FieldError(f"{path}.message", "Invalid", "must not contain line breaks", message)
    elif _NEWLINE.search(text.strip()) and not message.strip():
        yield FieldError(f"{path}.message", "Required", "message must be specified if rule contains line breaks")
    if expression and not expression.strip():
        detail = "messageExpression must be non-empty if specified"
        yield FieldError(f"{path}.messageExpression", "Required", detail)
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        yield unsupported(f"{path}.reason", rule["reason"], _REASONS)
    if where and not where.strip():
        yield FieldError(f"{path}.fieldPath", "Invalid", "must be non-empty if specified", where)
    if _NEWLINE.search(where):
        yield FieldError(f"{path}.fieldPath", "Invalid", "must not contain line breaks", where)
    if where and normal_path(where, schema) is None:
        yield FieldError(f"{path}.fieldPath", "Invalid", "must be a valid path", where)


def _problems(program: RuleProgram, rule: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    if program.problem:
        yield FieldError(f"{path}.rule", "Invalid", f"{_as_go_shows(rule)}: {program.problem}")
    if program.message_problem:
        yield FieldError(f"{path}.messageExpression", "Invalid", f"{_as_go_shows(rule)}: {program.message_problem}")


def _as_go_shows(rule: Mapping[str, Any]) -> str:
    """A rule as the API server shows it: by the names of its own struct, and safe to put into a web page."""
    shown = {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return text.translate({ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def _old_values(program: RuleProgram, rule: Mapping[str, Any], uncorrelated: str, path: str) -> Iterator[FieldError]:
    if program.uses_old:
        if uncorrelated:
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
            yield FieldError(f"{path}.rule", "Invalid", detail, rule.get("rule", ""))
    elif rule.get("optionalOldSelf") is not None:
        detail = "may not be set if oldSelf is not used in rule"
        yield FieldError(f"{path}.optionalOldSelf", "Invalid", detail, rule["optionalOldSelf"])


def _too_dear(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {shown} {_ADVICE}"
