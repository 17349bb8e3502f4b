"""The paths of the fields that a report names: `spec.parts[0].x`, no more of them than a client can use.

A path may be as long as the whole body, and there may be as many as it has fields, so a path is written only when it is
reported, and the report as a whole is bounded. `pruning` reports unknown fields with it, and so do the decoders of the
API server, duplicate ones too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

__all__ = ("ReportedPaths", "path_text")

_MAX_CHARACTERS: Final = 256 * 1024


def path_text(steps: Sequence[str | int]) -> str:
    """A path as Kubernetes writes it, from names of members and indices of items."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")


@final
class ReportedPaths:
    """Collects paths, each once, in the order they are added, until they are many or long."""

    __slots__ = ("_left", "_limit", "_paths")

    def __init__(self, *, limit: int | None = None) -> None:
        """`limit` is the number of paths; without one their length alone counts."""
        self._limit = limit
        self._left = _MAX_CHARACTERS
        self._paths: dict[str, None] = {}

    @property
    def is_full(self) -> bool:
        """Whether another path would be left out."""
        return self._left <= 0 or (self._limit is not None and len(self._paths) >= self._limit)

    def add(self, steps: Sequence[str | int]) -> None:
        """Report a path; one too many is left out."""
        if self.is_full:
            return
        path = path_text(steps)
        self._left -= len(path) + 1
        if self._left > 0 or not self._paths:
            self._paths[path] = None

    def paths(self) -> list[str]:
        """The paths."""
        return list(self._paths)
