"""CEL errors: an expression does not compile, or it has no value.

The messages are those of cel-go, because people search for them and Kubernetes passes them on. Positions are character
offsets from the start of the text and become `line:column` in messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from kubewright.errors import DecodeError

__all__ = ("CelError", "CompileError", "CostExceeded", "EvaluationError", "Issue")

_MAX_ISSUES: int = 100
"""How many issues a message lists one by one."""
_MAX_LINE_LENGTH: int = 16384
"""A longer source line is not repeated in a message."""
_MAX_SOURCE_LENGTH: int = 100_000
"""A longer message repeats no more source lines. The API server would repeat a hundred long ones for each rule."""


class CelError(DecodeError):
    """An expression is invalid, or cannot be evaluated on these values.

    Normal for what users write. The message says where and what; correct the expression, or guard it with `has()`.
    """


@final
@dataclass(frozen=True, slots=True)
class Issue:
    """One problem in an expression's text."""

    message: str
    at: int | None
    """The character offset; None if it is about the whole expression."""


@final
class CompileError(CelError):
    """The text is no expression, names something undeclared, or has a type error."""

    def __init__(self, text: str, issues: Iterable[Issue], *, failure: str = "") -> None:
        self.issues = tuple(issues)
        self.failure = failure
        """Why a constant part of an otherwise valid expression has no value."""
        super().__init__(failure or _format_issues(text, self.issues))


class EvaluationError(CelError):
    """The expression has no value here: a missing key, a division by zero, an overflow."""

    spent: int = 0
    """The cost of the evaluation until it failed."""


@final
class CostExceeded(EvaluationError):
    """The evaluation was stopped because it exceeded its cost limit."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def _format_issues(text: str, issues: tuple[Issue, ...]) -> str:
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    placed = [(*_line_and_column(issue.at, starts), issue.message) for issue in issues[:_MAX_ISSUES]]
    placed.sort(key=lambda each: each[:2])
    lines_shown: list[str] = []
    room = _MAX_SOURCE_LENGTH
    for number, column, message in placed:
        shown = _format_issue(lines, number, column, message, with_source=room > 0)
        room -= len(shown)
        lines_shown.append(shown)
    if len(issues) > _MAX_ISSUES:
        lines_shown.append(f"{len(issues) - _MAX_ISSUES} more errors were truncated")
    return "\n".join(lines_shown)


def _line_and_column(at: int | None, starts: list[int]) -> tuple[int, int]:
    if at is None:
        return -1, -1
    line = next(number for number in range(len(starts) - 1, -1, -1) if starts[number] <= at)
    line = min(line, len(starts) - 2)
    return line + 1, at - starts[line]


def _format_issue(lines: list[str], line: int, column: int, message: str, *, with_source: bool) -> str:
    if lines == [""]:
        return f"ERROR: <input>:{line}:{column}: {message}"  # an empty source has no column, and no line to show
    lines_shown = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if not with_source or line < 1 or len(lines[line - 1].encode()) > _MAX_LINE_LENGTH:
        return lines_shown
    source = lines[line - 1].replace("\t", " ")
    # A wide dot under a wide character keeps the caret below its character.
    dots = "".join("\uff0e" if ord(char) > 127 else "." for char in source[:column])
    wide = column < len(source) and ord(source[column]) > 127
    mark = "\uff3e" if wide else "^"
    return f"{lines_shown}\n | {source}\n | {dots}{mark}"
