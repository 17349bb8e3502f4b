"""The kubelet of the simulated nodes: lets pods live in their status, on every node at once.

A controller of pods. Each run asks the pod's `PodLifecycle` how far it is by now, writes the status if it changed,
tells events, writes logs, and comes back when the next thing is due. What a pod's containers do is decided in
`programs`. A pod that is being deleted stays until its containers have ended, not ready from the first moment, and is
then removed for good. Registered by `node_controllers`.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from contextlib import suppress
from typing import Literal, final

from kubewright._base.clock import Clock, SystemClock
from kubewright.api.names import ObjectKey
from kubewright.cache.changes import Change
from kubewright.cluster.kubelet.failure_injection import FailureInjection
from kubewright.cluster.kubelet.logs import Logs
from kubewright.cluster.kubelet.pod_addresses import PodAddresses
from kubewright.cluster.kubelet.pods.lifecycle import Missing, PodLifecycle
from kubewright.cluster.kubelet.pods.references import Kind, missing_of, references_of
from kubewright.cluster.kubelet.pods.status import status_of, status_patch
from kubewright.cluster.kubelet.pods.timing import Timing
from kubewright.cluster.kubelet.reference_watch import ReferenceLookup
from kubewright.cluster.kubelet.sandbox.sandboxes import Sandboxes
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.predicates import Predicate, on, spec_or_metadata_changed
from kubewright.controllers.reconcile import Result
from kubewright.errors import Conflict, NotFound
from kubewright.k8s.core.v1 import Node, Pod

__all__ = ("Kubelet",)

_LONGEST_RETRY = 2.0
_NOTHING_MISSING = Missing()


@final
class Kubelet:
    """The pods on a set of simulated nodes."""

    def __init__(
        self,
        nodes: Container[str],
        *,
        timing: Timing | None = None,
        logs: Logs | None = None,
        machines: Sandboxes | None = None,
        silence: FailureInjection | None = None,
        host_ip: str = "127.0.0.1",
        clock: Clock | None = None,
        concurrency: int = 16,
    ) -> None:
        """`nodes` are the names of the nodes whose pods live here; those of others are left alone."""
        self.logs = logs or Logs()
        self._machines = machines
        self._nodes = nodes
        self._silence = silence or FailureInjection()
        self._left: set[ObjectKey] = set()
        """Pods of silent nodes."""
        self._timing = timing or Timing()
        self._host_ip = host_ip
        self._addresses = PodAddresses()
        self._clock = clock or SystemClock()
        self._concurrency = concurrency
        self._inputs = ReferenceLookup(self._clock)
        self._lives: dict[ObjectKey, PodLifecycle] = {}
        self._retries: dict[ObjectKey, float] = {}
        self._removed: set[str] = set()

    def declaration(self) -> Declaration[Pod]:
        """What a manager registers."""
        return controller(
            Pod,
            name="kubelet",
            when=spec_or_metadata_changed | _assigned_or_gated,
            watches=[Watch(Pod, self._gone, when=on("deleted")), Watch(Node, self._node_changed)],
            concurrency=self._concurrency,
            deleting=True,
        )(self.reconcile)

    async def reconcile(self, pod: Pod, ctx: Context) -> Result | None:
        """Bring one pod up to this moment."""
        if not pod.spec.node_name or pod.spec.node_name not in self._nodes:
            return None
        if pod.spec.node_name in self._silence:
            self._left.add(pod.key)
            return None
        now, wall = self._clock.monotonic(), self._clock.now()
        life = self._life(pod, now)
        missing = await self._missing(pod, life, ctx)
        life.advance(pod, missing, now=now, wall=wall)
        self._tell(pod, life, ctx)
        if self._machines is not None:
            self._machines.note(pod, life, host_ip=self._host_ip, pod_ip=self._address(pod))
        if not await self._write(pod, life, ctx):
            return None
        if life.over and pod.metadata.deletion_timestamp is not None:
            await self._remove(pod, ctx)
            return None
        return self._next(pod, life)

    def _life(self, pod: Pod, now: float) -> PodLifecycle:
        life = self._lives.get(pod.key)
        if life is None or life.uid != pod.metadata.uid:
            life = PodLifecycle(pod, timing=self._timing, now=now, wall=self._clock.now())
            self._lives[pod.key] = life
        return life

    async def _missing(self, pod: Pod, life: PodLifecycle, ctx: Context) -> Missing:
        """Looked up only for who is about to start something, and refers to something."""
        if not life.asks_for_inputs(now=self._clock.monotonic()) or not references_of(pod):
            return _NOTHING_MISSING

        async def find(kind: Kind, name: str) -> frozenset[str] | None:
            return await self._inputs.find(kind, name, ctx.client)

        return await missing_of(pod, find)

    def _tell(self, pod: Pod, life: PodLifecycle, ctx: Context) -> None:
        namespace, name = pod.metadata.namespace, pod.metadata.name
        for effect in life.effects:
            match effect.what:
                case "event":
                    weight: Literal["Normal", "Warning"] = "Warning" if effect.warning else "Normal"
                    ctx.event(effect.reason, effect.message, type=weight, action=effect.reason)
                case "started":
                    log = self.logs.started(namespace, name, effect.container)
                    log.write(self._clock.now(), effect.output)
                case "ended":
                    self.logs.ended(namespace, name, effect.container)
        life.effects.clear()

    async def _write(self, pod: Pod, life: PodLifecycle, ctx: Context) -> bool:
        """Send the status if it changed; whether the pod is still there."""
        status = status_of(
            pod,
            life,
            host_ip=self._host_ip,
            pod_ip=self._address(pod),
            now=self._clock.monotonic(),
            wall=self._clock.now(),
        )
        patch = status_patch(pod, status)
        if patch is None:
            return True
        try:
            await ctx.client.patch_by_name(Pod, pod.key, patch, form="strategic", subresource="status")
        except NotFound:
            return False
        return True  # a conflict means a namesake in its place: the next run sees that one

    def _address(self, pod: Pod) -> str:
        return self._host_ip if pod.spec.host_network else self._addresses.of(pod)

    async def _remove(self, pod: Pod, ctx: Context) -> None:
        """The containers have ended: the pod can go. Finalizers may hold it still; that is not the kubelet's."""
        if pod.metadata.uid in self._removed:
            return
        with suppress(Conflict):  # a namesake is in its place
            await ctx.client.delete(pod, grace_period=0)
        self._removed.add(pod.metadata.uid)

    def _next(self, pod: Pod, life: PodLifecycle) -> Result | None:
        if life.blocked:
            wait = self._retries.get(pod.key, self._timing.missing_retry)
            self._retries[pod.key] = min(_LONGEST_RETRY, 2 * wait)
            return Result(requeue_after=wait)
        self._retries.pop(pod.key, None)
        if math.isinf(life.wake_at):
            return None
        return Result(requeue_after=max(0.0, life.wake_at - self._clock.monotonic()))

    def _node_changed(self, change: Change[Node]) -> Iterable[ObjectKey]:
        """When a node is back from silence, its pods are looked at, with what became of them meanwhile."""
        if not self._silence.note(change):
            return ()
        found = {*self._lives, *self._left}
        self._left.clear()
        return found

    def _gone(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """A pod is gone for good: forget it."""
        uid = change.old_metadata.uid if change.old_metadata is not None else ""
        life = self._lives.get(change.key)
        if life is not None and life.uid == uid:
            del self._lives[change.key]
            self._retries.pop(change.key, None)
            self.logs.forget(change.key.namespace, change.key.name)
            if self._machines is not None:
                self._machines.forget(change.key.namespace, change.key.name)
        self._left.discard(change.key)
        self._addresses.release(uid)
        self._removed.discard(uid)
        return ()


def _by_others(change: Change[Pod]) -> bool:
    """Assigned to a node, said not to be ready, or a condition of a readiness gate has changed.

    None of this is told by the generation. Who says that a pod is not ready may be the controller of nodes, while this
    process was suspended, and is then to be put right.
    """
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    if old.spec.node_name != new.spec.node_name:
        return True
    if _is_ready(old) and not _is_ready(new):
        return True
    if not new.spec.readiness_gates:
        return False
    gates = {gate.condition_type for gate in new.spec.readiness_gates}

    def states(pod: Pod) -> dict[str, str]:
        return {item.type: item.status for item in pod.status.conditions or () if item.type in gates}

    return states(old) != states(new)


def _is_ready(pod: Pod) -> bool:
    return any(item.type == "Ready" and item.status == "True" for item in pod.status.conditions or ())


_assigned_or_gated = Predicate(_by_others, "assigned_or_gated")
