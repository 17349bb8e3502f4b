r"""Patterns: regular expressions as the API server reads them, which is RE2 and not Python's `re`.

The two differ at the edges: RE2 has no look-around and no back-references, Python has no `\p{L}` and no `[[:alpha:]]`.
`refusal` says why the server would refuse a pattern; `matches` answers only where both dialects agree.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ("matches", "refusal")

_PYTHON_ONLY: Final = (
    (re.compile(r"\(\?<?[=!]"), "look-around"),
    (re.compile(r"\(\?P=|\(\?\("), "back-references"),
    (re.compile(r"\(\?>|[*+?]\+|\{[0-9,]+\}\+"), "atomic groups and possessive quantifiers"),
)
_PYTHON_ESCAPES: Final = (
    (re.compile(r"\\[1-9]"), "back-references"),
    (re.compile(r"\\Z"), r"\Z (write \z or $)"),
)
_RE2_ONLY: Final = re.compile(r"\\[pPzQC]|\[\[:|\(\?[a-zA-Z]*U|\(\?<[a-zA-Z]")


def refusal(pattern: str) -> str | None:
    """Why the API server would refuse a pattern, or None."""
    escapes = pattern.replace(r"\\", "")  # an escaped backslash begins nothing
    # What is escaped or in a character class stands for itself.
    operators = re.sub(r"\[\^?\]?[^\]]*\]", "x", re.sub(r"\\.", "x", escapes))
    for text, forms in ((operators, _PYTHON_ONLY), (escapes, _PYTHON_ESCAPES)):
        for form, name in forms:
            if form.search(text):
                return f"RE2 has no {name}"
    if _RE2_ONLY.search(escapes):
        return None
    try:
        re.compile(pattern)
    except re.error as exc:
        return str(exc)
    return None


def matches(pattern: str, value: str) -> bool | None:
    """Whether a pattern matches somewhere in a value; None if only RE2 can tell."""
    if _RE2_ONLY.search(pattern):
        return None
    return re.search(pattern, value) is not None
