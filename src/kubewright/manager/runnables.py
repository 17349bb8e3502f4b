"""What runs in a process, and in which order it starts and stops.

    1 servers    health and metrics: they answer before anything else may fail
    2 webhooks   before the caches: a list of a kind with several versions needs the conversion webhook
    3 caches     the next group starts when they are in sync
    4 others     everything that does not need to lead
    5 leaders    controllers, once this process leads

Stopping is the reverse, within one grace period, in which a runnable gets to finish what it has begun. Each is a
supervised task; the first that fails, or ends although it should not, is raised by `wait_failure`. The manager owns
one `Runnables` and decides when the leaders may start.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import Any, Protocol, final, runtime_checkable

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger
from kubewright._base.tasks import Tasks, cancel_and_wait, wait_for_end
from kubewright.errors import ConfigError, KubewrightError

__all__ = ("Function", "Group", "Readied", "Runnable", "Runnables", "Stoppable", "group_of")

_LAST_SECONDS = 1.0
"""After the grace period, how long a cancelled task has to obey before it is named and left."""

_log = Logger("kubewright.manager")


class Group(IntEnum):
    """In the order of starting."""

    SERVERS = 1
    WEBHOOKS = 2
    CACHES = 3
    OTHERS = 4
    LEADERS = 5


class Runnable(Protocol):
    """Something that works until it is cancelled.

    It may also say `needs_leader = False` (without it, it runs only where this process leads), `group`, or
    `may_end = True` if returning is fine, and have the methods of `Readied` and `Stoppable`. Cancelled, it may finish
    what it has begun; cancelled a second time, it ends.
    """

    @property
    def name(self) -> str: ...

    async def run(self) -> None: ...


@runtime_checkable
class Readied(Protocol):
    """A runnable that others wait for: the next group starts when it is ready."""

    async def wait_ready(self) -> None: ...


@runtime_checkable
class Stoppable(Protocol):
    """A runnable that is asked to end before it is cancelled; its `run` then returns when all is done."""

    def stop(self) -> None: ...


@final
class Function:
    """A plain function as a runnable. It may end."""

    may_end = True

    def __init__(self, function: Callable[[], Awaitable[None]], *, name: str = "", needs_leader: bool = True) -> None:
        self.name = name or getattr(function, "__qualname__", type(function).__name__)
        self.needs_leader = needs_leader
        self._function = function

    async def run(self) -> None:
        answer = self._function()
        if not inspect.isawaitable(answer):
            raise ConfigError(f"the runnable {self.name} is a plain function; make it async, for it shares the loop")
        await answer


def group_of(runnable: Runnable) -> Group:
    """Where a runnable belongs: where it says, else by whether it needs to lead; who says nothing does."""
    said = getattr(runnable, "group", None)
    if isinstance(said, Group):
        return said
    return Group.LEADERS if getattr(runnable, "needs_leader", True) else Group.OTHERS


@final
class Runnables:
    """The runnables of one manager."""

    def __init__(self, *, owner: str = "manager", grace: float = 30.0, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._grace = grace
        self._owner = owner
        self._members: dict[Group, list[Runnable]] = {group: [] for group in Group}
        self._tasks: dict[Runnable, asyncio.Task[Any]] = {}
        self._supervised = Tasks(owner, clock=self._clock)
        self._started: set[Group] = set()
        self._stopping = False
        self._ends = math.inf

    def add(self, runnable: Runnable, *, group: Group | None = None) -> None:
        """Run it with its group, at once if that runs already. Refused while stopping."""
        if self._stopping:
            raise KubewrightError(f"{self._owner} is stopping, so {runnable.name} cannot be added any more")
        if any(runnable is member for members in self._members.values() for member in members):
            raise ConfigError(f"{runnable.name} has been added to {self._owner} already; add each runnable once")
        group = group or group_of(runnable)
        self._members[group].append(runnable)
        if group in self._started:
            self._start(runnable)

    def members(self, group: Group) -> tuple[Runnable, ...]:
        return tuple(self._members[group])

    def running(self) -> dict[str, float]:
        """The names of what runs, and for how many seconds."""
        return self._supervised.running()

    async def start(self, group: Group) -> None:
        """Start a group, and wait until those of its members that others rely on are ready.

        Raises the failure of any member meanwhile, rather than wait for ever.
        """
        self._started.add(group)
        for runnable in self._members[group]:
            self._start(runnable)
        await self._wait_ready([member for member in self._members[group] if isinstance(member, Readied)])

    @property
    def failure(self) -> BaseException | None:
        """The first failure of a runnable, if there was one."""
        return self._supervised.failure

    async def wait_failure(self) -> None:
        """Wait until a runnable fails, and raise its error."""
        await self._supervised.wait_failure()

    def begin_stop(self) -> None:
        """Take nothing more, and let the grace period run from now on."""
        if not self._stopping:
            self._stopping = True
            self._ends = self._clock.monotonic() + self._grace

    async def stop(self, group: Group, *, seconds: float | None = None) -> tuple[str, ...]:
        """Stop one group: ask or cancel, wait, and when the time is over cancel again. Names who is left even then.

        The time is what is left of the grace period, or `seconds` if that is less.
        """
        self._started.discard(group)
        tasks = {member: self._tasks[member] for member in self._members[group] if member in self._tasks}
        running = {member: task for member, task in tasks.items() if not task.done()}
        self._supervised.expect_end(*running.values())
        for member, task in running.items():
            if isinstance(member, Stoppable):
                member.stop()
            else:
                task.cancel()
        left_of_grace = max(0.0, self._ends - self._clock.monotonic())
        limit = left_of_grace if seconds is None else min(seconds, left_of_grace)
        left = await wait_for_end(running.values(), seconds=limit, clock=self._clock)
        for task in left:
            task.cancel()
        left = await wait_for_end(left, seconds=_LAST_SECONDS, clock=self._clock)
        return tuple(sorted(member.name for member, task in running.items() if task in left))

    async def stop_all(self) -> tuple[str, ...]:
        """Stop the groups in reverse; the names of those that did not end."""
        self.begin_stop()
        return tuple([name for group in reversed(Group) for name in await self.stop(group)])

    def _start(self, runnable: Runnable) -> None:
        _log.debug("starting", runnable=runnable.name)
        may_end = bool(getattr(runnable, "may_end", False))
        self._tasks[runnable] = self._supervised.start(runnable.run(), name=runnable.name, may_end=may_end)

    async def _wait_ready(self, members: list[Readied]) -> None:
        failure = asyncio.ensure_future(self.wait_failure())
        waits = [asyncio.ensure_future(member.wait_ready()) for member in members]
        left = set(waits)
        try:
            while left:
                done, _ = await asyncio.wait({*left, failure}, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                left -= done
        finally:
            await cancel_and_wait(failure, *waits)
