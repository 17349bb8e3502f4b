"""retry_on_conflict(): read, change and write again where somebody else wrote in between; client-go's RetryOnConflict.

    async def take() -> ConfigMap:
        counter = await client.get(ConfigMap, "counter", namespace="shop")   # read again at each try
        counter.data = {"n": str(int(counter.data["n"]) + 1)}
        return await client.update(counter)

    taken = await retry_on_conflict(take)

For programs, background tasks and webhooks. A reconciler does not need it: a Conflict ends its reconcile, and the next
one reads what the other wrote. It knows no client: whatever raises Conflict can be tried again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Final, TypeVar

from kubewright._base.backoff import exponential, jittered
from kubewright._base.clock import Clock, SystemClock
from kubewright.errors import ConfigError, Conflict

__all__ = ("retry_on_conflict",)

T = TypeVar("T")

_FIRST_WAIT: Final = 0.01
_JITTER: Final = 0.1
_JITTERS: Final = Random()


async def retry_on_conflict(
    function: Callable[[], Awaitable[T]], *, tries: int = 5, clock: Clock | None = None, rng: Random | None = None
) -> T:
    """Call an async function until it raises no Conflict, at most `tries` times; returns what it returns.

    It has to read the object itself, so that each try begins with what is there now. Between the tries it waits 10 ms,
    then twice as long each time. The Conflict of the last try is raised, and so is one that trying again cannot end: of
    an apply, when another field manager owns the fields.
    """
    if tries < 1:
        raise ConfigError(f"retry_on_conflict cannot try {tries} times; give at least 1")
    for attempt in range(tries):
        try:
            return await function()
        except Conflict as error:
            owned = any(cause.reason == "FieldManagerConflict" for cause in error.causes)
            if owned or attempt == tries - 1:
                raise
        await (clock or SystemClock()).sleep(jittered(exponential(_FIRST_WAIT, attempt), rng or _JITTERS, _JITTER))
    raise AssertionError("the last try returns or raises")
