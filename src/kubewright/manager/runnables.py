"""What runs in a process, and in which order it starts and stops.

    1 HTTP servers      health and metrics: they answer before anything else may fail
    2 webhooks          before the caches: a list of a kind with several versions needs the conversion webhook
    3 caches            the next group starts when they are in sync
    4 others            everything that does not need to lead
    5 leader election   controllers, once this process leads

These are controller-runtime's groups, in its order (pkg/manager/runnable_group.go). They stop in reverse, within one
grace period in which a runnable finishes what it has begun. Each runnable is a supervised task; `wait_failure` raises
the error of the first that fails, or ends although it should not. `lifecycle` decides when a group starts and stops.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard, cast, final, runtime_checkable

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger
from kubewright._base.tasks import Tasks, cancel_and_wait, wait_for_end
from kubewright.errors import ConfigError, KubewrightError

if TYPE_CHECKING:
    from kubewright.webhooks.serving.router import WebhookDeclaration

__all__ = (
    "FunctionRunnable",
    "LeaderElectionRunnable",
    "ReadyRunnable",
    "Runnable",
    "RunnableGroup",
    "Runnables",
    "StartingRunnable",
    "StoppableRunnable",
    "group_of",
    "is_webhook",
    "runnable_from",
)

_LAST_SECONDS: Final = 1.0
"""After the grace period, how long a cancelled task has to end before `stop` names it and goes on."""

_log = Logger("kubewright.manager")


class RunnableGroup(IntEnum):
    """In the order of starting."""

    HTTP_SERVERS = 1
    WEBHOOKS = 2
    CACHES = 3
    OTHERS = 4
    LEADER_ELECTION = 5


class Runnable(Protocol):
    """Something that works until it is cancelled.

    It may also have the members of `LeaderElectionRunnable`, `ReadyRunnable`, `StartingRunnable` and
    `StoppableRunnable`, a `group`, and `may_end = True` if returning is no failure. Cancelled, it may finish what it
    has begun; cancelled again, it ends.
    """

    @property
    def name(self) -> str: ...

    async def run(self) -> None: ...


@runtime_checkable
class LeaderElectionRunnable(Protocol):
    """A runnable that says whether it runs only where this process leads. One that does not say so, does."""

    @property
    def needs_leader(self) -> bool: ...


@runtime_checkable
class ReadyRunnable(Protocol):
    """A runnable that others wait for: the next group starts when it is ready."""

    async def wait_ready(self) -> None: ...


@runtime_checkable
class StartingRunnable(Protocol):
    """A runnable that may fail at its start: the start of the manager ends, or fails, with that of all of these.

    Nothing else waits for it: a process is ready to be asked before its last controller has begun.
    """

    async def wait_started(self) -> None: ...


@runtime_checkable
class StoppableRunnable(Protocol):
    """A runnable that is asked to end before it is cancelled; its `run` then returns when all is done."""

    def stop(self) -> None: ...


@final
class FunctionRunnable:
    """An async function as a runnable. It may end."""

    may_end = True

    def __init__(self, function: Callable[[], Awaitable[None]], *, name: str = "", needs_leader: bool = True) -> None:
        named = function.func if isinstance(function, partial) else function
        self.name = name or getattr(named, "__qualname__", type(named).__name__)
        self.needs_leader = needs_leader
        self._function = function

    async def run(self) -> None:
        answer = self._function()
        if not inspect.isawaitable(answer):
            raise ConfigError(f"the runnable {self.name} is a plain function; make it async, for it shares the loop")
        await answer


def runnable_from(given: object) -> Runnable:
    """A runnable as it is, or a function as one."""
    if isinstance(given, type):
        raise ConfigError(f"{given.__name__} is a class; write @controller(Kind) above it, or give one of its objects")
    if hasattr(given, "run"):
        return cast("Runnable", given)
    if callable(given):
        return FunctionRunnable(given)
    raise ConfigError(
        f"a manager cannot run {given!r}; give it a controller, a webhook, an async function or a runnable"
    )


def is_webhook(given: object) -> TypeGuard[WebhookDeclaration]:
    """Whether `@validate` or one of its like declared it: those classes carry the mark.

    An operator without webhooks never imports their package, so there is no class to compare with here.
    """
    return getattr(type(given), "declares_webhook", False) is True


def group_of(runnable: Runnable) -> RunnableGroup:
    """The group a runnable names, else the one that follows from whether it needs to lead."""
    named = getattr(runnable, "group", None)
    if isinstance(named, RunnableGroup):
        return named
    needs_leader = runnable.needs_leader if isinstance(runnable, LeaderElectionRunnable) else True
    return RunnableGroup.LEADER_ELECTION if needs_leader else RunnableGroup.OTHERS


@final
class Runnables:
    """The runnables of one manager."""

    def __init__(self, *, owner: str = "manager", grace: float = 30.0, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._grace = grace
        self._owner = owner
        self._members: dict[RunnableGroup, list[Runnable]] = {group: [] for group in RunnableGroup}
        self._tasks: dict[Runnable, asyncio.Task[Any]] = {}
        self._supervised = Tasks(owner, clock=self._clock)
        self._started: set[RunnableGroup] = set()
        self._stopping = False
        self._ends = math.inf

    def add(self, runnable: Runnable, *, group: RunnableGroup | None = None) -> None:
        """Run it with its group, at once if that runs already. Refused while stopping."""
        if self._stopping:
            raise KubewrightError(f"{self._owner} is stopping, so {runnable.name} cannot be added any more")
        if any(runnable is member for members in self._members.values() for member in members):
            raise ConfigError(f"{runnable.name} has been added to {self._owner} already; add each runnable once")
        group = group or group_of(runnable)
        self._members[group].append(runnable)
        if group in self._started:
            self._start(runnable)

    def members(self, group: RunnableGroup) -> tuple[Runnable, ...]:
        return tuple(self._members[group])

    def running(self) -> dict[str, float]:
        """The names of what runs, and for how many seconds."""
        return self._supervised.running()

    async def start(self, group: RunnableGroup) -> None:
        """Start a group, and wait until those of its members that others rely on are ready.

        Raises the failure of any member meanwhile, rather than wait for ever.
        """
        self._started.add(group)
        for runnable in self._members[group]:
            self._start(runnable)
        await self._wait(member.wait_ready() for member in self._members[group] if isinstance(member, ReadyRunnable))

    async def wait_started(self) -> None:
        """Wait until those that run have started. Raises the failure of any member meanwhile."""
        await self._wait(member.wait_started() for member in self._tasks if isinstance(member, StartingRunnable))

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

    async def stop(self, group: RunnableGroup, *, seconds: float | None = None) -> tuple[str, ...]:
        """Stop one group: ask or cancel, wait, and when the time is over cancel again. Names who is left even then.

        The time is what is left of the grace period, or `seconds` if that is less.
        """
        self._started.discard(group)
        tasks = {member: self._tasks[member] for member in self._members[group] if member in self._tasks}
        running = {member: task for member, task in tasks.items() if not task.done()}
        self._supervised.expect_end(*running.values())
        for member, task in running.items():
            if isinstance(member, StoppableRunnable):
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
        return tuple([name for group in reversed(RunnableGroup) for name in await self.stop(group)])

    def _start(self, runnable: Runnable) -> None:
        _log.debug("starting", runnable=runnable.name)
        may_end = bool(getattr(runnable, "may_end", False))
        self._tasks[runnable] = self._supervised.start(runnable.run(), name=runnable.name, may_end=may_end)

    async def _wait(self, conditions: Iterable[Coroutine[Any, Any, None]]) -> None:
        failure = asyncio.ensure_future(self.wait_failure())
        waits = [asyncio.ensure_future(condition) for condition in conditions]
        left = set(waits)
        try:
            while left:
                done, _ = await asyncio.wait({*left, failure}, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                left -= done
        finally:
            await cancel_and_wait(failure, *waits)
