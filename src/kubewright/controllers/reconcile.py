"""The contract between the engine and your code: what a reconciler is told, and what it may answer.

    async def reconcile(cache: Cache, ctx: Context) -> Result | None: ...

Level-based: a reconciler is told which object, and why it was woken, but must look at the state of the world rather
than at the reasons. It may be called at any time, any number of times; called twice with nothing changed it writes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import msgspec

from kubewright.api.names import ObjectKey
from kubewright.errors import ConfigError

__all__ = ("Cause", "Result", "triggering_causes")


@final
class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What is to happen next; returning None means: nothing until something changes."""

    requeue_after: float | None = None
    """Run again after so many seconds, even if nothing changes. The back-off after errors starts over."""
    priority: int | None = None
    """The priority of that run; as this one if not given."""

    def __post_init__(self) -> None:
        # Said here, where the reconciler can be blamed: what the queue cannot reckon with would end the controller.
        if self.requeue_after is not None and not isinstance(self.requeue_after, int | float):
            raise ConfigError(
                f"Result(requeue_after={self.requeue_after!r}): give seconds as a number, as in requeue_after=30"
            )
        if self.priority is not None and not isinstance(self.priority, int):
            raise ConfigError(f"Result(priority={self.priority!r}): give a whole number; fresh changes have 0")


@final
class Cause(msgspec.Struct, frozen=True):
    """One reason why an object is looked at: `ConfigMap shop/web updated`."""

    source: str
    """The kind that changed, or the name of an external source."""
    what: str
    """added, updated, deleted, resync, requeue, retry, ..."""
    key: ObjectKey | None = None
    """Which object of that kind."""
    uncertain: bool = False
    """A deletion nobody saw, found by listing again after a gap: other kinds may not have been listed again yet."""

    def __str__(self) -> str:
        return f"{self.source} {self.key} {self.what}" if self.key is not None else f"{self.source} {self.what}"


def triggering_causes(causes: Iterable[object]) -> tuple[Cause, ...]:
    """Why an object runs now: not because it had planned to run later, where something else came first."""
    found = tuple(cause for cause in causes if isinstance(cause, Cause))
    return tuple(cause for cause in found if cause.what != "requeue") or found
