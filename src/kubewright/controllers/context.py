"""Context: everything a reconciler may do, in one obvious call each.

    deployment = await ctx.apply(desired_deployment(cache))     # owner and field manager set; a no-op costs nothing
    ctx.condition("Ready", deployment.status.ready_replicas == cache.spec.size)
    ctx.event("Scaled", f"now {cache.spec.size}")

One context per run, for one object. The status is written by `worker` after the reconciler returns, once, if it
changed; nothing else of the object is written unless `patch` is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, TypeVar, final

from kubewright._base.clock import Clock
from kubewright._base.logs import Logger
from kubewright.api.codec import to_tree
from kubewright.api.conditions import Condition, ConditionStatus, set_condition
from kubewright.api.names import ObjectKey
from kubewright.api.owners import set_controller
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.cached_client import CachedClient
from kubewright.client.routes import Propagation
from kubewright.controllers.applies import Applied, Claim, claim_on
from kubewright.controllers.loops import Finding, LoopDetector
from kubewright.controllers.reconcile import Cause
from kubewright.controllers.recorder import Recorder
from kubewright.controllers.written import Written, is_what_was_meant, is_what_was_sent, timeless
from kubewright.errors import ConfigError, NotOwned, RetryAfter

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
        recorder: Recorder | None,
        applied: Applied,
        written: Written,
        loops: LoopDetector,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.client = client
        """Cached reads, live writes; at home in the object's namespace."""
        self.causes = causes
        """Why this run happens."""
        self.run_id = run_id
        self.findings: list[Finding] = []
        """Loops noticed in this run; the worker slows the object down for them."""
        self.writes: list[str] = []
        """What was written, for people: `apply ConfigMap shop/web`."""
        self._bind_log = log
        self._object = obj
        self._manager = field_manager
        self._recorder = recorder
        self._applied = applied
        self._written = written
        self._loops = loops
        self._clock = clock
        self._loop = loop

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

        It gets the object as its managing owner (unless `owned=False`) and the controller's field manager. A child that
        exists and is not ours is left alone: `NotOwned`. One without an owner is taken over if it carries
        all the labels in `adopt`. Nothing is sent if the same was applied before and still stands.
        """
        if definition_of(type(child)).namespaced and not child.metadata.namespace:
            child.metadata.namespace = self._object.metadata.namespace
        if owned:
            set_controller(self._object, child)
        present = await self.client.find(type(child), child.key)
        if present is not None and owned:
            self._check_claim(present, adopt)
        if self._applied.is_noop(child, present):
            assert present is not None
            return present
        with self._written.writing(self._object.key, type(child), child.key) as writing:
            result = await self.client.apply(child, field_manager=self._manager, force=force)
            if is_what_was_sent(present, child, result, manager=self._manager):
                writing.version = result.metadata.resource_version
        self._applied.remember(child, result)
        self._wrote("apply", result, before=present)
        return result

    async def create(self, child: K, *, owned: bool = True) -> K:
        """Create a child, such as one with a generated name; later reads of this process see it at once."""
        if definition_of(type(child)).namespaced and not child.metadata.namespace:
            child.metadata.namespace = self._object.metadata.namespace
        if owned:
            set_controller(self._object, child)
        result = await self.client.create(child)
        self.writes.append(f"create {result.kind} {result.key}")
        return result

    async def patch(self, obj: K, *, subresource: str | None = None, optimistic_lock: bool = False) -> K:
        """Send what was changed in an object since it was read, as the smallest patch; nothing if nothing was."""
        present = await self.client.find(type(obj), obj.key)
        with self._written.writing(self._object.key, type(obj), obj.key) as writing:
            result = await self.client.patch(obj, subresource=subresource, optimistic_lock=optimistic_lock)
            if result is not obj and is_what_was_meant(obj, result):
                writing.version = result.metadata.resource_version
        if result is not obj:
            self._wrote("patch", result, before=present)
        return result

    async def delete(self, child: KubeObject, *, propagation: Propagation | None = None) -> None:
        """Delete this very object; that it is gone already is fine."""
        await self.client.delete(child, propagation=propagation)
        self._applied.forget(type(child), child.key)
        self.writes.append(f"delete {child.kind} {child.key}")

    async def remove(self, kind: type[KubeObject], name: str, *, namespace: str | None = None) -> bool:
        """Delete the child of that name, if there is one and the object manages it; whether there was.

        For what `apply` made and is no longer wanted. One of the same name that is somebody else's is left alone.
        """
        home = namespace or self._object.metadata.namespace
        present = await self.client.find(kind, name, namespace=home if definition_of(kind).namespaced else None)
        if present is None or claim_on(present, self._object) is not Claim.OURS:
            return False
        await self.delete(present)
        return True

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

        `deployment = ctx.wait(ctx.apply(child))`
        """

        async def awaited() -> T:
            return await coroutine

        return asyncio.run_coroutine_threadsafe(awaited(), self._loop).result()

    # --- inside ---

    def replace(self, obj: KubeObject) -> None:
        """The object as it is now, after the framework itself wrote it."""
        self._object = obj

    def _check_claim(self, present: KubeObject, adopt: dict[str, str] | None) -> None:
        owner = f"{self._object.kind} {self._object.key}"
        claim = claim_on(present, self._object, labels=adopt)
        if claim in (Claim.OURS, Claim.ADOPTABLE):
            return
        if claim is Claim.LEAVING:
            # Its deletion wakes us; the time is only there in case it never ends.
            raise RetryAfter(30.0, f"{present.kind} {present.key} is being deleted; {owner} waits until it is gone")
        if claim is Claim.EARLIER:
            raise RetryAfter(
                2.0, f"{present.kind} {present.key} belongs to an earlier {owner}; waiting for its removal"
            )
        hint = f", or label it with {adopt} to have it adopted" if adopt else ""
        raise NotOwned(
            f"{present.kind} {present.key} exists and is not managed by {owner}, so it is left as it is; "
            f"rename one of the two or delete it{hint}"
        )

    def _wrote(self, verb: str, result: KubeObject, *, before: KubeObject | None) -> None:
        self.writes.append(f"{verb} {result.kind} {result.key}")
        finding = self._loops.wrote(
            (type(result), result.key),
            f"{result.kind} {result.key}",
            before=None if before is None else timeless(before),
            after=timeless(result),
            now=self._clock.monotonic(),
            tree=to_tree,
        )
        if finding is not None:
            self.findings.append(finding)

    @property
    def key(self) -> ObjectKey:
        """Namespace and name of the object."""
        return self._object.key
