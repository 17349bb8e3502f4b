"""A ValidatingAdmissionPolicy, compiled, and its evaluation on one write.

A variable is evaluated once, when an expression first needs it. All expressions of an evaluation share a cost budget.
The result are decisions; `plugin` does with them what the bindings say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from kubewright.apiserver.expressions.environment import (
    CONDITIONS_BUDGET,
    Budget,
    Expression,
    OutOfBudget,
    Scope,
    compile_expression,
    conditions_hold,
    variable_type,
)
from kubewright.cel import BOOL, DYN, NULL, STRING, CelType, EvaluationError
from kubewright.cel.environment import CALL_BUDGET

__all__ = ("Decision", "Outcome", "PolicyProgram", "compile_policy")

_BUDGET: Final = 10_000_000
_LONGEST_MESSAGE: Final = 5 * 1024


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """A validation that failed, or could not be evaluated; `index` is its position in the policy."""

    index: int
    message: str
    reason: str = ""


@final
@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an evaluation."""

    denied: tuple[Decision, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    errors: tuple[str, ...] = ()
    """Errors of audit annotations, which deny the write whatever the binding says."""


@final
@dataclass(frozen=True, slots=True)
class _Validation:
    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


@final
@dataclass(frozen=True, slots=True)
class PolicyProgram:
    """The expressions of a policy."""

    fails_closed: bool
    conditions: tuple[Expression, ...]
    variables: Mapping[str, Expression]
    validations: tuple[_Validation, ...]
    annotations: tuple[tuple[str, Expression], ...]

    def run(self, values: Mapping[str, Any]) -> Outcome:
        """Evaluate everything on a write. `values` are the variables of the language, `authorizer` included."""
        holds, error = self._conditions(values)
        if error:
            return Outcome((Decision(0, error),))
        if not holds:
            return Outcome()
        budget = Budget(_BUDGET)
        names = {**values, "variables": _Variables(self.variables, values, budget)}
        try:
            results = [budget.run(item.expression, names) for item in self.validations]
        except OutOfBudget as exhausted:
            return self._failed(str(exhausted))
        plain = {name: value for name, value in names.items() if name != "authorizer"}
        denied = []
        for index, ((value, error), item) in enumerate(zip(results, self.validations, strict=True)):
            if error:
                if self.fails_closed:
                    denied.append(Decision(index, error))
            elif value is not True:
                denied.append(self._denied(index, item, plain, budget))
        return self._with_annotations(tuple(denied), plain)

    def _conditions(self, values: Mapping[str, Any]) -> tuple[bool, str]:
        if not self.conditions:
            return True, ""
        budget = Budget(CONDITIONS_BUDGET)
        names = {**values, "variables": _Variables(self.variables, values, budget)}
        return conditions_hold(self.conditions, names, budget, fails=self.fails_closed)

    def _failed(self, text: str) -> Outcome:
        return Outcome((Decision(0, text),)) if self.fails_closed else Outcome()

    def _denied(self, index: int, item: _Validation, values: Mapping[str, Any], budget: Budget) -> Decision:
        text = ""
        if item.message_expression is not None:
            try:
                value, _ = budget.run(item.message_expression, values)
            except OutOfBudget as exhausted:
                return Decision(index, f"failed messageExpression: {exhausted}")
            text = value.strip() if isinstance(value, str) else ""
            if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE:
                text = ""
        text = text or item.message.strip() or f"failed expression: {item.expression.text.strip()}"
        return Decision(index, text, item.reason or "Invalid")

    def _with_annotations(self, denied: tuple[Decision, ...], values: Mapping[str, Any]) -> Outcome:
        budget = Budget(_BUDGET)
        found, errors = [], []
        try:
            for key, expression in self.annotations:
                value, error = budget.run(expression, values)
                if error and self.fails_closed:
                    errors.append(error)
                elif isinstance(value, str) and value.strip():
                    found.append((key, value.strip()))
        except OutOfBudget as exhausted:
            return self._failed(str(exhausted))
        return Outcome(denied, tuple(found), tuple(errors))


@final
class _Variables:
    """The variable `variables`, whose fields are evaluated on demand."""

    def __init__(self, expressions: Mapping[str, Expression], values: Mapping[str, Any], budget: Budget) -> None:
        self._expressions = expressions
        self._values = {**values, "variables": self}
        self._budget = budget
        self._known: dict[str, Any] = {}

    def get(self, name: str, otherwise: object = None) -> Any:
        """The value of a variable; EvaluationError if it has none."""
        if name not in self._known:
            expression = self._expressions[name]
            if expression.program is None:
                raise EvaluationError(f'composited variable "{name}" fails to compile: {expression.problem}')
            try:
                value, spent = expression.program.evaluate_with_cost(self._values, CALL_BUDGET)
            except EvaluationError as error:
                self._budget.charge(error.spent)
                raise EvaluationError(f'composited variable "{name}" fails to evaluate: {error}') from None
            self._budget.charge(spent)
            self._known[name] = value
        return self._known[name]


def compile_policy(spec: Mapping[str, Any]) -> PolicyProgram:
    """Compile the spec of a policy. An expression that does not compile fails when it is evaluated."""
    scope = Scope(params=spec.get("paramKind") is not None)
    types: dict[str, CelType] = {}
    variables: dict[str, Expression] = {}
    for item in spec.get("variables") or ():
        expression = compile_expression(item["expression"], scope.environment(types))
        variables[item["name"]] = expression
        types[item["name"]] = DYN if expression.program is None else variable_type(expression.program.type)
    environment = scope.environment(types)
    messages = Scope(params=scope.params, authorizer=False).environment(types)
    return PolicyProgram(
        fails_closed=spec.get("failurePolicy") != "Ignore",
        conditions=tuple(
            compile_expression(item["expression"], environment, BOOL) for item in spec.get("matchConditions") or ()
        ),
        variables=variables,
        validations=tuple(
            _Validation(
                expression=compile_expression(item["expression"], environment, BOOL),
                message=item.get("message") or "",
                message_expression=compile_expression(item["messageExpression"], messages, STRING)
                if item.get("messageExpression")
                else None,
                reason=item.get("reason") or "",
            )
            for item in spec.get("validations") or ()
        ),
        annotations=tuple(
            (item["key"], compile_expression(item["valueExpression"], environment, STRING, NULL))
            for item in spec.get("auditAnnotations") or ()
        ),
    )
