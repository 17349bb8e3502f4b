"""One rule of a CustomResourceDefinition, compiled: `rule`, `message`, `messageExpression`, `reason`, `fieldPath`.

Both who checks objects (`rules`) and who checks definitions (`rule_checks`) start here. What is wrong with a rule is
kept with it, in the API server's words, because a definition is refused for it while an object must not crash on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from kubewright.cel import BOOL, STRING, CelType, CompileError, Environment, Program, optional_of, type_of_schema

__all__ = ("RuleProgram", "compile_rule", "environments", "normal_path", "type_of_node")

_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]']+")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPED: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"
}  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class RuleProgram:
    """A rule ready to run, or why it is not."""

    program: Program | None
    problem: str
    """Why there is no program; empty too if the rule is."""
    message_program: Program | None
    message_problem: str
    uses_old: bool
    optional_old: bool
    message: str
    """What is said when the rule does not hold and nothing else is to be said."""
    shown: str
    """The rule, or its message, for errors about the rule itself."""
    message_source: str
    reason: str
    field_path: str
    """Relative and in the form of field errors, such as `spec.ports[http]`; empty for the node itself."""


def type_of_node(schema: Mapping[str, Any], *, root: bool) -> CelType | None:
    """The type of `self` in the rules of a node."""
    return type_of_schema(schema, root=root, name="selfType0")


def environments(kind: CelType) -> tuple[Environment, Environment]:
    """What rules may name: with the old value as it is, and as an optional."""
    return Environment({"self": kind, "oldSelf": kind}), Environment({"self": kind, "oldSelf": optional_of(kind)})


def compile_rule(
    rule: Mapping[str, Any], schema: Mapping[str, Any], both: tuple[Environment, Environment]
) -> RuleProgram:
    """Compile a rule of this schema node."""
    text = rule.get("rule", "")
    optional = bool(rule.get("optionalOldSelf"))
    environment = both[optional]
    message = rule.get("message", "")
    program, problem = _compiled(environment, text, BOOL, "", "cel expression must evaluate to a bool")
    expression = rule.get("messageExpression", "")
    message_program, message_problem = None, ""
    if program is not None and expression:
        must = "messageExpression must evaluate to a string"
        message_program, message_problem = _compiled(environment, expression, STRING, "messageExpression ", must)
    shown = (message or text).strip()
    return RuleProgram(
        program=program,
        problem=problem,
        message_program=message_program,
        message_problem=message_problem,
        uses_old=program is not None and program.uses("oldSelf"),
        optional_old=optional,
        message=message.strip() if message else f"failed rule: {shown}",
        shown=shown,
        message_source=expression,
        reason=rule.get("reason") or "",
        field_path=normal_path(rule.get("fieldPath", ""), schema) or "",
    )


def _compiled(
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


def normal_path(path: str, schema: Mapping[str, Any]) -> str | None:
    """A rule's `fieldPath` as field errors write it; None if it leads nowhere in the schema."""
    shown = ""
    tokens = iter(_TOKEN.findall(path))
    if "".join(_TOKEN.findall(path)) != path:
        return None
    for mark in tokens:
        name = next(tokens, "")
        if mark == "[":
            if len(name) < 2 or name[0] != "'" or next(tokens, "") != "]":
                return None
            unescaped = _unescaped(name[1:-1])
            if unescaped is None:
                return None
            name = unescaped
        elif mark != ".":
            return None
        if schema.get("properties"):
            shown += f".{name}" if shown else name
            inner = schema["properties"].get(name)
        else:
            shown += f"[{name}]"
            inner = schema.get("additionalProperties")
        if not isinstance(inner, Mapping):
            return None
        schema = inner
    return shown


def _unescaped(text: str) -> str | None:
    if any(match.group(1) not in _UNESCAPED for match in _ESCAPE.finditer(text)):
        return None
    return _ESCAPE.sub(lambda match: _UNESCAPED[match.group(1)], text)
