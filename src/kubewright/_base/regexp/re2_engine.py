"""RE2, the engine that Go's syntax comes from: its time is linear in the text, whatever the pattern.

The library is `google-re2`, which the extra `cluster` brings; nothing else imports it. Programs are kept in a cache of
their own, few and small, because each may grow while it runs: RE2 remembers states up to its memory budget and goes on
without when that is spent. `regexp` calls this.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import Any, Final, final

try:
    # The binding itself: the module around it takes three times as long for a short text, and keeps 128 programs.
    from re2 import _re2 as binding
except ModuleNotFoundError:
    binding = None

__all__ = ("BoundedWork", "available", "search")

_MEMORY: Final = 2 << 20
_PROGRAMS: Final = 32
"""Together with the above: at most 64 MiB."""
_MAX_WORK: Final = 1 << 26
"""Characters times program size: a second where RE2 cannot remember its states and has to follow all at once."""
_UNANCHORED: Final = None if binding is None else binding.RE2.Anchor.UNANCHORED
_work: Final = ContextVar[list[int] | None]("_work", default=None)


def available() -> bool:
    """Whether the library is installed."""
    return binding is not None


@final
class BoundedWork:
    """Bounds the work of all searches in the block together. Without it, each search has the whole budget."""

    __slots__ = ("_token", "_work")

    def __init__(self, work: int = _MAX_WORK) -> None:
        self._work = work

    def __enter__(self) -> None:
        self._token = _work.set([self._work])

    def __exit__(self, *_: object) -> None:
        _work.reset(self._token)


def search(pattern: str, text: bytes, start: int, *, steps: int) -> tuple[int, int] | None:
    """Where the first match from `start` on begins and ends, in bytes.

    OverflowError, with the reason, if the pattern is too large or the work would be too much.
    """
    budget = _work.get() or [_MAX_WORK]
    budget[0] -= (len(text) - start) * steps
    if budget[0] < 0:
        raise OverflowError(f"too much work in a text of {len(text)} bytes")
    (span,) = _program(pattern).Match(_UNANCHORED, text, start, len(text))
    return None if span[0] < 0 else span


@functools.lru_cache(maxsize=_PROGRAMS)
def _program(pattern: str) -> Any:
    options = binding.RE2.Options()
    options.max_mem = _MEMORY
    options.never_capture = True
    options.log_errors = False
    program = binding.RE2(pattern.encode(), options)
    if not program.ok():
        raise OverflowError("expression too large")
    return program
