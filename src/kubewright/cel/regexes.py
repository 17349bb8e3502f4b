"""Go's regular expressions in CEL: `matches`, `find` and `findAll`.

`_base.regexp` reads and runs them; here its errors become errors of the evaluation, and a pattern gets its cost.
"""

from __future__ import annotations

from math import ceil

from kubewright._base.regexp import Regexp, RegexpError, go_regexp
from kubewright.cel.errors import EvaluationError

__all__ = ("compiled", "find", "find_all", "matches", "pattern_cost")

_STEPS_PER_CHARACTER = 8
"""How much larger than its text a pattern may be when it is compiled until it costs more than on the API server."""


def compiled(pattern: str) -> Regexp:
    """The pattern ready to search with. Raises an EvaluationError in Go's words."""
    try:
        return go_regexp(pattern)
    except RegexpError as error:
        raise EvaluationError(str(error)) from None


def matches(text: str, pattern: str) -> bool:
    """`text.matches(pattern)`."""
    try:
        return go_regexp(pattern).match_string(text)
    except RegexpError as error:
        raise EvaluationError(str(error)) from None


def find(text: str, pattern: str) -> str:
    """`text.find(pattern)`."""
    try:
        return go_regexp(pattern).find_string(text)
    except RegexpError as error:
        raise EvaluationError(str(error)) from None


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """`text.findAll(pattern, limit)`."""
    try:
        return go_regexp(pattern).find_all_string(text, limit)
    except RegexpError as error:
        raise EvaluationError(str(error)) from None


def pattern_cost(pattern: str) -> int:
    r"""What a pattern costs for ten characters of text: a quarter of its length, as on the API server.

    A few characters can compile to a large program, `\pL{60}` to 70,000 steps. The API server does not see that; here
    such a pattern costs by its size.
    """
    try:
        steps = go_regexp(pattern).steps
    except RegexpError:
        steps = 0
    return ceil(max(len(pattern), steps / _STEPS_PER_CHARACTER) * 0.25)
