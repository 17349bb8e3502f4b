"""Validates the expressions of webhook configurations and admission policies when they are written.

`builtin.validation.admission` calls it for each expression and validates the rest of these objects.
"""

from __future__ import annotations

from typing import final

from kubewright.api.field_errors import FieldError
from kubewright.apiserver.expressions.environment import Expression, Scope, compile_expression, variable_type
from kubewright.cel import BOOL, DYN, NULL, STRING, CelType

__all__ = ("PolicyExpressions", "condition_errors")


def condition_errors(path: str, text: str, *, params: bool) -> list[FieldError]:
    """The errors of one of the `matchConditions`."""
    return _errors(path, compile_expression(text, Scope(params=params).environment(), BOOL))


@final
class PolicyExpressions:
    """The expressions of one policy, in their order: each may use the variables before it."""

    def __init__(self, *, params: bool, composed: bool) -> None:
        self._params = params
        self._variables: dict[str, CelType] | None = {} if composed else None

    def variable(self, path: str, name: str, text: str) -> list[FieldError]:
        """The errors of a variable, which later expressions may use."""
        expression = compile_expression(text, Scope(params=self._params).environment(self._variables))
        assert self._variables is not None
        self._variables[name] = DYN if expression.program is None else variable_type(expression.program.type)
        return _errors(path, expression)

    def validation(self, path: str, text: str) -> list[FieldError]:
        """The errors of a validation."""
        return self._compile(path, text, BOOL)

    def message(self, path: str, text: str) -> list[FieldError]:
        """The errors of a messageExpression."""
        return self._compile(path, text, STRING, authorizer=False)

    def annotation(self, path: str, text: str) -> list[FieldError]:
        """The errors of the valueExpression of an audit annotation."""
        return self._compile(path, text, STRING, NULL)

    def _compile(self, path: str, text: str, *expected: CelType, authorizer: bool = True) -> list[FieldError]:
        scope = Scope(params=self._params, authorizer=authorizer)
        return _errors(path, compile_expression(text, scope.environment(self._variables), *expected))


def _errors(path: str, expression: Expression) -> list[FieldError]:
    return [FieldError(path, "Invalid", expression.problem, expression.text)] if expression.problem else []
