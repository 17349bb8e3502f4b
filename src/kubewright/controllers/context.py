"""Context: everything a reconciler may do, in one obvious call each.

    deployment = await ctx.apply(desired_deployment(cache))     # owner and field manager set; a no-op costs nothing
    ctx.condition("Ready", deployment.status.ready_replicas == cache.spec.size)
    ctx.event("Scaled", f"now {cache.spec.size}")

One context per reconcile, for one object, made by `reconcile_handler`. The handler writes the status after the
reconciler returns, once, if it changed; nothing else of the object is written unless the reconciler calls `patch`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Literal, TypeVar, final

from kubewright._base.logs import Logger
from kubewright.api.codec import problems_of
from kubewright.api.conditions import Condition, ConditionStatus, set_condition
from kubewright.api.field_errors import FieldError
from kubewright.api.names import ObjectKey
from kubewright.api.owners import controller_of, set_controller
from kubewright.api.resource import KubeObject
from kubewright.cache.cached_client import CachedClient
from kubewright.client.routes import Propagation
from kubewright.controllers.applied_objects import (
    Claim,
    claim_on,
    is_precondition_failure,
    not_owned_message,
    with_preconditions,
)
from kubewright.controllers.reconcile import Cause
from kubewright.controllers.reconcile_state import ReconcileState
from kubewright.controllers.self_writes import proves_own_apply, proves_own_patch
from kubewright.errors import BadRequest, ConfigError, Conflict, Forbidden, Invalid, NotFound, NotOwned, RetryAfter

__all__ = ("Context",)

K = TypeVar("K", bound=KubeObject)
T = TypeVar("T")

# Seconds until the next try when a child's place is taken by an object that will be deleted. The deletion of an object
# of an owned kind triggers the reconcile; then the time only covers a deletion that never comes.
_RECHECK_OWNED: Final = 30.0
_RECHECK_OTHERS: Final = 2.0
# As the server's schema of metav1.Condition has it.
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


@final
class Context:
    """What a reconciler works with."""

    def __init__(
        self,
        state: ReconcileState,
        *,
        client: CachedClient,
        reconcile_id: str,
        causes: tuple[Cause, ...],
        log: Callable[[], Logger],
    ) -> None:
        self.client = client
        """Cached reads, live writes; calls that name no namespace use the object's, and `"*"` lists every one."""
        self.causes = causes
        """What triggered this reconcile."""
        self.metrics = state.environment.metrics
        """For metrics of your own, shown with those of the manager; the same name gives the same metric."""
        self.reconcile_id = reconcile_id
        """The id of this reconcile, as `reconcileID` in the log."""
        self._bind_log = log
        self._state = state
        self._environment = state.environment
        self._memory = state.environment.memory

    @cached_property
    def log(self) -> Logger:
        """A logger bound to controller, kind, namespace, name and reconcileID."""
        return self._bind_log()

    @property
    def key(self) -> ObjectKey:
        """Namespace and name of the object."""
        return self._state.object.key

    @property
    def writes(self) -> tuple[str, ...]:
        """What this reconcile has written so far, for people: `apply ConfigMap shop/web`."""
        return tuple(self._state.writes)

    @property
    def problems(self) -> tuple[FieldError, ...]:
        """What the class does not know of the object as it is stored: values of enums, types, required attributes.

        Empty for nearly every object. The controller has recorded an event; a condition may say it as well:
        `ctx.condition("Ready", False, reason="InvalidValue", message="; ".join(p.message for p in ctx.problems))`.
        """
        return problems_of(self._state.object)

    def now(self) -> datetime:
        """The time of day by the manager's clock, aware, in UTC; a test moves that clock by hand."""
        return self._environment.clock.now()

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

        The child gets the object's namespace if it names none, the object as its controller owner (unless
        `owned=False`) and the controller's field manager. An object in a namespace cannot own one in another namespace
        or in none. An existing object that the object does not own is left alone: `NotOwned`. One without a controller
        is adopted if it carries all the labels in `adopt` and `confirm` agrees. Nothing is sent if the controller has
        applied the same before and the cached object still has it.
        """
        self._check_child("apply", child)
        if not child.metadata.name:
            raise ConfigError(
                f"ctx.apply was given a {child.kind} without a name, and an apply finds an object by its name; give it "
                "one, or use ctx.create with generate_name"
            )
        await self._set_namespace_and_owner(child, owned=owned)
        present = await self.client.find_hidden(type(child), child.key)
        if present is not None and owned:
            await self._check_claim(present, child, adopt)
        if self._memory.applied.is_noop(child, present):
            assert present is not None
            return present
        with self._memory.self_writes.track(self._state.object.key, type(child), child.key) as write:
            try:
                result = await self._send(child, present, owned=owned, force=force)
            except (Conflict, Invalid) as error:
                if not (owned and is_precondition_failure(error)):
                    raise
                # The cache is stale: the server has another object than the cache shows, or none (decision 0012).
                # Read the object from the server, check it again, and send the apply once more.
                present = await self.client.live.find(type(child), child.key)
                if present is not None:
                    await self._check_claim(present, child, adopt)
                result = await self._send(child, present, owned=owned, force=force)
            if proves_own_apply(present, child, result, manager=self._environment.field_manager):
                write.version = result.metadata.resource_version
        self._memory.applied.remember(child, result)
        self._state.record_write("apply", result, before=present)
        return result

    async def create(self, child: K, *, owned: bool = True) -> K:
        """Create a child, such as one with a generated name; later reads of this process see it at once."""
        self._check_child("create", child)
        await self._set_namespace_and_owner(child, owned=owned)
        result = await self.client.create(child)
        self._state.record_creation(result, named=bool(child.metadata.generate_name))
        return result

    async def patch(self, obj: K, *, subresource: str | None = None, optimistic_lock: bool = False) -> K:
        """Send what was changed in an object since it was read, as the smallest merge patch; nothing if nothing was.

        Go on with the object that is returned; the one given still knows what was read first.

        The patch carries no resourceVersion unless `optimistic_lock` is set: a change of other fields by others is no
        conflict.
        """
        _check_object("patch", obj)
        present = await self.client.find(type(obj), obj.key)
        with self._memory.self_writes.track(self._state.object.key, type(obj), obj.key) as write:
            result = await self.client.patch(obj, subresource=subresource, optimistic_lock=optimistic_lock)
            if result is not obj and proves_own_patch(obj, result):
                write.version = result.metadata.resource_version
        if result is not obj:
            self._state.record_write("patch", result, before=present)
        return result

    async def delete(self, child: KubeObject, *, propagation: Propagation | None = None) -> None:
        """Delete this very object, by its uid (decision 0004); that it is gone already is fine."""
        _check_object("delete", child, by_name="; ctx.remove(Kind, name) deletes one by its name")
        await self.client.delete(child, propagation=propagation)
        self._state.record_deletion(child)

    async def remove(self, kind: type[KubeObject], name: str, *, namespace: str | None = None) -> bool:
        """Delete the child of that name if the object owns it; returns whether it did.

        For what `apply` created and is no longer wanted. An object of that name that is not owned is left alone.
        """
        _check_name(kind, name)
        home = namespace or self._state.object.metadata.namespace
        namespaced = await self.client.namespaced(kind)
        present = await self.client.find_hidden(kind, name, namespace=home if namespaced else None)
        if present is None or claim_on(present, self._state.object) is not Claim.OWNED:
            return False
        await self.delete(present)
        return True

    async def confirm(self) -> None:
        """Check on the server that the object exists and is not being deleted, before it adopts a child.

        If it does not, RetryAfter ends the reconcile. The cache cannot answer this: while an object is deleted with
        its children orphaned, the cache may show a child without its owner before it shows that the owner is
        terminating. Adopted again, the child would be deleted with it. Kubernetes' own controllers do the same
        (`RecheckDeletionTimestamp` in kubernetes/pkg/controller/controller_ref_manager.go). `apply` calls it; call it
        before you write an owner reference in another way.
        """
        kind, mine = type(self._state.object), self._state.object.metadata
        try:
            found = await self.client.live.find(kind, self.key)
        except Forbidden:
            return  # the role does not allow `get`: the cache is all there is
        if found is None or found.metadata.uid != mine.uid or found.metadata.deletion_timestamp is not None:
            raise RetryAfter(2.0, f"{self._state.object.kind} {self.key} is gone or being deleted; it adopts no child")

    # --- conditions and events ---

    def condition(
        self,
        type: str,  # noqa: A002 - as the field is called
        status: bool | ConditionStatus | None,
        *,
        reason: str = "",
        message: str = "",
    ) -> None:
        """Set a condition of the object's status; lastTransitionTime changes only when its status does."""
        _check_condition(type, status, reason)
        conditions: list[Condition] | None = getattr(getattr(self._state.object, "status", None), "conditions", None)
        if conditions is None:
            raise ConfigError(
                f"{self._state.object.kind} has no status.conditions; derive its status class from kubewright.Status"
            )
        set_condition(
            conditions,
            type,
            status,
            reason=reason,
            message=message,
            observed_generation=self._state.object.metadata.generation or None,
            now=self._environment.clock.now().replace(microsecond=0),
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
        """Record an event on the object. Never waits, and fails for wrong arguments alone; repetitions are counted.

        `about` is another object to record it on, such as a pod that was changed for this one; `related` is a
        secondary object of the event.
        """
        _check_event(reason, message, type)
        for option, obj in (("about", about), ("related", related)):
            if obj is not None:
                _check_object(f"event({option}=...)", obj)
        recorder = self._environment.recorder
        if recorder is not None:
            recorder.record(about or self._state.object, reason, message, type=type, action=action, related=related)

    # --- plain reconcilers ---

    def wait(self, coroutine: Coroutine[Any, Any, T] | Awaitable[T]) -> T:
        """For plain (not async) reconcilers, which run in a thread: await something and return its result.

        `deployment = ctx.wait(ctx.apply(child))`. Raises TimeoutError once the reconcile is cancelled.
        """
        _check_awaitable(coroutine)
        return self._state.wait(coroutine)

    # --- inside ---

    def _check_child(self, verb: str, child: KubeObject) -> None:
        _check_object(verb, child)
        mine = self._state.object
        same = type(child) is type(mine) and child.metadata.name == mine.metadata.name
        if same and child.metadata.namespace in ("", mine.metadata.namespace):
            raise ConfigError(
                f"ctx.{verb} was given {mine.kind} {self.key} itself, which is no child of its own; change its status "
                "and return, or send other changes of it with ctx.patch"
            )

    async def _set_namespace_and_owner(self, child: KubeObject, *, owned: bool) -> None:
        if not await self.client.namespaced(type(child)):
            child.metadata.namespace = ""
        elif not child.metadata.namespace:
            child.metadata.namespace = self._state.object.metadata.namespace or self.client.namespace
        if owned:
            set_controller(self._state.object, child)

    async def _send(self, child: K, present: KubeObject | None, *, owned: bool, force: bool) -> K:
        document = with_preconditions(present, child) if owned else child
        return await self.client.apply(document, field_manager=self._environment.field_manager, force=force)

    async def _check_claim(self, present: KubeObject, wanted: KubeObject, adopt: dict[str, str] | None) -> None:
        """Return if the object may write this one; else raise what says why not."""
        owner = f"{self._state.object.kind} {self._state.object.key}"
        claim = claim_on(present, self._state.object, labels=adopt)
        if claim is Claim.OWNED:
            return
        if claim is Claim.ADOPTABLE:
            await self.confirm()
            return
        if claim is Claim.FOREIGN:
            self._memory.foreign.add(present, self.key)
            labels = adopt if await self._could_adopt(present, wanted, adopt) else None
            raise NotOwned(not_owned_message(present, owner, labels=labels))
        child = f"{present.kind} {present.key}"
        if claim is Claim.TERMINATING:
            reason = f"{child} is being deleted; {owner} waits until it is gone"
        else:
            reason = (
                f"{child} belongs to an earlier {owner}, which is gone; waiting for the garbage collector to delete it"
            )
        self.event("WaitingForRemoval", reason, related=present)
        raise RetryAfter(_RECHECK_OWNED if type(present) in self._environment.owned else _RECHECK_OTHERS, reason)

    async def _could_adopt(self, present: KubeObject, wanted: KubeObject, labels: dict[str, str] | None) -> bool:
        """Whether the object would be adopted if it had the labels: a trial of the apply that would do so.

        A Deployment made by somebody else, for one, has another selector, and no apply changes that. People are told of
        the labels only if they help.
        """
        if not labels or controller_of(present) is not None:
            return False
        document = with_preconditions(present, wanted)
        manager = self._environment.field_manager
        try:
            await self.client.live.apply(document, field_manager=manager, force=True, dry_run=True)
        except (BadRequest, Conflict, Forbidden, Invalid, NotFound):
            return False
        return True


def _check_object(verb: str, given: object, *, by_name: str = "") -> None:
    """One object of a kind. ConfigError for what people give instead."""
    if isinstance(given, KubeObject):
        return
    if isinstance(given, list | tuple | set):
        raise ConfigError(f"ctx.{verb} takes one object; call it for each of the {len(given)}")
    if isinstance(given, dict):
        raise ConfigError(
            f"ctx.{verb} takes an object and no dict; write from_tree(Kind, tree), or Dynamic for any kind"
        )
    shown = f"the class {given.__name__}" if isinstance(given, type) else repr(given)
    raise ConfigError(f"ctx.{verb} takes an object, such as ConfigMap.named('web'), and was given {shown}{by_name}")


def _check_name(kind: object, name: object) -> None:
    if not (isinstance(kind, type) and issubclass(kind, KubeObject) and isinstance(name, str) and name):
        raise ConfigError("ctx.remove takes a kind and a name, as in ctx.remove(ConfigMap, 'web')")


def _check_condition(title: object, status: object, reason: str) -> None:
    if not isinstance(title, str) or not title:
        raise ConfigError(f"ctx.condition was given the type {title!r}; write it like ctx.condition('Ready', True)")
    if not (status is None or isinstance(status, bool) or status in ("True", "False", "Unknown")):
        raise ConfigError(f"the condition {title} was given {status!r}; it is True, False, or None for unknown")
    if reason and not _REASON.fullmatch(reason):
        raise ConfigError(
            f"the condition {title} was given the reason {reason!r}; a reason is one word, such as NotEnoughPods, and "
            "the message is the sentence"
        )


def _check_event(reason: object, message: object, given: object) -> None:
    if not isinstance(reason, str) or not isinstance(message, str):
        raise ConfigError(f"ctx.event takes strings, and was given {reason!r}, {message!r}; write str(...) around it")
    if given not in ("Normal", "Warning"):
        raise ConfigError(f"the event {reason} was given the type {given!r}; it is Normal or Warning")


def _check_awaitable(given: object) -> None:
    """What a thread may wait for. On the event loop, where `await` belongs, it would wait for itself for ever."""
    if not isinstance(given, Awaitable):
        raise ConfigError(f"ctx.wait was given {given!r}, which is nothing to wait for; give it the call itself")
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    if asyncio.iscoroutine(given):
        given.close()
    raise ConfigError("ctx.wait is for plain functions, and would wait for itself here; write await instead")
