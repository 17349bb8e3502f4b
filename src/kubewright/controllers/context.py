"""Context: everything a reconciler may do, in one obvious call each.

    deployment = await ctx.apply(desired_deployment(cache))     # owner and field manager set; a no-op costs nothing
    ctx.condition("Ready", deployment.status.ready_replicas == cache.spec.size)
    ctx.event("Scaled", f"now {cache.spec.size}")

One context per run, for one object. The status is written by `worker` after the reconciler returns, once, if it
changed; nothing else of the object is written unless `patch` is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Coroutine
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import Future
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, TypeVar, final

from kubewright._base.clock import Clock
from kubewright._base.logs import Logger
from kubewright._base.metrics import Metrics
from kubewright.api.codec import to_tree
from kubewright.api.conditions import Condition, ConditionStatus, set_condition
from kubewright.api.names import ObjectKey
from kubewright.api.owners import set_controller
from kubewright.api.resource import KubeObject
from kubewright.cache.cached_client import CachedClient
from kubewright.client.routes import Propagation
from kubewright.controllers.applied_objects import (
    AppliedObjects,
    Claim,
    claim_on,
    is_precondition_failure,
    not_owned_message,
    with_preconditions,
)
from kubewright.controllers.event_recorder import EventRecorder
from kubewright.controllers.foreign_objects import ForeignObjects
from kubewright.controllers.reconcile import Cause
from kubewright.controllers.self_writes import SelfWrites, proves_own_apply, proves_own_patch, without_revision
from kubewright.controllers.write_loops import LoopDetector, WriteLoop
from kubewright.errors import ConfigError, Conflict, Forbidden, Invalid, NotOwned, RetryAfter

__all__ = ("Context",)

K = TypeVar("K", bound=KubeObject)
T = TypeVar("T")


@final
class Context:
    """What a reconciler works with."""

    def __init__(
        self,
        obj: KubeObject,
        *,
        client: CachedClient,
        field_manager: str,
        log: Callable[[], Logger],
        causes: tuple[Cause, ...],
        run_id: str,
        writes: list[str],
        recorder: EventRecorder | None,
        applied: AppliedObjects,
        written: SelfWrites,
        loops: LoopDetector,
        strangers: ForeignObjects,
        owned: Container[type[KubeObject]],
        metrics: Metrics,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.client = client
        """Cached reads, live writes; at home in the object's namespace."""
        self.causes = causes
        """Why this run happens."""
        self.metrics = metrics
        """For counters and the like of your own, shown with those of the manager; asked twice for a name, it gives the
        same one."""
        self.run_id = run_id
        self.findings: list[WriteLoop] = []
        """Loops noticed in this run; the worker slows the object down for them."""
        self.writes = writes
        """What was written, for people: `apply ConfigMap shop/web`."""
        self._bind_log = log
        self._object = obj
        self._manager = field_manager
        self._recorder = recorder
        self._applied = applied
        self._written = written
        self._loops = loops
        self._strangers = strangers
        self._owned = owned
        self._clock = clock
        self._loop = loop
        self._ended = False
        self._waits: set[Future[Any]] = set()

    @cached_property
    def log(self) -> Logger:
        """Knows controller, kind, namespace, name and run id."""
        return self._bind_log()

    def now(self) -> datetime:
        """The time of day by the manager's clock, aware, in UTC: what a test moves by hand."""
        return self._clock.now()

    # --- children ---

    async def apply(
        self,
        child: K,
        *,
        owned: bool = True,
        force: bool = True,
        adopt: dict[str, str] | None = None,
    ) -> K:
        """Server-side apply a child of the object; returns it as it is on the server.

        It gets the object's namespace if it names none, the object as its managing owner (unless `owned=False`) and the
        controller's field manager. An object in a namespace cannot own one that is in none or in another. A child that
        exists and is not ours is left alone: `NotOwned`. One without an owner is taken over if it carries
        all the labels in `adopt` and `confirm` agrees. Nothing is sent if the same was applied before and still stands.
        """
        await self._place(child, owned=owned)
        present = await self.client.find_hidden(type(child), child.key)
        if present is not None and owned:
            await self._check_claim(present, adopt)
        if self._applied.is_noop(child, present):
            assert present is not None
            return present
        with self._written.writing(self._object.key, type(child), child.key) as writing:
            try:
                result = await self._send(child, present, owned=owned, force=force)
            except (Conflict, Invalid) as error:
                if not (owned and is_precondition_failure(error)):
                    raise
                # The cache is behind: there is another object than it shows, or none. Once more, with what there is.
                present = await self.client.live.find(type(child), child.key)
                if present is not None:
                    await self._check_claim(present, adopt)
                result = await self._send(child, present, owned=owned, force=force)
            if proves_own_apply(present, child, result, manager=self._manager):
                writing.version = result.metadata.resource_version
        self._applied.remember(child, result)
        self.wrote("apply", result, before=present)
        return result

    async def create(self, child: K, *, owned: bool = True) -> K:
        """Create a child, such as one with a generated name; later reads of this process see it at once."""
        await self._place(child, owned=owned)
        result = await self.client.create(child)
        self.writes.append(f"create {result.kind} {result.key}")
        if not child.metadata.generate_name:
            title, now = f"{result.kind} {result.key}", self._clock.monotonic()
            self._notice(self._loops.made((type(result), result.key), title, now=now, owner=self._object.metadata.uid))
        return result

    async def patch(self, obj: K, *, subresource: str | None = None, optimistic_lock: bool = False) -> K:
        """Send what was changed in an object since it was read, as the smallest patch; nothing if nothing was."""
        present = await self.client.find(type(obj), obj.key)
        with self._written.writing(self._object.key, type(obj), obj.key) as writing:
            result = await self.client.patch(obj, subresource=subresource, optimistic_lock=optimistic_lock)
            if result is not obj and proves_own_patch(obj, result):
                writing.version = result.metadata.resource_version
        if result is not obj:
            self.wrote("patch", result, before=present)
        return result

    async def delete(self, child: KubeObject, *, propagation: Propagation | None = None) -> None:
        """Delete this very object; that it is gone already is fine."""
        await self.client.delete(child, propagation=propagation)
        self._applied.forget(type(child), child.key)
        self._loops.forget((type(child), child.key))
        self.writes.append(f"delete {child.kind} {child.key}")

    async def remove(self, kind: type[KubeObject], name: str, *, namespace: str | None = None) -> bool:
        """Delete the child of that name, if there is one and the object manages it; whether there was.

        For what `apply` made and is no longer wanted. One of the same name that is somebody else's is left alone.
        """
        home = namespace or self._object.metadata.namespace
        namespaced = await self.client.namespaced(kind)
        present = await self.client.find_hidden(kind, name, namespace=home if namespaced else None)
        if present is None or claim_on(present, self._object) is not Claim.OURS:
            return False
        await self.delete(present)
        return True

    async def confirm(self) -> None:
        """Make sure that the object is still there to take over a child that is nobody's; else the run ends here.

        Asked of the server, not of the cache: while an object is deleted and its children are to stay, the cache may
        show a child without its owner before it shows that the owner is going. Taken over once more, the child would
        be deleted with it. `apply` does this by itself; call it before you write an owner reference in another way.
        """
        kind, mine = type(self._object), self._object.metadata
        try:
            found = await self.client.live.find(kind, self.key)
        except Forbidden:
            return  # a role without `get`: the cache is all there is
        if found is None or found.metadata.uid != mine.uid or found.metadata.deletion_timestamp is not None:
            raise RetryAfter(2.0, f"{self._object.kind} {self.key} is gone or being deleted; it takes over no child")

    # --- telling ---

    def condition(
        self,
        kind: str,
        status: bool | ConditionStatus | None,
        *,
        reason: str = "",
        message: str = "",
    ) -> None:
        """Set a condition of the object's status; its time changes only when its status flips."""
        conditions: list[Condition] | None = getattr(getattr(self._object, "status", None), "conditions", None)
        if conditions is None:
            raise ConfigError(
                f"{self._object.kind} has no status.conditions; derive its status class from kubewright.Status"
            )
        set_condition(
            conditions,
            kind,
            status,
            reason=reason,
            message=message,
            observed_generation=self._object.metadata.generation or None,
            now=self._clock.now().replace(microsecond=0),
        )

    def event(
        self,
        reason: str,
        message: str,
        *,
        type: Literal["Normal", "Warning"] = "Normal",  # noqa: A002 - the word Kubernetes uses
        action: str = "Reconcile",
        related: KubeObject | None = None,
        about: KubeObject | None = None,
    ) -> None:
        """Record an event on the object. Never waits and never fails; repetitions are counted, floods are cut.

        `about` is another object to record it on, such as a pod that was changed for this one; `related` is one more
        that takes part.
        """
        if self._recorder is not None:
            self._recorder.record(about or self._object, reason, message, type=type, action=action, related=related)

    def wait(self, coroutine: Coroutine[Any, Any, T] | Awaitable[T]) -> T:
        """For plain (not async) reconcilers, which run in a thread: await something and return its result.

        `deployment = ctx.wait(ctx.apply(child))`. A TimeoutError once the time of the run is over.
        """

        over = TimeoutError(f"the run for {self._object.kind} {self.key} has been ended; return from it")
        if self._ended:
            if asyncio.iscoroutine(coroutine):
                coroutine.close()  # not begun, and nobody is to be told that it was not awaited
            raise over

        async def awaited() -> T:
            return await coroutine

        waiting = asyncio.run_coroutine_threadsafe(awaited(), self._loop)
        self._waits.add(waiting)
        try:
            if self._ended:  # looked at last: whoever ends the run finds it among the waits, or it is seen here
                waiting.cancel()
            return waiting.result()
        except FutureCancelled:
            raise over from None
        finally:
            self._waits.discard(waiting)

    # --- inside ---

    def end(self) -> None:
        """The run is over, though its thread may not know: what it waits for is cancelled, and so is all it begins."""
        self._ended = True
        for waiting in tuple(self._waits):
            waiting.cancel()

    def replace(self, obj: KubeObject) -> None:
        """The object as it is now, after the framework itself wrote it."""
        self._object = obj

    async def _place(self, child: KubeObject, *, owned: bool) -> None:
        """Where a child goes that does not say so itself, and whom it belongs to."""
        if not await self.client.namespaced(type(child)):
            child.metadata.namespace = ""
        elif not child.metadata.namespace:
            child.metadata.namespace = self._object.metadata.namespace or self.client.namespace
        if owned:
            set_controller(self._object, child)

    async def _send(self, child: K, present: KubeObject | None, *, owned: bool, force: bool) -> K:
        document = with_preconditions(present, child) if owned else child
        return await self.client.apply(document, field_manager=self._manager, force=force)

    async def _check_claim(self, present: KubeObject, adopt: dict[str, str] | None) -> None:
        owner = f"{self._object.kind} {self._object.key}"
        claim = claim_on(present, self._object, labels=adopt)
        if claim is Claim.OURS:
            return
        if claim is Claim.ADOPTABLE:
            await self.confirm()
            return
        if claim is Claim.STRANGER:
            self._strangers.met(present, self.key)
            raise NotOwned(not_owned_message(present, owner, labels=adopt))
        child = f"{present.kind} {present.key}"
        if claim is Claim.LEAVING:
            reason = f"{child} is being deleted; {owner} waits until it is gone"
        else:
            reason = (
                f"{child} belongs to an earlier {owner}, which is gone; waiting for the garbage collector to delete it"
            )
        self.event("WaitingForRemoval", reason, related=present)
        # The deletion of a child of a kind that is owned wakes us; the time is only there in case it never comes.
        raise RetryAfter(30.0 if type(present) in self._owned else 2.0, reason)

    def wrote(self, verb: str, result: KubeObject, *, before: KubeObject | None) -> None:
        """Take note of a write, and of the loop that it may be a part of."""
        self.writes.append(f"{verb} {result.kind} {result.key}")
        finding = self._loops.wrote(
            (type(result), result.key),
            f"{result.kind} {result.key}",
            before=None if before is None else without_revision(before),
            after=without_revision(result),
            now=self._clock.monotonic(),
            tree=to_tree,
            owner=self._object.metadata.uid,
        )
        self._notice(finding)

    def _notice(self, finding: WriteLoop | None) -> None:
        if finding is not None:
            self.findings.append(finding)

    @property
    def key(self) -> ObjectKey:
        """Namespace and name of the object."""
        return self._object.key
