"""What can go wrong with an expression: it does not compile, or it has no value.

The wording is that of cel-go, because people search for it and Kubernetes hands it on to them. Positions are counted
in characters from the start of the text and become `line:column` when an error is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from kubewright.errors import DecodeError

__all__ = ("CelError", "CompileError", "CostExceeded", "EvaluationError", "Issue")

_SHOWN: int = 100
"""So many issues are told one by one."""
_LONGEST_LINE: int = 16384
"""A longer source line is not repeated in a message."""


class CelError(DecodeError):
    """An expression is wrong, or cannot be evaluated on these values.

    Normal for what users write. The message says where and what; correct the expression, or guard it with `has()`.
    """


@final
@dataclass(frozen=True, slots=True)
class Issue:
    """One thing wrong with an expression's text."""

    message: str
    at: int | None
    """The character it is about; None if it is about the whole."""


@final
class CompileError(CelError):
    """The text is no expression, names something undeclared, or its types do not fit."""

    def __init__(self, text: str, issues: Iterable[Issue], *, failure: str = "") -> None:
        self.issues = tuple(issues)
        self.failure = failure
        """Why a constant part of an expression that is right as such has no value, if that is what is wrong."""
        super().__init__(failure or _display(text, self.issues))


class EvaluationError(CelError):
    """The expression has no value here: a missing key, a division by zero, an overflow."""

    spent: int = 0
    """What the evaluation had cost when it failed."""


@final
class CostExceeded(EvaluationError):
    """Evaluation was given up: it cost more than it may."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def _display(text: str, issues: tuple[Issue, ...]) -> str:
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    placed = [(*_place(issue.at, starts), issue.message) for issue in issues[:_SHOWN]]
    placed.sort(key=lambda each: each[:2])
    shown = [_show(lines, line, column, message) for line, column, message in placed]
    if len(issues) > _SHOWN:
        shown.append(f"{len(issues) - _SHOWN} more errors were truncated")
    return "\n".join(shown)


def _place(at: int | None, starts: list[int]) -> tuple[int, int]:
    if at is None:
        return -1, -1
    line = next(number for number in range(len(starts) - 1, -1, -1) if starts[number] <= at)
    line = min(line, len(starts) - 2)
    return line + 1, at - starts[line]


def _show(lines: list[str], line: int, column: int, message: str) -> str:
    shown = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if line < 1 or len(lines[line - 1].encode()) > _LONGEST_LINE:
        return shown
    source = lines[line - 1].replace("\t", " ")
    # A wide dot under a wide character keeps the mark below what it points at.
    dots = "".join("\uff0e" if ord(char) > 127 else "." for char in source[:column])
    wide = column < len(source) and ord(source[column]) > 127
    mark = "\uff3e" if wide else "^"
    return f"{shown}\n | {source}\n | {dots}{mark}"
