"""References to variables in the command line and the environment of a container, and how long those may become.

`$(NAME)` is expanded as the kubelet does (third_party/forked/golang/expansion/expand.go): an unknown name stays, `$$`
becomes `$`. The limits are Linux's for the arguments of a program, which an expansion must not exceed either: each
variable can double the one before it. Pure; called by `programs` and by the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, final

__all__ = ("ARGUMENTS_LIMIT", "ARGUMENT_LIMIT", "ArgumentListTooLong", "bounded_substitution", "expand", "expand_all")

ARGUMENT_LIMIT: Final = 128 * 1024
"""MAX_ARG_STRLEN: bytes of one argument or variable."""
ARGUMENTS_LIMIT: Final = 2 * 1024 * 1024
"""ARG_MAX: bytes of all arguments and variables together."""
_REFERENCE: Final = re.compile(r"\$\$|\$\(([^()]+)\)")


@final
class ArgumentListTooLong(Exception):
    """E2BIG."""

    def __init__(self) -> None:
        super().__init__("argument list too long")


def expand(text: str, environment: Mapping[str, str], *, limit: int = ARGUMENT_LIMIT) -> str:
    """Expand `$(NAME)`; raises `ArgumentListTooLong` before the result exceeds the limit."""
    if "$" not in text:
        return _within(text, limit)
    return bounded_substitution(
        _REFERENCE, lambda found: "$" if found[0] == "$$" else environment.get(found[1], found[0]), text, limit=limit
    )


def bounded_substitution(
    pattern: re.Pattern[str], value: Callable[[re.Match[str]], str], text: str, *, limit: int = ARGUMENT_LIMIT
) -> str:
    """As `pattern.sub(value, text)`; raises `ArgumentListTooLong` before the result exceeds the limit."""
    parts: list[str] = []
    size = at = 0
    for found in pattern.finditer(text):
        put = value(found)
        parts += (text[at : found.start()], put)
        size += found.start() - at + len(put)
        at = found.end()
        if size > limit:
            raise ArgumentListTooLong
    parts.append(text[at:])
    return _within("".join(parts), limit)


def expand_all(words: Iterable[str], expand_word: Callable[[str], str]) -> list[str]:
    """All words, each expanded; raises `ArgumentListTooLong` before they exceed what a program may be given."""
    expanded: list[str] = []
    size = 0
    for word in words:
        expanded.append(expand_word(word))
        size += len(expanded[-1])
        if size > ARGUMENTS_LIMIT:
            raise ArgumentListTooLong
    return expanded


def _within(text: str, limit: int) -> str:
    if len(text) > limit:
        raise ArgumentListTooLong
    return text
