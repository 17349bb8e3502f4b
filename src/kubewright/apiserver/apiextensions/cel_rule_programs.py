"""Compiles one validation rule of a CRD: `rule`, `message`, `messageExpression`, `reason`, `fieldPath`.

Both `cel_rules`, which validates objects, and `cel_rule_validation`, which validates CRDs, call it. A compile error is
kept with the rule: the CRD's validation rejects it, and an object of a CRD stored before gets it as a field error. It
follows k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from kubewright.apiserver.apiextensions.definitions.field_paths import InvalidPathError, resolve
from kubewright.cel import BOOL, STRING, CelType, CompileError, Environment, Program, optional_of, type_of_schema

__all__ = ("RuleProgram", "compile_rule", "environments", "type_of_node")


@final
@dataclass(frozen=True, slots=True)
class RuleProgram:
    """A compiled rule, or its compile error."""

    program: Program | None
    error: str
    """Why there is no program; empty if the rule is empty."""
    message_program: Program | None
    message_error: str
    uses_old_self: bool
    optional_old_self: bool
    message: str
    """The message for an object that breaks the rule, unless messageExpression gives one."""
    text: str
    """The message or else the rule, for errors about the rule itself."""
    message_source: str
    reason: str
    field_path: str
    """The fieldPath as in field errors, such as `spec.ports[http]`; empty for the node itself."""


def type_of_node(schema: Mapping[str, Any], *, root: bool) -> CelType | None:
    """The type of `self` in the rules of a node."""
    return type_of_schema(schema, root=root, name="selfType0")


def environments(kind: CelType) -> tuple[Environment, Environment]:
    """The environments of the rules of a node: with oldSelf as a value, and as an optional."""
    return Environment({"self": kind, "oldSelf": kind}), Environment({"self": kind, "oldSelf": optional_of(kind)})


def compile_rule(
    rule: Mapping[str, Any], schema: Mapping[str, Any], both: tuple[Environment, Environment]
) -> RuleProgram:
    """Compile a rule of this schema node."""
    text = rule.get("rule", "")
    optional = bool(rule.get("optionalOldSelf"))
    environment = both[optional]
    message = rule.get("message", "")
    program, error = _compile(environment, text, BOOL, "", "cel expression must evaluate to a bool")
    expression = rule.get("messageExpression", "")
    message_program, message_error = None, ""
    if program is not None and expression:
        must = "messageExpression must evaluate to a string"
        message_program, message_error = _compile(environment, expression, STRING, "messageExpression ", must)
    shown = (message or text).strip()
    return RuleProgram(
        program=program,
        error=error,
        message_program=message_program,
        message_error=message_error,
        uses_old_self=program is not None and program.uses("oldSelf"),
        optional_old_self=optional,
        message=message.strip() if message else f"failed rule: {shown}",
        text=shown,
        message_source=expression,
        reason=rule.get("reason") or "",
        field_path=_field_path(rule.get("fieldPath", ""), schema),
    )


def _compile(
    environment: Environment, text: str, expect: CelType, prefix: str, otherwise: str
) -> tuple[Program | None, str]:
    if not text.strip():
        return None, ""
    try:
        program = environment.compile(text)
    except CompileError as error:
        if error.failure:
            failed = "instantiation failed" if prefix else "program instantiation failed"
            return None, f"{prefix}{failed}: {error.failure}"
        return None, f"{prefix}compilation failed: {error}"
    return (program, "") if program.type == expect else (None, otherwise)


def _field_path(path: str, schema: Mapping[str, Any]) -> str:
    """The text of a rule's fieldPath in field errors; empty for an invalid one, which the CRD's validation rejects."""
    try:
        return resolve(path, schema).text
    except InvalidPathError:
        return ""
