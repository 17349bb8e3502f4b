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
from functools import partial
from random import getrandbits
from typing import Any, TypeVar, final

import msgspec

from kubewright._base.clock import Clock
from kubewright._base.logs import Logger
from kubewright._base.tracing import span
from kubewright.api.codec import encode
from kubewright.api.names import ObjectKey
from kubewright.api.resource import definition_of
from kubewright.cache.cached_client import CachedClient
from kubewright.controllers.applies import Applied
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration
from kubewright.controllers.finalizers import add_finalizer, has_finalizer, remove_finalizer
from kubewright.controllers.loops import LoopDetector, Slowdown
from kubewright.controllers.reconcile import Cause, Result
from kubewright.controllers.recorder import Recorder
from kubewright.controllers.written import Written, is_what_was_meant
from kubewright.errors import Conflict, Forbidden, KubewrightError, NotFound, NotOwned, RetryAfter, Terminal
from kubewright.workqueue.item import Item

__all__ = ("Outcome", "Worker")

T = TypeVar("T")

_NOT_OWNED_RETRY = 300.0


@final
class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended, and what that means for the key."""

    result: str
    """success, requeue_after, error, terminal: the label of the metric."""
    requeue_after: float | None = None
    retry: bool = False
    """Run again with back-off."""
    priority: int = 0
    error: BaseException | None = None
    timed_out: bool = False
    unexpected: bool = False
    """The error is none of ours: a bug in the reconciler, most likely."""
    write_loops: int = 0
    """How many objects this run wrote in circles."""
    gauges: Mapping[str, float] = {}
    """Numbers of the object after the run, by metric."""


@final
class Worker:
    """Runs one controller's reconciler on one key at a time."""

    def __init__(
        self,
        declaration: Declaration[Any],
        *,
        client: CachedClient,
        log: Logger,
        recorder: Recorder | None,
        applied: Applied,
        written: Written,
        loops: LoopDetector,
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
        self._clock = clock
        self._threads = threads
        self._slowdown = Slowdown()
        self._has_status = definition_of(declaration.kind).status

    async def run(self, item: Item[ObjectKey]) -> Outcome:
        """One run, whatever happens in it."""
        run_id = f"{getrandbits(64):016x}"
        # Bound when somebody has something to say, which most runs have not.
        log = partial(self._log.bind, namespace=item.key.namespace, name=item.key.name, run=run_id)
        with span("reconcile", controller=self._declaration.name, key=str(item.key), run=run_id):
            limit = None if self._declaration.timeout is None else asyncio.timeout(self._declaration.timeout)
            try:
                if limit is None:
                    return await self._look(item, run_id, log)
                async with limit:
                    return await self._look(item, run_id, log)
            except asyncio.CancelledError:
                raise
            except TimeoutError as exc:
                if limit is None or not limit.expired():  # the reconciler's own, such as a server that did not answer
                    return self._failed(exc, item, log())
                log().warning("the run took too long and was ended", limit=self._declaration.timeout)
                return Outcome(result="error", retry=True, priority=item.priority, error=exc, timed_out=True)
            except BaseException as exc:
                if isinstance(exc, KeyboardInterrupt | SystemExit):
                    raise
                return self._failed(exc, item, log())

    async def _look(self, item: Item[ObjectKey], run_id: str, log: Callable[[], Logger]) -> Outcome:
        client = self._client.in_namespace(item.key.namespace)
        try:
            obj = await self._read(client, item)
        except NotFound:
            self._slowdown.forget(item.key)
            return Outcome(result="success")
        leaving = obj.metadata.deletion_timestamp is not None
        wait = self._slowdown.left(item.key, now=self._clock.monotonic(), generation=obj.metadata.generation)
        if wait and not leaving:
            return Outcome(result="requeue_after", requeue_after=wait, priority=item.priority)
        ctx = Context(
            obj,
            client=client,
            field_manager=self._declaration.field_manager,
            log=log,
            causes=tuple(cause for cause in item.causes if isinstance(cause, Cause)),
            run_id=run_id,
            recorder=self._recorder,
            applied=self._applied,
            written=self._written,
            loops=self._loops,
            clock=self._clock,
            loop=asyncio.get_running_loop(),
        )
        if leaving and not self._declaration.deleting:
            await self._clean_up(obj, ctx, client)
            return Outcome(result="success")
        if self._declaration.finalize is not None and not has_finalizer(obj, self._declaration.finalizer):
            # The version it is based on was sent along, so the answer is the object that was read, and this.
            with self._written.writing(obj.key, type(obj), obj.key) as writing:
                obj = await add_finalizer(client, obj, self._declaration.finalizer)
                writing.version = obj.metadata.resource_version
            ctx.replace(obj)
        return await self._reconcile(obj, ctx, client, item)

    async def _read(self, client: CachedClient, item: Item[ObjectKey]) -> Any:
        """The object, from the cache, unless the cache is known to have a gap.

        When a child's deletion was found only by listing again, the owner's kind may not have been listed again yet:
        the cache may still show an owner that is long gone, and a child made for it would be nobody's.
        """
        if any(isinstance(cause, Cause) and cause.uncertain for cause in item.causes):
            try:
                return await client.live.get(self._declaration.kind, item.key)
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
        await self._write_status(obj, ctx, client, before, observed=True)
        result = answer if isinstance(answer, Result) else Result()
        wait = self._slowed(obj, ctx, result.requeue_after)
        priority = item.priority if result.priority is None else result.priority
        return Outcome(
            result="success" if wait is None else "requeue_after",
            requeue_after=wait,
            priority=priority,
            write_loops=len(ctx.findings),
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
            if is_what_was_meant(obj, answer):
                writing.version = answer.metadata.resource_version
        ctx.writes.append(f"status {obj.kind} {obj.key}")

    async def _clean_up(self, obj: Any, ctx: Context, client: CachedClient) -> None:
        """An object being deleted is not reconciled: its children go with it, and `finalize` sees to the rest."""
        finalizer = self._declaration.finalizer
        if self._declaration.finalize is None or not has_finalizer(obj, finalizer):
            return
        before = encode(obj.status) if self._has_status else b""
        try:
            await self._call(self._declaration.finalize, obj, ctx)
        except Exception:
            # Why an object does not go away is what people look for in its status.
            await self._write_status(obj, ctx, client, before, observed=False)
            raise
        await remove_finalizer(client, obj, finalizer)

    async def _call(self, function: Any, obj: Any, ctx: Context) -> Any:
        try:
            if inspect.iscoroutinefunction(function):
                return await function(obj, ctx)
            answer = await asyncio.get_running_loop().run_in_executor(self._threads, partial(function, obj, ctx))
            return await answer if isinstance(answer, Awaitable) else answer
        except (NotOwned, Terminal) as error:
            # Somebody has to do something, and whoever can looks at the object rather than at our log.
            ctx.event(type(error).__name__, str(error), type="Warning")
            raise

    def _slowed(self, obj: Any, ctx: Context, requeue_after: float | None) -> float | None:
        for finding in ctx.findings:
            ctx.log.warning("a write loop was noticed; slowing down", finding=str(finding), wait=finding.wait)
            ctx.event("WriteLoop", str(finding), type="Warning")
        slowest = max((finding.wait for finding in ctx.findings), default=None)
        if slowest is None:
            return requeue_after
        itself = any(finding.target == f"{obj.kind} {obj.key}" for finding in ctx.findings)
        # In a fight over the object itself, every blow is an edit.
        generation = None if itself else obj.metadata.generation
        self._slowdown.hold(obj.key, until=self._clock.monotonic() + slowest, generation=generation)
        return max(slowest, requeue_after or 0.0)

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
                return Outcome(result="error", requeue_after=_NOT_OWNED_RETRY, priority=item.priority, error=error)
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
            case _:
                unexpected = not isinstance(error, KubewrightError)
                if unexpected:
                    log.exception("the run failed; trying again with back-off", error=error)
                else:  # the server's own sentence says it all: a quota, a webhook, a missing kind
                    log.error("the run failed; trying again with back-off", error=str(error))
                return Outcome(result="error", retry=True, priority=item.priority, error=error, unexpected=unexpected)


def _leaving_namespaces(error: Forbidden) -> set[str]:
    """The namespaces that nothing could be made in because they are being deleted."""
    words = [cause.message.split() for cause in error.causes if cause.reason == "NamespaceTerminating"]
    return {word[1] for word in words if len(word) > 1}  # namespace shop is being terminated
