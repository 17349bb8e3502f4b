"""Validates the rules in the schema of a CRD when the CRD is written.

Rules must be well-formed, compile to the right type, use oldSelf only where old values can be correlated, and stay
below the limits of estimated cost, each alone and all together. It follows
k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/cel_validation.go. `definitions.validation` validates
everything else of the schema first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from kubewright.api.field_errors import FieldError
from kubewright.apiserver.apiextensions.cel_rule_programs import (
    RuleProgram,
    compile_rule,
    environments,
    type_of_node,
)
from kubewright.apiserver.apiextensions.definitions.openapi_schema import rule_errors
from kubewright.cel import CelType, Program
from kubewright.cel.schema_types import REQUEST_BYTES

__all__ = ("validate_rules",)

_RULE_LIMIT: Final = 10_000_000
_SCHEMA_LIMIT: Final = 100_000_000
_LARGEST: Final = 2**64 - 1
_ADVICE: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are"
    " declared)"
)


def validate_rules(schema: Mapping[str, Any], *, path: str) -> list[FieldError]:
    """The errors of all rules in a schema; `path` is the path of the schema in the CRD."""
    validator = _RuleValidator()
    syntax, rules = validator.node(_SchemaContext(schema, path, root=True, max_cardinality=1, uncorrelated=""))
    return [*syntax, *rules, *validator.total(path)]


@final
@dataclass(frozen=True, slots=True)
class _SchemaContext:
    """A schema node and what its parents mean for it (`CELSchemaContext`)."""

    schema: Mapping[str, Any]
    path: str
    root: bool
    max_cardinality: int | None
    """How many values of it an object can have; None if unbounded. The cost of a rule is multiplied by it."""
    uncorrelated: str
    """The path of a parent list whose items cannot be correlated with old ones; empty if there is none."""

    def inner(self, schema: Any, path: str, *, uncorrelated: str = "") -> _SchemaContext:
        """The context of an inner schema."""
        factor = _max_items(self.schema)
        max_cardinality = (
            None if self.max_cardinality is None or factor is None else min(self.max_cardinality * factor, _LARGEST)
        )
        return _SchemaContext(schema, f"{self.path}.{path}", False, max_cardinality, self.uncorrelated or uncorrelated)


def _max_items(schema: Mapping[str, Any]) -> int | None:
    """How many inner values a value of this schema can have; None if unbounded."""
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
class _RuleValidator:
    """Validates the rules of one schema and adds up their cost (`TotalCost`)."""

    cost: int = 0
    most_expensive: list[tuple[int, str]] = field(default_factory=list)

    def node(self, context: _SchemaContext) -> tuple[list[FieldError], list[FieldError]]:
        """The syntax errors of rules, and the errors of well-formed rules, here and below."""
        syntax: list[FieldError] = []
        rules: list[FieldError] = []
        for inner in _inner_contexts(context):
            found = self.node(inner)
            syntax += found[0]
            rules += found[1]
        given = context.schema.get("x-kubernetes-validations") or ()
        for number, rule in enumerate(given):
            syntax += rule_errors(rule, context.schema, f"{context.path}.x-kubernetes-validations[{number}]")
        if given and not syntax:
            rules += self._programs(context, given)
        return syntax, rules

    def _programs(self, context: _SchemaContext, given: list[Mapping[str, Any]]) -> Iterator[FieldError]:
        where = f"{context.path}.x-kubernetes-validations"
        embedded = bool(context.schema.get("x-kubernetes-embedded-resource"))
        kind = type_of_node(context.schema, root=context.root or embedded)
        if kind is None:
            why = "failed to construct type information for x-kubernetes-validations rules"
            reason = "unable to convert structural schema to CEL declarations"
            yield FieldError(where, "Internal", f"internal error: {why}: {reason}")
            return
        both = environments(kind)
        for number, rule in enumerate(given):
            program = compile_rule(rule, context.schema, both)
            yield from self._costs(context, kind, program, f"{where}[{number}]")
            yield from _compile_errors(program, rule, f"{where}[{number}]")
            yield from self._message_cost(program.message_program, f"{where}[{number}].messageExpression")
            yield from _old_self_errors(program, rule, context.uncorrelated, f"{where}[{number}]")

    def _costs(self, context: _SchemaContext, kind: CelType, rule: RuleProgram, path: str) -> Iterator[FieldError]:
        if rule.program is None:
            return
        least = kind.details.min_json_bytes if kind.details else 0
        times = REQUEST_BYTES // (least + 1) if context.max_cardinality is None else context.max_cardinality
        cost = min(rule.program.estimate() * times, _LARGEST)
        if cost > _RULE_LIMIT:
            yield FieldError(f"{path}.rule", "Forbidden", _cost_message("estimated rule cost", cost, _RULE_LIMIT))
        self._observe(f"{path}.rule", cost)

    def _message_cost(self, program: Program | None, path: str) -> Iterator[FieldError]:
        if program is None:
            return
        cost = program.estimate()
        if cost > _RULE_LIMIT:
            yield FieldError(path, "Forbidden", _cost_message("estimated messageExpression cost", cost, _RULE_LIMIT))
        self._observe(path, cost)

    def _observe(self, path: str, cost: int) -> None:
        self.cost = min(self.cost + cost, _LARGEST)
        if cost >= _SCHEMA_LIMIT // 100:
            self.most_expensive = sorted([*self.most_expensive, (cost, path)], key=lambda each: -each[0])[:4]

    def total(self, path: str) -> Iterator[FieldError]:
        """The errors if all rules together cost too much."""
        if self.cost <= _SCHEMA_LIMIT:
            return
        for _, expensive in self.most_expensive:
            detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield FieldError(expensive, "Forbidden", detail)
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield FieldError(path, "Forbidden", _cost_message(name, self.cost, _SCHEMA_LIMIT))


def _inner_contexts(context: _SchemaContext) -> Iterator[_SchemaContext]:
    schema = context.schema
    extra, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(extra, Mapping):
        yield context.inner(extra, "additionalProperties")
    for name, inner in (schema.get("properties") or {}).items():
        yield context.inner(inner, f"properties[{name}]")
    if isinstance(items, Mapping):
        keyed = schema.get("x-kubernetes-list-type") == "map"
        yield context.inner(items, "items", uncorrelated="" if keyed else context.path)


def _compile_errors(program: RuleProgram, rule: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    if program.error:
        yield FieldError(f"{path}.rule", "Invalid", f"{_go_json(rule)}: {program.error}")
    if program.message_error:
        yield FieldError(f"{path}.messageExpression", "Invalid", f"{_go_json(rule)}: {program.message_error}")


def _go_json(rule: Mapping[str, Any]) -> str:
    """A rule as Go marshals the internal struct: with Go's field names, and HTML characters escaped."""
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


def _old_self_errors(
    program: RuleProgram, rule: Mapping[str, Any], uncorrelated: str, path: str
) -> Iterator[FieldError]:
    if program.uses_old_self:
        if uncorrelated:
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
            yield FieldError(f"{path}.rule", "Invalid", detail, rule.get("rule", ""))
    elif rule.get("optionalOldSelf") is not None:
        detail = "may not be set if oldSelf is not used in rule"
        yield FieldError(f"{path}.optionalOldSelf", "Invalid", detail, rule["optionalOldSelf"])


def _cost_message(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {shown} {_ADVICE}"
