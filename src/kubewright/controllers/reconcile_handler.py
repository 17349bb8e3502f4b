"""Take one key, call the reconciler, write the status, and decide what next.

Everything that can go wrong in one run ends here, as a decision about that one key: an exception is logged with the
run's id and tried again with back-off, a conflict quietly so; a time-out ends only this run; an object that is gone
is a success. Nothing escapes but cancellation, so one broken object never stops the others. `controller` runs several
of these.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar, final

import msgspec

from kubewright._base.clock import Clock
from kubewright._base.logs import Logger
from kubewright._base.metrics import Metrics
from kubewright._base.tracing import span
from kubewright.api.codec import encode
from kubewright.api.names import ObjectKey
from kubewright.api.resource import definition_of
from kubewright.cache.cached_client import CachedClient
from kubewright.controllers.applied_objects import AppliedObjects
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration
from kubewright.controllers.event_recorder import EventRecorder
from kubewright.controllers.finalizers import add_finalizer, has_finalizer, remove_finalizer
from kubewright.controllers.foreign_objects import ForeignObjects
from kubewright.controllers.reconcile import Cause, Result, triggering_causes
from kubewright.controllers.self_writes import SelfWrites, proves_own_patch
from kubewright.controllers.write_loops import LoopDetector, Slowdown
from kubewright.errors import Conflict, Forbidden, KubewrightError, NotFound, NotOwned, RetryAfter, Terminal
from kubewright.workqueue.item import Item

__all__ = ("Outcome", "ReconcileHandler")

T = TypeVar("T")

# For what people have to mend: a right that is missing, a name that is taken. They want to see it noticed.
_MENDED_WITHIN = 300.0

# An object that is being deleted is held back for what its clean-up does, not for what happened before.
_LEAVING = "leaving"


@final
class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended, and what that means for the key."""

    result: str
    """success, requeue_after, error, terminal: the label of the metric."""
    requeue_after: float | None = None
    retry: bool = False
    """Run again with back-off."""
    longest_wait: float | None = None
    """The back-off grows no further than this."""
    priority: int = 0
    error: BaseException | None = None
    timed_out: bool = False
    unexpected: bool = False
    """The error is none of ours: a bug in the reconciler, most likely."""
    gauges: Mapping[str, float] = {}
    """Numbers of the object after the run, by metric."""


@final
class ReconcileHandler:
    """Runs one controller's reconciler on one key at a time."""

    def __init__(
        self,
        declaration: Declaration[Any],
        *,
        client: CachedClient,
        log: Logger,
        recorder: EventRecorder | None,
        applied: AppliedObjects,
        written: SelfWrites,
        loops: LoopDetector,
        strangers: ForeignObjects,
        on_write_loop: Callable[[], None] | None,
        metrics: Metrics,
        clock: Clock,
        threads: Executor,
    ) -> None:
        self._declaration = declaration
        self._client = client
        self._log = log
        self._recorder = recorder
        self._applied = applied
        self._written = written
        self._loops = loops
        self._strangers = strangers
        self._on_write_loop = on_write_loop
        self._metrics = metrics
        self._clock = clock
        self._threads = threads
        self._slowdown = Slowdown()
        self._owned = frozenset(owned.kind for owned in declaration.owns)
        self._unended: dict[ObjectKey, asyncio.Future[Any]] = {}
        self._has_status = definition_of(declaration.kind).status

    async def run(self, item: Item[ObjectKey], run_id: str, wrote: list[str]) -> Outcome:
        """One run, whatever happens in it; what it wrote, for people, goes into the list."""
        # Bound when somebody has something to say, which most runs have not.
        log = partial(self._log.bind, namespace=item.key.namespace, name=item.key.name, run=run_id)
        with span("reconcile", controller=self._declaration.name, key=str(item.key), run=run_id) as current:
            outcome = await self._attempt(item, run_id, log, wrote)
            current.set("result", outcome.result)
            if outcome.error is not None:
                current.set("error", str(outcome.error))
            return outcome

    async def _attempt(
        self, item: Item[ObjectKey], run_id: str, log: Callable[[], Logger], wrote: list[str]
    ) -> Outcome:
        limit = None if self._declaration.timeout is None else asyncio.timeout(self._declaration.timeout)
        try:
            if limit is None:
                return await self._look(item, run_id, log, wrote)
            async with limit:
                return await self._look(item, run_id, log, wrote)
        except asyncio.CancelledError as exc:
            # Raised without anybody having cancelled this task, it comes from something the reconciler waited for.
            if _is_cancelled():
                raise
            return self._failed(exc, item, log())
        except TimeoutError as exc:
            if limit is None or not limit.expired():  # the reconciler's own, such as a server that did not answer
                return self._failed(exc, item, log())
            log().warning("the run took too long and was ended", limit=self._declaration.timeout)
            await self._thread_ended(item.key, log)
            return Outcome(result="error", retry=True, priority=item.priority, error=exc, timed_out=True)
        except BaseException as exc:
            if isinstance(exc, KeyboardInterrupt | SystemExit):
                raise
            return self._failed(exc, item, log())

    async def _look(self, item: Item[ObjectKey], run_id: str, log: Callable[[], Logger], wrote: list[str]) -> Outcome:
        client = self._client.in_namespace(item.key.namespace)
        try:
            obj = await self._read(client, item)
        except NotFound:
            self._slowdown.forget(item.key)
            self._slowdown.forget((item.key, _LEAVING))
            return Outcome(result="success")
        leaving = obj.metadata.deletion_timestamp is not None
        held = (item.key, _LEAVING) if leaving else item.key
        if wait := self._slowdown.left(held, now=self._clock.monotonic(), generation=obj.metadata.generation):
            return Outcome(result="requeue_after", requeue_after=wait, priority=item.priority)
        ctx = Context(
            obj,
            client=client,
            field_manager=self._declaration.field_manager,
            log=log,
            causes=triggering_causes(item.causes),
            run_id=run_id,
            writes=wrote,
            recorder=self._recorder,
            applied=self._applied,
            written=self._written,
            loops=self._loops,
            strangers=self._strangers,
            owned=self._owned,
            metrics=self._metrics,
            clock=self._clock,
            loop=asyncio.get_running_loop(),
        )
        if leaving and not self._declaration.deleting:
            return await self._clean_up(obj, ctx, client, item)
        if self._declaration.finalize is not None and not has_finalizer(obj, self._declaration.finalizer):
            # The version it is based on was sent along, so the answer is the object that was read, and this.
            with self._written.writing(obj.key, type(obj), obj.key) as writing:
                before, obj = obj, await add_finalizer(client, obj, self._declaration.finalizer)
                writing.version = obj.metadata.resource_version
            ctx.replace(obj)
            ctx.wrote("finalizer", obj, before=before)
        return await self._reconcile(obj, ctx, client, item)

    async def _read(self, client: CachedClient, item: Item[ObjectKey]) -> Any:
        """The object, from the cache, unless the cache is known to have a gap.

        When a child's deletion was found only by listing again, the owner's kind may not have been listed again yet:
        the cache may still show an owner that is long gone, and a child made for it would be nobody's.
        """
        if any(isinstance(cause, Cause) and cause.uncertain for cause in item.causes):
            try:
                return await client.get_fresh(self._declaration.kind, item.key)
            except Forbidden:
                pass  # a role without `get`: the cache is all there is
        return await client.get(self._declaration.kind, item.key)

    async def _reconcile(self, obj: Any, ctx: Context, client: CachedClient, item: Item[ObjectKey]) -> Outcome:
        before = encode(obj.status) if self._has_status else b""
        try:
            answer = await self._call(self._declaration.reconcile, obj, ctx)
        except Exception:
            # What the reconciler said about its failure is worth as much as what it says about success.
            await self._write_status(obj, ctx, client, before, observed=False)
            raise
        finally:
            slowest = self._slowed(obj, ctx) if ctx.findings else None
        await self._write_status(obj, ctx, client, before, observed=True)
        if answer is not None and not isinstance(answer, Result):
            ctx.log.warning("the reconciler returned what is no Result; it is passed over", returned=repr(answer)[:200])
        result = answer if isinstance(answer, Result) else Result()
        wait = result.requeue_after if slowest is None else max(slowest, result.requeue_after or 0.0)
        priority = item.priority if result.priority is None else result.priority
        return Outcome(
            result="success" if wait is None else "requeue_after",
            requeue_after=wait,
            priority=priority,
            gauges={name: float(number(obj)) for name, number in self._declaration.gauges.items()},
        )

    async def _write_status(
        self, obj: Any, ctx: Context, client: CachedClient, before: bytes, *, observed: bool
    ) -> None:
        if not self._has_status:
            return
        changed = encode(obj.status) != before
        present = getattr(obj.status, "observed_generation", msgspec.UNSET)
        # A reconciler that never says anything about an object leaves its status alone.
        if observed and present is not msgspec.UNSET and (changed or present is not None):
            # The generation that was read: a newer one has not been looked at yet.
            obj.status.observed_generation = obj.metadata.generation
            changed = changed or present != obj.metadata.generation
        if not changed:
            return
        with self._written.writing(obj.key, type(obj), obj.key) as writing:
            try:
                answer = await client.patch(obj, subresource="status")
            except NotFound:
                return
            if answer is obj:
                return
            if proves_own_patch(obj, answer):
                writing.version = answer.metadata.resource_version
        ctx.writes.append(f"status {obj.kind} {obj.key}")

    async def _clean_up(self, obj: Any, ctx: Context, client: CachedClient, item: Item[ObjectKey]) -> Outcome:
        """An object being deleted is not reconciled: its children go with it, and `finalize` sees to the rest."""
        finalizer = self._declaration.finalizer
        if self._declaration.finalize is None or not has_finalizer(obj, finalizer):
            return Outcome(result="success")
        before = encode(obj.status) if self._has_status else b""
        try:
            answer = await self._call(self._declaration.finalize, obj, ctx)
        except Exception:
            # Why an object does not go away is what people look for in its status.
            await self._write_status(obj, ctx, client, before, observed=False)
            raise
        finally:
            if ctx.findings:
                self._slowed(obj, ctx)
        if isinstance(answer, Result) and answer.requeue_after is not None:  # who wants to be called again is not done
            await self._write_status(obj, ctx, client, before, observed=False)
            priority = item.priority if answer.priority is None else answer.priority
            return Outcome(result="requeue_after", requeue_after=answer.requeue_after, priority=priority)
        await remove_finalizer(client, obj, finalizer)
        return Outcome(result="success")

    async def _call(self, function: Any, obj: Any, ctx: Context) -> Any:
        try:
            if inspect.iscoroutinefunction(function):
                return await function(obj, ctx)
            answer = await self._in_thread(partial(function, obj, ctx), ctx)
            return await answer if isinstance(answer, Awaitable) else answer
        except (NotOwned, Terminal) as error:
            # Somebody has to do something, and whoever can looks at the object rather than at our log.
            ctx.event(type(error).__name__, str(error), type="Warning")
            raise

    async def _in_thread(self, call: Callable[[], Any], ctx: Context) -> Any:
        # With the context of this task, as `asyncio.to_thread` does: spans of its requests are children of the run's.
        thread = asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, call)
        try:
            return await asyncio.shield(thread)
        except asyncio.CancelledError:
            if not thread.done():
                ctx.end()
                self._unended[ctx.key] = thread
            raise

    async def _thread_ended(self, key: ObjectKey, log: Callable[[], Logger]) -> None:
        """A thread cannot be ended from outside, and no object is worked on twice at once: so it is waited for."""
        thread = self._unended.pop(key, None)
        if thread is None:
            return
        log().warning("waiting for the thread of the run, which cannot be ended from outside")
        await asyncio.wait({thread})
        if not thread.cancelled():
            thread.exception()  # said to nobody: the run has been given up

    def _slowed(self, obj: Any, ctx: Context) -> float:
        """Say what was noticed, however the run ended, and hold the object back; for how long."""
        for finding in ctx.findings:
            ctx.log.warning("a write loop was noticed; slowing down", finding=str(finding), wait=finding.wait)
            ctx.event("WriteLoop", str(finding), type="Warning")
            if self._on_write_loop is not None:
                self._on_write_loop()
        slowest = max(finding.wait for finding in ctx.findings)
        itself = any(finding.target == f"{obj.kind} {obj.key}" for finding in ctx.findings)
        # In a fight over the object itself, every blow is an edit.
        generation = None if itself else obj.metadata.generation
        held = obj.key if obj.metadata.deletion_timestamp is None else (obj.key, _LEAVING)
        self._slowdown.hold(held, until=self._clock.monotonic() + slowest, generation=generation)
        return slowest

    def _failed(self, error: BaseException, item: Item[ObjectKey], log: Logger) -> Outcome:
        match error:
            case RetryAfter():
                log.info("to be tried again later", seconds=error.seconds, reason=str(error))
                return Outcome(result="requeue_after", requeue_after=error.seconds, priority=item.priority)
            case Terminal():
                log.warning("given up until something changes", error=str(error))
                return Outcome(result="terminal", error=error)
            case NotOwned():
                log.warning("a child belongs to somebody else", error=str(error))
                return Outcome(result="error", requeue_after=_MENDED_WITHIN, priority=item.priority, error=error)
            case Conflict():
                # Somebody else wrote first. The next run sees what they wrote; nobody needs to be told.
                log.debug("conflict, running again", error=str(error))
                return Outcome(result="requeue", retry=True, priority=item.priority)
            case Forbidden() if leaving := _leaving_namespaces(error):
                log.debug("a namespace is being deleted", error=str(error))
                if leaving <= {item.key.namespace or item.key.name}:  # the object goes with it, or is it
                    return Outcome(result="success")
                # Another one's end: there may be work left to do elsewhere.
                return Outcome(result="requeue", retry=True, priority=item.priority)
            case NotFound() if error.details.get("kind") == "namespaces":
                if error.details.get("name") == item.key.namespace:  # the object has gone with it, unseen so far
                    log.debug("the namespace is gone", error=str(error))
                    return Outcome(result="success")
                # Gone since it was read, or never there: the one mends itself, the other somebody has to mend.
                log.warning("a namespace is not there; trying again with back-off", error=str(error))
                return Outcome(result="error", retry=True, priority=item.priority, error=error)
            case _:
                unexpected = not isinstance(error, KubewrightError)
                if unexpected:
                    log.exception("the run failed; trying again with back-off", error=error)
                else:  # the server's own sentence says it all: a quota, a webhook, a missing kind
                    log.error("the run failed; trying again with back-off", error=str(error))
                return Outcome(
                    result="error",
                    retry=True,
                    longest_wait=_MENDED_WITHIN if isinstance(error, Forbidden) else None,
                    priority=item.priority,
                    error=error,
                    unexpected=unexpected,
                )


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _leaving_namespaces(error: Forbidden) -> set[str]:
    """The namespaces that nothing could be made in because they are being deleted."""
    words = [cause.message.split() for cause in error.causes if cause.reason == "NamespaceTerminating"]
    return {word[1] for word in words if len(word) > 1}  # namespace shop is being terminated
