"""Expressions of admission: what `matchConditions` of webhooks and all of a policy may name, and how they are run.

`Scope` is what an expression may name, `Expression` one that is compiled or says why it is not, `Budget` runs
several under one budget. Wording and limits are the API server's. Pure: the values come from `admission_values`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, final

from kubewright.cel import (
    AUTHORIZER,
    CALL_BUDGET,
    DYN,
    NULL,
    RESOURCE_CHECK,
    CelType,
    CompileError,
    Environment,
    EvaluationError,
    Program,
    type_of_schema,
)
from kubewright.cel.celtypes import Field, SchemaDetails

__all__ = (
    "CONDITIONS_BUDGET",
    "Budget",
    "Expression",
    "OutOfBudget",
    "Scope",
    "compile_expression",
    "conditions_hold",
    "variable_type",
)

CONDITIONS_BUDGET: Final = 2_500_000
_BROKE: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_TEXT: Final[dict[str, Any]] = {"type": "string"}
_KIND: Final[dict[str, Any]] = {"type": "object", "properties": {"group": _TEXT, "version": _TEXT, "kind": _TEXT}}
_RESOURCE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"group": _TEXT, "version": _TEXT, "resource": _TEXT},
}
_TEXTS: Final[dict[str, Any]] = {"type": "array", "items": _TEXT}
_USER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "username": _TEXT,
        "uid": _TEXT,
        "groups": _TEXTS,
        "extra": {"type": "object", "additionalProperties": _TEXTS},
    },
}
_REQUEST: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "kind": _KIND,
        "resource": _RESOURCE,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        **dict.fromkeys(("subResource", "requestSubResource", "name", "namespace", "operation"), _TEXT),
        "userInfo": _USER,
        "dryRun": {"type": "boolean"},
    },
}
_LABELS: Final[dict[str, Any]] = {"type": "object", "additionalProperties": _TEXT}
_TIME: Final[dict[str, Any]] = {"type": "string", "format": "date-time"}
_NAMESPACE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "metadata": {
            "type": "object",
            "properties": {
                **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), _TEXT),
                "labels": _LABELS,
                "annotations": _LABELS,
                "creationTimestamp": _TIME,
                "deletionTimestamp": _TIME,
                "deletionGracePeriodSeconds": {"type": "integer"},
                "generation": {"type": "integer"},
                "finalizers": _TEXTS,
            },
        },
        "spec": {"type": "object", "properties": {"finalizers": _TEXTS}},
        "status": {
            "type": "object",
            "properties": {
                "phase": _TEXT,
                "conditions": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            **dict.fromkeys(("status", "type", "message", "reason"), _TEXT),
                            "lastTransitionTime": _TIME,
                        },
                    },
                },
            },
        },
    },
}


@final
@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression may name besides `object`, `oldObject`, `request` and `namespaceObject`."""

    params: bool = False
    authorizer: bool = True

    def environment(self, variables: Mapping[str, CelType] | None = None) -> Environment:
        """What it may name, with the types."""
        names = dict(_general())
        if self.params:
            names["params"] = DYN
        if self.authorizer:
            names["authorizer"] = _authorizer_type()
        if variables is not None:
            fields = {name: Field(name, kind) for name, kind in variables.items()}
            names["variables"] = CelType("object", "kubernetes.variables", (), SchemaDetails(fields=fields))
        return Environment(names)


@cache
def _general() -> Mapping[str, CelType]:
    request = _type(_REQUEST, "kubernetes.AdmissionRequest", options=Field("options", DYN))
    meta = _type(_NAMESPACE["properties"]["metadata"], "kubernetes.NamespaceMetadata")
    namespace = _type(_NAMESPACE, "kubernetes.Namespace", metadata=Field("metadata", meta))
    return {"object": DYN, "oldObject": DYN, "request": request, "namespaceObject": namespace}


def _type(schema: Mapping[str, Any], name: str, **others: Field) -> CelType:
    """The type of an object with its fields by their own names: here `namespace`, a word of the language, is one."""
    kind = type_of_schema(schema, name=name)
    if kind is None or kind.details is None:
        raise ValueError(f"the schema of {name} describes no object")
    fields = {field.json: field for field in (kind.details.fields or {}).values()}
    return replace(kind, details=replace(kind.details, fields={**fields, **others}))


@cache
def _authorizer_type() -> CelType:
    fields = {"requestResource": Field("requestResource", RESOURCE_CHECK)}
    return CelType(AUTHORIZER.kind, AUTHORIZER.name, (), SchemaDetails(fields=fields))


@final
@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that can be run, or why it cannot."""

    text: str
    program: Program | None
    problem: str = ""

    def error(self, failure: EvaluationError) -> str:
        """What is said when it has no value."""
        return f"expression '{self.text}' resulted in error: {failure}"


def compile_expression(text: str, environment: Environment, *expected: CelType) -> Expression:
    """Compile one; nothing expected takes any type."""
    try:
        program = environment.compile(text)
    except CompileError as error:
        if error.failure:
            return Expression(text, None, f"program instantiation failed: {error.failure}")
        return Expression(text, None, f"compilation failed: {error}")
    if not expected or program.type in expected:
        return Expression(text, program)
    if len(expected) == 1:
        return Expression(text, None, f"must evaluate to {expected[0]} but got {program.type}")
    kinds = " ".join("null_type" if kind == NULL else str(kind) for kind in expected)
    return Expression(text, None, f"must evaluate to one of [{kinds}] but got {program.type}")


def variable_type(kind: CelType) -> CelType:
    """The type of a variable whose expression has this type: its value is no longer JSON that must be read."""
    if not kind.needs_conversion:
        return kind
    return DYN if kind.kind in ("object", "list", "map") else CelType(kind.kind, kind.name, kind.parameters)


@final
class OutOfBudget(Exception):
    """What the expressions may cost together is spent; nothing more is run."""

    def __init__(self) -> None:
        super().__init__(_BROKE)


@final
class Budget:
    """What several expressions may still cost together."""

    def __init__(self, left: int) -> None:
        self.left = left

    def run(self, expression: Expression, values: Mapping[str, Any]) -> tuple[Any, str]:
        """The value, or why there is none; raises `OutOfBudget`."""
        if expression.program is None:
            return None, f"compilation error: {expression.problem}"
        try:
            value, spent = expression.program.evaluate_with_cost(values, CALL_BUDGET)
        except EvaluationError as failure:
            self.pay(failure.spent)
            return None, expression.error(failure)
        self.pay(spent)
        return value, ""

    def pay(self, cost: int) -> None:
        """Count what something cost."""
        if cost > self.left:
            raise OutOfBudget
        self.left -= cost


def conditions_hold(
    conditions: Iterable[Expression], values: Mapping[str, Any], budget: Budget, *, fails: bool
) -> tuple[bool, str]:
    """Whether all match conditions hold, and what is wrong if that is not known and must be.

    One that does not hold settles it, whatever is wrong with others. `fails` is the failure policy.
    """
    errors: list[str] = []
    try:
        results = [budget.run(condition, values) for condition in conditions]
    except OutOfBudget as broke:
        return False, str(broke) if fails else ""
    for value, error in results:
        if error:
            errors.append(error)
        elif value is False:
            return False, ""
    if errors and fails:
        return False, errors[0] if len(errors) == 1 else f"[{', '.join(dict.fromkeys(errors))}]"
    return not errors, ""
