"""ReconcileState: what the framework keeps about one reconcile while it runs, and the reconciler does not see.

The object as it is now, what was written and the write loops found in that, and what a plain reconciler waits for in
its thread. `reconcile_handler` makes one for each reconcile and reads it; `context` writes it in the reconciler's name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import Future
from typing import Any, TypeVar, final

import msgspec

from kubewright._base.clock import Clock
from kubewright._base.metrics import Metrics
from kubewright.api.codec import to_tree
from kubewright.api.resource import KubeObject
from kubewright.controllers.event_recorder import EventRecorder
from kubewright.controllers.memory import ControllerMemory
from kubewright.controllers.self_writes import without_revision
from kubewright.controllers.write_loops import WriteLoop

__all__ = ("ReconcileEnvironment", "ReconcileState")

T = TypeVar("T")


@final
class ReconcileEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """What all reconciles of one controller share."""

    field_manager: str
    """The manager of the fields that `Context.apply` sends."""
    owned: frozenset[type[KubeObject]]
    """The kinds whose changes trigger a reconcile of their owner."""
    memory: ControllerMemory
    recorder: EventRecorder | None
    metrics: Metrics
    clock: Clock


@final
class ReconcileState:
    """One reconcile, seen from inside."""

    def __init__(self, obj: KubeObject, environment: ReconcileEnvironment, writes: list[str]) -> None:
        """What is written is appended to `writes`, for people: `apply ConfigMap shop/web`."""
        self.object = obj
        """The object as it is now; the framework itself may have written it."""
        self.environment = environment
        self.writes = writes
        self.write_loops: list[WriteLoop] = []
        """Found in this reconcile; the controller slows the object down for them."""
        self._loop = asyncio.get_running_loop()
        self._cancelled = False
        self._waits: set[Future[Any]] = set()

    # --- writes ---

    def record_write(self, verb: str, result: KubeObject, *, before: KubeObject | None) -> None:
        """Note a write, and the write loop it may be a part of."""
        self.writes.append(f"{verb} {result.kind} {result.key}")
        loop = self.environment.memory.write_loops.record_write(
            (type(result), result.key),
            f"{result.kind} {result.key}",
            before=None if before is None else without_revision(before),
            after=without_revision(result),
            now=self.environment.clock.monotonic(),
            tree=to_tree,
            owner=self.object.metadata.uid,
        )
        self._note(loop)

    def record_creation(self, result: KubeObject, *, named: bool) -> None:
        """Note that a child was created. If the server `named` it, it is no second one in the place of another."""
        self.writes.append(f"create {result.kind} {result.key}")
        if not named:
            loop = self.environment.memory.write_loops.record_creation(
                (type(result), result.key),
                f"{result.kind} {result.key}",
                now=self.environment.clock.monotonic(),
                owner=self.object.metadata.uid,
            )
            self._note(loop)

    def record_deletion(self, child: KubeObject) -> None:
        """Note that a child was deleted, on purpose."""
        memory = self.environment.memory
        memory.applied.forget(type(child), child.key)
        memory.write_loops.forget((type(child), child.key))
        self.writes.append(f"delete {child.kind} {child.key}")

    def _note(self, loop: WriteLoop | None) -> None:
        if loop is not None:
            self.write_loops.append(loop)

    # --- waits ---

    def wait(self, coroutine: Coroutine[Any, Any, T] | Awaitable[T]) -> T:
        """Await something for a reconciler in a thread; TimeoutError once the reconcile is cancelled."""
        obj = self.object
        cancelled = TimeoutError(f"the reconcile of {obj.kind} {obj.key} has been cancelled; return from it")
        if self._cancelled:
            if asyncio.iscoroutine(coroutine):
                coroutine.close()  # it never started, so asyncio must not warn that nobody awaited it
            raise cancelled

        async def awaited() -> T:
            return await coroutine

        waiting = asyncio.run_coroutine_threadsafe(awaited(), self._loop)
        self._waits.add(waiting)
        try:
            if self._cancelled:  # checked last: `cancel_waits` finds the wait in the set, or the flag is seen here
                waiting.cancel()
            return waiting.result()
        except FutureCancelled:
            raise cancelled from None
        finally:
            self._waits.discard(waiting)

    def cancel_waits(self) -> None:
        """The reconcile is cancelled while its thread runs on: cancel what the thread waits for, now and later."""
        self._cancelled = True
        for waiting in tuple(self._waits):
            waiting.cancel()
