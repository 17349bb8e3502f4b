"""Many writes at once, without flooding a server that says no.

Where one pod is refused, by a quota for example, the next five hundred will be refused too. So one is tried first, then
two, then four: a failure costs one call, success costs hardly any time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, NamedTuple

from kubewright.errors import KubewrightError

BURST: Final = 500
"""How many pods one reconcile creates or deletes at most; the rest is left to the next."""


class Done(NamedTuple):
    """What came of many writes."""

    succeeded: int
    """How many succeeded."""
    errors: tuple[KubewrightError, ...] = ()
    """What the others failed with."""


async def slow_start(count: int, write: Callable[[], Awaitable[object]]) -> Done:
    """Call `write` so many times, in batches of 1, 2, 4 and so on; after a batch with a failure no further one."""
    done = 0
    for size in batches(count):
        succeeded, errors = await at_once(write() for _ in range(size))
        done += succeeded
        if errors:
            return Done(done, errors)
    return Done(done)


def batches(count: int) -> Iterator[int]:
    """The sizes of the batches for so many calls: 1, 2, 4, ..., and what is left."""
    size = 1
    while count > 0:
        yield min(size, count)
        count -= size
        size *= 2


async def at_once(writes: Iterable[Awaitable[object]]) -> Done:
    """Wait for all of them together. Only errors of the API are counted; a bug is raised."""
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    errors: list[KubewrightError] = []
    for outcome in outcomes:
        if isinstance(outcome, KubewrightError):
            errors.append(outcome)
        elif isinstance(outcome, BaseException):
            raise outcome
    return Done(len(outcomes) - len(errors), tuple(errors))
