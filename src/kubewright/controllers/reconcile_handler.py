"""Reconcile one key: read the object, call the reconciler, write the status, and decide what happens to the key next.

Everything that goes wrong in one reconcile ends here as a decision about that one key. An exception is logged with the
reconcileID and the key is retried with back-off, silently after a conflict; a timeout ends only this reconcile; an
object that does not exist is a success. Nothing escapes but cancellation, so one broken object never stops the others.
`controller` calls `ReconcileHandler.handle` from each of its workers and puts the key back into the queue; it is
`reconcileHandler` of controller-runtime's pkg/internal/controller/controller.go.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextvars import copy_context
from functools import partial
from typing import Any, final

import msgspec

from kubewright._base.logs import Logger
from kubewright._base.tracing import span
from kubewright.api.codec import encode
from kubewright.api.field_errors import FieldError, summary
from kubewright.api.names import ObjectKey
from kubewright.api.resource import definition_of
from kubewright.cache.cached_client import CachedClient
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration
from kubewright.controllers.finalizers import add_finalizer, has_finalizer, remove_finalizer
from kubewright.controllers.reconcile import Cause, Result, triggering_causes
from kubewright.controllers.reconcile_state import ReconcileEnvironment, ReconcileState
from kubewright.controllers.self_writes import proves_own_patch
from kubewright.controllers.write_loops import Slowdown, WriteLoop
from kubewright.errors import (
    ConfigError,
    Conflict,
    Forbidden,
    KubewrightError,
    NotFound,
    NotOwned,
    RetryAfter,
    Terminal,
)
from kubewright.workqueue.item import Item

__all__ = ("Outcome", "ReconcileHandler")

# The longest wait, in seconds, where a person has to act: a missing permission, a name that is taken. Whoever grants or
# renames wants to see the effect within minutes, and the back-off grows to a quarter of an hour.
_MAX_WAIT_FOR_PEOPLE = 300.0

# A write loop of `finalize` holds back the clean-up, and one of `reconcile` must not.
_TERMINATING = "terminating"


@final
class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a reconcile ended, and what that means for the key."""

    result: str
    """success, requeue, requeue_after, error or terminal: the label of controller_runtime_reconcile_total."""
    requeue_after: float | None = None
    """Reconcile again after so many seconds; the back-off starts over."""
    retry: bool = False
    """Reconcile again with back-off."""
    max_backoff: float | None = None
    """The back-off grows no further than this."""
    priority: int = 0
    """The priority of the next reconcile."""
    error: BaseException | None = None
    timed_out: bool = False
    unexpected: bool = False
    """The error is not in the framework's tree: most likely a bug in the reconciler, a panic in Go."""
    gauges: Mapping[str, float | None] = {}
    """Numbers of the object after the reconcile, by metric; None where there is none."""


@final
class ReconcileHandler:
    """Reconciles keys for one controller. All its workers share one handler; the queue never gives two the same key."""

    def __init__(
        self,
        declaration: Declaration[Any],
        environment: ReconcileEnvironment,
        *,
        client: CachedClient,
        log: Logger,
        threads: Executor,
        on_write_loop: Callable[[], None] | None = None,
    ) -> None:
        """`threads` runs reconcilers that are plain functions. `on_write_loop` is called for each loop found."""
        self._declaration = declaration
        self._environment = environment
        self._memory = environment.memory
        self._clock = environment.clock
        self._client = client
        self._log = log
        self._threads = threads
        self._on_write_loop = on_write_loop
        self._slowdown = Slowdown()
        self._failed_gauges: set[str] = set()
        self._reported_problems: dict[ObjectKey, tuple[FieldError, ...]] = {}
        self._abandoned_threads: dict[ObjectKey, asyncio.Future[Any]] = {}
        self._has_status = definition_of(declaration.kind).status

    async def handle(self, item: Item[ObjectKey], reconcile_id: str, writes: list[str]) -> Outcome:
        """Reconcile one key, whatever happens in it. What it wrote, for people, is appended to `writes`."""
        # Bound when there is something to log, which most reconciles have not.
        log = partial(self._log.bind, namespace=item.key.namespace, name=item.key.name, reconcileID=reconcile_id)
        with span(
            "reconcile", controller=self._declaration.name, key=str(item.key), reconcileID=reconcile_id
        ) as current:
            outcome = await self._guard(item, reconcile_id, log, writes)
            current.set("result", outcome.result)
            if outcome.error is not None:
                current.set("error", str(outcome.error))
            return outcome

    async def _guard(
        self, item: Item[ObjectKey], reconcile_id: str, log: Callable[[], Logger], writes: list[str]
    ) -> Outcome:
        """Turn time-out and exceptions into an outcome."""
        limit = None if self._declaration.timeout is None else asyncio.timeout(self._declaration.timeout)
        try:
            if limit is None:
                return await self._reconcile_key(item, reconcile_id, log, writes)
            async with limit:
                return await self._reconcile_key(item, reconcile_id, log, writes)
        except asyncio.CancelledError as exc:
            # If nobody has cancelled this task, it comes from something the reconciler awaited: an ordinary error.
            if _is_cancelled():
                raise
            return self._outcome_of(exc, item, log())
        except TimeoutError as exc:
            if limit is None or not limit.expired():  # the reconciler's own, such as a server that did not answer
                return self._outcome_of(exc, item, log())
            log().warning("reconcile took too long and was cancelled", timeout=self._declaration.timeout)
            await self._wait_for_thread(item.key, log)
            return Outcome(result="error", retry=True, priority=item.priority, error=exc, timed_out=True)
        except BaseException as exc:
            if isinstance(exc, KeyboardInterrupt | SystemExit):
                raise
            return self._outcome_of(exc, item, log())

    async def _reconcile_key(
        self, item: Item[ObjectKey], reconcile_id: str, log: Callable[[], Logger], writes: list[str]
    ) -> Outcome:
        client = self._client.in_namespace(item.key.namespace)
        try:
            obj = await self._read(client, item)
        except NotFound:
            self._slowdown.forget(item.key)
            self._slowdown.forget((item.key, _TERMINATING))
            self._reported_problems.pop(item.key, None)
            return Outcome(result="success")
        terminating = obj.metadata.deletion_timestamp is not None
        held = (item.key, _TERMINATING) if terminating else item.key
        if wait := self._slowdown.remaining(held, now=self._clock.monotonic(), generation=obj.metadata.generation):
            return Outcome(result="requeue_after", requeue_after=wait, priority=item.priority)
        state = ReconcileState(obj, self._environment, writes)
        ctx = Context(state, client=client, reconcile_id=reconcile_id, causes=triggering_causes(item.causes), log=log)
        if ctx.problems or self._reported_problems:
            self._report_problems(ctx, terminating=terminating)
        if terminating and not self._declaration.deleting:
            return await self._finalize(obj, ctx, state, item)
        if self._declaration.finalize is not None and not has_finalizer(obj, self._declaration.finalizer):
            # Before the reconciler: it may create things outside the cluster, and an object deleted between that and
            # the finalizer would leave them behind.
            try:
                obj = await self._add_finalizer(obj, ctx, state)
            except NotFound as error:
                if error.details.get("name") != item.key.name:
                    raise  # the kind itself is not served any more
                ctx.log.debug("the object is gone", error=str(error))
                return Outcome(result="success")  # deleted since it was read: nothing was done that is to be cleaned up
        return await self._reconcile(obj, ctx, state, item)

    def _report_problems(self, ctx: Context, *, terminating: bool) -> None:
        """Say once what the class does not know of the stored object (decision 23); Terminal if it is not to be used.

        A value that an enum does not have is the reconciler's to judge. A value of another type, or a required one
        that is missing, would be taken for one that somebody chose. A terminating object is finalized with either, and
        the reconciler itself writes the status anew.
        """
        problems = ctx.problems
        if not problems:
            self._reported_problems.pop(ctx.key, None)
            return
        if self._reported_problems.get(ctx.key) != problems:
            self._reported_problems[ctx.key] = problems
            ctx.log.warning("the object holds what its class does not know", problems=summary(problems))
            ctx.event("InvalidValue", summary(problems), type="Warning")
        unusable = [
            problem
            for problem in problems
            if problem.type in ("Required", "TypeInvalid") and not problem.path.startswith("status")
        ]
        if unusable and not terminating:
            raise Terminal(f"{summary(unusable)}; correct the object, or run an operator that knows such values")

    async def _read(self, client: CachedClient, item: Item[ObjectKey]) -> Any:
        """The object from the cache, unless the cache is known to have a gap.

        A relist that finds a child deleted says nothing of the owner's kind, which has a watch of its own and may not
        have been relisted yet. The cache may still show an owner that is long gone; a child created for it would have
        no owner, and the garbage collector would delete it.
        """
        if any(isinstance(cause, Cause) and cause.final_state_unknown for cause in item.causes):
            try:
                return await client.get_fresh(self._declaration.kind, item.key)
            except Forbidden:
                pass  # the role does not allow `get`: the cache is all there is
        return await client.get(self._declaration.kind, item.key)

    async def _reconcile(self, obj: Any, ctx: Context, state: ReconcileState, item: Item[ObjectKey]) -> Outcome:
        before = encode(obj.status) if self._has_status else b""
        try:
            answer = await self._call(self._declaration.reconcile, obj, ctx, state)
        except Exception:
            # Conditions that explain the failure are worth as much as those of a success. The generation is not
            # observed: the desired state of it has not been reached.
            await self._write_status(obj, ctx, state, before, observed=False)
            raise
        finally:
            slowdown = self._slow_down(obj, ctx, state.write_loops) if state.write_loops else None
        await self._write_status(obj, ctx, state, before, observed=True)
        result = answer or Result()
        wait = result.requeue_after if slowdown is None else max(slowdown, result.requeue_after or 0.0)
        return Outcome(
            result="success" if wait is None else "requeue_after",
            requeue_after=wait,
            priority=item.priority if result.priority is None else result.priority,
            gauges=self._measure(obj, ctx) if self._declaration.gauges else {},
        )

    def _measure(self, obj: Any, ctx: Context) -> dict[str, float | None]:
        """The gauges of the object. One that raises is reported once; it is no failure of the reconcile."""
        found: dict[str, float | None] = {}
        for name, number in self._declaration.gauges.items():
            try:
                found[name] = float(number(obj))
                self._failed_gauges.discard(name)
            except Exception as error:
                found[name] = None
                if name not in self._failed_gauges:
                    self._failed_gauges.add(name)
                    ctx.log.exception("a gauge failed and is not shown", gauge=name, error=error)
        return found

    async def _write_status(
        self, obj: Any, ctx: Context, state: ReconcileState, before: bytes, *, observed: bool
    ) -> None:
        """Patch what changed in the status, once, after the reconciler has returned.

        A merge patch of the status subresource, without resourceVersion: a write of the spec or of another status
        field since the read is no conflict (a list, such as the conditions, is replaced whole). Nothing is lost if it
        fails: a status is derived from what the reconcile observed, and the next one derives it again.
        """
        if not self._has_status:
            return
        changed = encode(obj.status) != before
        present = getattr(obj.status, "observed_generation", msgspec.UNSET)
        # A reconciler that never sets anything of an object's status leaves the status alone.
        if observed and present is not msgspec.UNSET and (changed or present is not None):
            # The generation that was read: the reconciler has not seen a newer one.
            obj.status.observed_generation = obj.metadata.generation
            changed = changed or present != obj.metadata.generation
        if not changed:
            return
        with self._memory.self_writes.track(obj.key, type(obj), obj.key) as write:
            try:
                answer = await ctx.client.patch(obj, subresource="status")
            except NotFound:
                return
            if answer is obj:
                return
            if proves_own_patch(obj, answer):
                write.version = answer.metadata.resource_version
        state.writes.append(f"status {obj.kind} {obj.key}")

    async def _add_finalizer(self, obj: Any, ctx: Context, state: ReconcileState) -> Any:
        with self._memory.self_writes.track(obj.key, type(obj), obj.key) as write:
            answer = await add_finalizer(ctx.client, obj, self._declaration.finalizer)
            # The patch carries the resourceVersion of `obj`, so the answer is `obj` with the finalizer: the write is
            # proven, and the reconcile goes on with the answer instead of waiting for the watch.
            write.version = answer.metadata.resource_version
        state.object = answer
        state.record_write("finalizer", answer, before=obj)
        return answer

    async def _finalize(self, obj: Any, ctx: Context, state: ReconcileState, item: Item[ObjectKey]) -> Outcome:
        """A terminating object is not reconciled: the garbage collector deletes its children, `finalize` the rest."""
        finalizer = self._declaration.finalizer
        if self._declaration.finalize is None or not has_finalizer(obj, finalizer):
            return Outcome(result="success")
        before = encode(obj.status) if self._has_status else b""
        try:
            answer = await self._call(self._declaration.finalize, obj, ctx, state)
        except Exception:
            # People look in the status for the reason why an object does not go away.
            await self._write_status(obj, ctx, state, before, observed=False)
            raise
        finally:
            if state.write_loops:
                self._slow_down(obj, ctx, state.write_loops)
        if answer is not None and answer.requeue_after is not None:  # the clean-up is not done yet
            await self._write_status(obj, ctx, state, before, observed=False)
            priority = item.priority if answer.priority is None else answer.priority
            return Outcome(result="requeue_after", requeue_after=answer.requeue_after, priority=priority)
        # Last, and without a status patch before it: without its last finalizer the object is gone.
        await remove_finalizer(ctx.client, obj, finalizer)
        return Outcome(result="success")

    async def _call(self, function: Any, obj: Any, ctx: Context, state: ReconcileState) -> Result | None:
        try:
            if inspect.iscoroutinefunction(function):
                return _result(await function(obj, ctx), function)
            answer = await self._call_in_thread(partial(function, obj, ctx), state)
            return _result(await answer if isinstance(answer, Awaitable) else answer, function)
        except (NotOwned, Terminal) as error:
            # A person has to act, and looks at the object rather than at the operator's log.
            ctx.event(type(error).__name__, str(error), type="Warning")
            raise

    async def _call_in_thread(self, call: Callable[[], Any], state: ReconcileState) -> Any:
        # With the context of this task, as `asyncio.to_thread` does: spans of its requests are children of this one.
        thread = asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, call)
        try:
            return await asyncio.shield(thread)
        except asyncio.CancelledError:
            if not thread.done():
                state.cancel_waits()
                self._abandoned_threads[state.object.key] = thread
            raise

    async def _wait_for_thread(self, key: ObjectKey, log: Callable[[], Logger]) -> None:
        """A thread cannot be cancelled, and no key is reconciled twice at once: wait for the end of the thread."""
        thread = self._abandoned_threads.pop(key, None)
        if thread is None:
            return
        log().warning("waiting for the thread of the reconcile, which cannot be cancelled")
        await asyncio.wait({thread})
        if not thread.cancelled():
            thread.exception()  # retrieved so that asyncio does not log it; the reconcile has been given up

    def _slow_down(self, obj: Any, ctx: Context, loops: Sequence[WriteLoop]) -> float:
        """Report the write loops, however the reconcile ended, and hold the key back; returns for how long."""
        for loop in loops:
            ctx.log.warning("write loop detected; slowing down", loop=str(loop), wait=loop.wait)
            ctx.event("WriteLoop", str(loop), type="Warning")
            if self._on_write_loop is not None:
                self._on_write_loop()
        longest = max(loop.wait for loop in loops)
        itself = any(loop.target == f"{obj.kind} {obj.key}" for loop in loops)
        # An edit of the object ends the wait: it may end the fight. In a fight over the object itself every write of
        # the other side is an edit.
        generation = None if itself else obj.metadata.generation
        held = obj.key if obj.metadata.deletion_timestamp is None else (obj.key, _TERMINATING)
        self._slowdown.hold(held, until=self._clock.monotonic() + longest, generation=generation)
        return longest

    def _outcome_of(self, error: BaseException, item: Item[ObjectKey], log: Logger) -> Outcome:
        match error:
            case RetryAfter():
                log.info("reconcile will be retried", seconds=error.seconds, reason=str(error))
                return Outcome(result="requeue_after", requeue_after=error.seconds, priority=item.priority)
            case Terminal():
                log.warning("terminal error; not retried until something changes", error=str(error))
                return Outcome(result="terminal", error=error)
            case NotOwned():
                log.warning("a child is not owned by the object", error=str(error))
                return Outcome(result="error", requeue_after=_MAX_WAIT_FOR_PEOPLE, priority=item.priority, error=error)
            case Conflict():
                # Somebody else wrote first, between our read and our write. The next reconcile reads what they wrote;
                # an error message would alarm people about what is normal (decision 0004).
                log.debug("conflict; reconciling again", error=str(error))
                return Outcome(result="requeue", retry=True, priority=item.priority)
            case Forbidden() if namespaces := _terminating_namespaces(error):
                log.debug("a namespace is terminating", error=str(error))
                if namespaces <= {item.key.namespace or item.key.name}:  # the object is in it, or is it
                    return Outcome(result="success")
                # Another namespace: there may be work left to do in others.
                return Outcome(result="requeue", retry=True, priority=item.priority)
            case NotFound() if error.details.get("kind") == "namespaces":
                if error.details.get("name") == item.key.namespace:  # the object went with it; the watch is behind
                    log.debug("the namespace is gone", error=str(error))
                    return Outcome(result="success")
                # Deleted since it was read, or never created: the next reconcile notices the first, a person must
                # mend the second.
                log.warning("a namespace does not exist; retrying with back-off", error=str(error))
                return Outcome(result="error", retry=True, priority=item.priority, error=error)
            case _:
                unexpected = not isinstance(error, KubewrightError)
                if unexpected:
                    log.exception("reconcile failed; retrying with back-off", error=error)
                else:  # without a stack: the server's sentence says it all, such as a quota or a webhook's denial
                    log.error("reconcile failed; retrying with back-off", error=str(error))
                return Outcome(
                    result="error",
                    retry=True,
                    max_backoff=_MAX_WAIT_FOR_PEOPLE if isinstance(error, Forbidden) else None,
                    priority=item.priority,
                    error=error,
                    unexpected=unexpected,
                )


def _result(answer: object, function: Any) -> Result | None:
    """What a reconciler returned. ConfigError for anything else: it would be ignored, whatever was meant by it."""
    if answer is None or isinstance(answer, Result):
        return answer
    name = getattr(function, "__name__", "the reconciler")
    if isinstance(answer, Awaitable):
        if inspect.iscoroutine(answer):
            answer.close()  # or Python warns as well
        raise ConfigError(f"{name} returned a coroutine that nobody has awaited; write await in front of the call")
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        raise ConfigError(f"{name} returned {answer!r}; to be called again, return Result(requeue_after={answer!r})")
    shown = repr(answer)[:200]
    raise ConfigError(f"{name} returned {shown}; return a Result, such as Result(requeue_after=30), or None")


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _terminating_namespaces(error: Forbidden) -> set[str]:
    """The namespaces that the server creates nothing in because they are terminating."""
    words = [cause.message.split() for cause in error.causes if cause.reason == "NamespaceTerminating"]
    return {word[1] for word in words if len(word) > 1}  # namespace shop is being terminated
