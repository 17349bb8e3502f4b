"""The contract between the engine and your code: what a reconciler is told, and what it may answer.

    async def reconcile(cache: Cache, ctx: Context) -> Result | None: ...

Level-based: a reconciler is told which object, and what triggered it, but must look at the state of the world rather
than at the triggers. It may be called at any time, any number of times; called twice with nothing changed it writes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, final

import msgspec

from kubewright.api.names import ObjectKey
from kubewright.controllers.option_checks import check_delay
from kubewright.errors import ConfigError

__all__ = ("Cause", "Result", "triggering_causes")

T = TypeVar("T")


class _ResultMeta(msgspec.StructMeta):
    """Says what to write where a Result is made as in another framework."""

    def __call__(cls: type[T], *args: Any, **kwargs: Any) -> T:  # noqa: N805 - of a metaclass
        if args:
            raise ConfigError(f"Result({args[0]!r}) does not say what that is; write Result(requeue_after={args[0]!r})")
        for given in kwargs:
            if given not in ("requeue_after", "priority"):
                raise ConfigError(
                    f"Result({given}={kwargs[given]!r}): there is no such field; write Result(requeue_after=seconds), "
                    "with 0 for at once, or raise an error to be tried again with back-off"
                )
        return super().__call__(**kwargs)  # type: ignore[no-any-return, misc]  # msgspec's metaclass says nothing


@final
class Result(msgspec.Struct, frozen=True, kw_only=True, metaclass=_ResultMeta):
    """What happens next; returning None means: nothing until something changes."""

    requeue_after: float | None = None
    """Reconcile again after so many seconds, even if nothing changes; at once if 0 or less, as of a time that is past.

    The back-off after errors starts over.
    """
    priority: int | None = None
    """The priority of that reconcile; the same as of this one if not given."""

    def __post_init__(self) -> None:
        # Checked here, where the stack names the reconciler: in the queue a wrong type would end the controller.
        if self.requeue_after is not None:
            check_delay("Result", "requeue_after", self.requeue_after)
        if self.priority is not None and not isinstance(self.priority, int):
            raise ConfigError(f"Result(priority={self.priority!r}): give a whole number; fresh changes have 0")


@final
class Cause(msgspec.Struct, frozen=True):
    """One reason why an object is reconciled: `ConfigMap shop/web updated`."""

    source: str
    """The kind that changed, or the name of an external source."""
    event: str
    """added, updated, deleted, resync, requeue, retry, or what an external source says."""
    key: ObjectKey | None = None
    """Which object of that kind."""
    final_state_unknown: bool = False
    """A deletion that a relist found after a gap in the watch; other kinds may not have been relisted yet."""

    def __str__(self) -> str:
        return f"{self.source} {self.key} {self.event}" if self.key is not None else f"{self.source} {self.event}"


def triggering_causes(causes: Iterable[object]) -> tuple[Cause, ...]:
    """The causes of a queue item that explain the reconcile.

    A key that waits for its planned requeue and is enqueued earlier by a change carries both causes; the requeue is
    left out then.
    """
    found = tuple(cause for cause in causes if isinstance(cause, Cause))
    return tuple(cause for cause in found if cause.event != "requeue") or found
