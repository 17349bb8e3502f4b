"""The CEL environment of admission: `matchConditions` of webhooks, and the expressions of admission policies.

A `Scope` says which variables an expression may use, an `Expression` is compiled or has its compile error, and a
`Budget` evaluates several expressions under one cost limit. Messages and limits are kube-apiserver's
(k8s.io/apiserver/pkg/admission/plugin/cel/compile.go, condition.go). Pure: `admission.request_values` makes the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, final

from kubewright.cel import DYN, NULL, CelType, CompileError, Environment, EvaluationError, Program, type_of_schema
from kubewright.cel.celtypes import Field, SchemaDetails
from kubewright.cel.environment import CALL_BUDGET
from kubewright.cel.library.authorization import AUTHORIZER, RESOURCE_CHECK

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
_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
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
    """The variables of an expression besides `object`, `oldObject`, `request` and `namespaceObject`."""

    params: bool = False
    authorizer: bool = True

    def environment(self, variables: Mapping[str, CelType] | None = None) -> Environment:
        """The environment with these variables and, for composed expressions, `variables`."""
        names = dict(_common_variables())
        if self.params:
            names["params"] = DYN
        if self.authorizer:
            names["authorizer"] = _authorizer_type()
        if variables is not None:
            fields = {name: Field(name, kind) for name, kind in variables.items()}
            names["variables"] = CelType("object", "kubernetes.variables", (), SchemaDetails(fields=fields))
        return Environment(names)


@cache
def _common_variables() -> Mapping[str, CelType]:
    request = _type(_REQUEST, "kubernetes.AdmissionRequest", options=Field("options", DYN))
    meta = _type(_NAMESPACE["properties"]["metadata"], "kubernetes.NamespaceMetadata")
    namespace = _type(_NAMESPACE, "kubernetes.Namespace", metadata=Field("metadata", meta))
    return {"object": DYN, "oldObject": DYN, "request": request, "namespaceObject": namespace}


def _type(schema: Mapping[str, Any], name: str, **others: Field) -> CelType:
    """The type of an object with unescaped field names: these types are declared in Go, where `namespace` is one."""
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
    """A compiled expression, or its compile error."""

    text: str
    program: Program | None
    problem: str = ""

    def error(self, failure: EvaluationError) -> str:
        """The message for an evaluation error."""
        return f"expression '{self.text}' resulted in error: {failure}"


def compile_expression(text: str, environment: Environment, *expected: CelType) -> Expression:
    """Compile an expression that must have one of the expected types, or any type if none is given."""
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
    """The type of a composed variable whose expression has this type: its value is a CEL value, not JSON."""
    if not kind.needs_conversion:
        return kind
    return DYN if kind.kind in ("object", "list", "map") else CelType(kind.kind, kind.name, kind.parameters)


@final
class OutOfBudget(Exception):
    """The cost budget is spent; no further expression is evaluated."""

    def __init__(self) -> None:
        super().__init__(_OUT_OF_BUDGET)


@final
class Budget:
    """The remaining cost budget of several expressions."""

    def __init__(self, left: int) -> None:
        self.left = left

    def run(self, expression: Expression, values: Mapping[str, Any]) -> tuple[Any, str]:
        """The value of an expression, or its error; raises `OutOfBudget`."""
        if expression.program is None:
            return None, f"compilation error: {expression.problem}"
        try:
            value, spent = expression.program.evaluate_with_cost(values, CALL_BUDGET)
        except EvaluationError as failure:
            self.charge(failure.spent)
            return None, expression.error(failure)
        self.charge(spent)
        return value, ""

    def charge(self, cost: int) -> None:
        """Subtract a cost from the budget."""
        if cost > self.left:
            raise OutOfBudget
        self.left -= cost


def conditions_hold(
    conditions: Iterable[Expression], values: Mapping[str, Any], budget: Budget, *, fails: bool
) -> tuple[bool, str]:
    """Whether all match conditions hold, and the error if that is unknown and the failure policy is Fail (`fails`).

    One condition that is false decides, whatever errors others have
    (k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go).
    """
    errors: list[str] = []
    try:
        results = [budget.run(condition, values) for condition in conditions]
    except OutOfBudget as exceeded:
        return False, str(exceeded) if fails else ""
    for value, error in results:
        if error:
            errors.append(error)
        elif value is False:
            return False, ""
    if errors and fails:
        return False, errors[0] if len(errors) == 1 else f"[{', '.join(dict.fromkeys(errors))}]"
    return not errors, ""
