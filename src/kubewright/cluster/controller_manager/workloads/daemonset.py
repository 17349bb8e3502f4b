"""DaemonSet: one pod on every node it belongs on.

Where it belongs is decided in `eligibility`, what a rolling update replaces in `daemon_update`. Pods are made for a
node but placed by the scheduler, as everybody else's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, final

from kubewright._base.clock import Clock
from kubewright.api.names import ObjectKey
from kubewright.api.selectors import Selector
from kubewright.cache.changes import Change
from kubewright.cluster.controller_manager.workloads.controller_refs import ControllerRefManager
from kubewright.cluster.controller_manager.workloads.daemon_update import (
    GENERATION,
    GENERATION_LABEL,
    allows_surge,
    is_updated,
    next_replacements,
)
from kubewright.cluster.controller_manager.workloads.eligibility import belongs, bound_to, target_of
from kubewright.cluster.controller_manager.workloads.pod_writes import BURST, create_many, create_pod, delete_pods
from kubewright.cluster.controller_manager.workloads.pods import (
    is_available,
    is_finished,
    is_ready,
    next_available,
    pod_from,
)
from kubewright.cluster.controller_manager.workloads.revisions import REVISION_LABEL, in_order, latest_revision, trim
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.predicates import Predicate, any_version
from kubewright.controllers.reconcile import Result
from kubewright.k8s.apps.v1 import ControllerRevision, DaemonSet, DaemonSetStatus
from kubewright.k8s.core.v1 import Node, Pod, PodSpec

__all__ = ("daemon_set_controller",)

_EPOCH = datetime.fromtimestamp(0, UTC)
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 900.0


def daemon_set_controller(clock: Clock) -> Declaration[DaemonSet]:
    """The controller of DaemonSets."""
    claims = ControllerRefManager(DaemonSet, Pod, _selector_of)
    history = ControllerRefManager(DaemonSet, ControllerRevision, _selector_of)
    failures = Failures()

    def everyone(change: Change[Any]) -> Iterable[ObjectKey]:
        return claims.owners()

    nodes = Watch(Node, everyone, Predicate(_moves_daemons, "moves_daemons"))

    @controller(
        DaemonSet,
        name="daemonset-controller",
        watches=(*claims.watches, *history.watches, nodes),
        when=any_version,
        concurrency=2,
    )
    async def reconcile(owner: DaemonSet, ctx: Context) -> Result | None:
        if _selector_of(owner).selects_everything:
            sentence = "This daemon set is selecting all pods. A non-empty selector is required."
            ctx.event("SelectingAll", sentence, type="Warning")
            return None
        revisions = in_order(await history.claim(owner, ctx))
        present = owner.status.collision_count if owner.status is not None else None
        revision, collisions = await latest_revision(owner, revisions, present or 0, ctx, labels=(REVISION_LABEL,))
        daemons = Daemons(owner, revision, await ctx.client.list(Node), failures, ctx, clock.now())
        try:
            await daemons.run(await claims.claim(owner, ctx))
        finally:
            pods = await claims.claim(owner, ctx)
            owner.status = daemons.status(pods, collisions or present)
        hashes = {pod.metadata.labels.get(REVISION_LABEL, "") for pod in pods}
        used = {f"{owner.metadata.name}-{value}" for value in hashes} | {revision.metadata.name}
        await trim(revisions, used, owner.spec.revision_history_limit, ctx)
        waits = (next_available(pods, owner.spec.min_ready_seconds, clock.now()), daemons.wait)
        wait = min((seconds for seconds in waits if seconds is not None), default=None)
        return None if wait is None else Result(requeue_after=wait)

    return reconcile


@final
class Failures:
    """How often the daemon of a node has failed, so that one that always fails is not replaced without end."""

    def __init__(self) -> None:
        self._waits: dict[tuple[str, int, str], tuple[float, datetime]] = {}

    def wait(self, owner: DaemonSet, node: str, now: datetime) -> float:
        """Seconds until it may be replaced; when they are over it counts as replaced."""
        key = (owner.metadata.uid, owner.metadata.generation, node)
        delay, until = self._waits.get(key, (0.0, now))
        if until > now:
            return (until - now).total_seconds()
        # A daemon that ran for twice the longest wait is as good as new.
        calm = now - until > timedelta(seconds=2 * _LONGEST_WAIT)
        delay = _FIRST_WAIT if calm or not delay else min(_LONGEST_WAIT, delay * 2)
        self._waits = {known: value for known, value in self._waits.items() if _is_recent(value[1], now)}
        self._waits[key] = (delay, now + timedelta(seconds=delay))
        return 0.0


def _is_recent(until: datetime, now: datetime) -> bool:
    return now - until <= timedelta(seconds=2 * _LONGEST_WAIT)


@final
class Daemons:
    """One look at one set."""

    def __init__(
        self,
        owner: DaemonSet,
        revision: ControllerRevision,
        nodes: Iterable[Node],
        failures: Failures,
        ctx: Context,
        now: datetime,
    ) -> None:
        self.wait: float | None = None
        """Seconds until a daemon that failed may be replaced."""
        self._owner = owner
        self._hash = revision.metadata.labels.get(REVISION_LABEL, "")
        self._failures = failures
        self._ctx = ctx
        self._now = now
        spec = owner.spec.template.spec or PodSpec()
        self._nodes = {node.metadata.name: belongs(spec, node) for node in nodes}

    async def run(self, pods: Sequence[Pod]) -> None:
        """Daemons where there should be some, none where there should not, and the next step of an update."""
        daemons = _by_node(pods)
        doomed, bare = self._needs(daemons)
        if not doomed and not bare and self._is_rolling:
            wanted = [name for name, (should, _) in self._nodes.items() if should]
            doomed, bare = next_replacements(self._owner, daemons, wanted, self._hash, self._now)
        await self._act(doomed, bare)

    def status(self, pods: Sequence[Pod], collisions: int | None) -> DaemonSetStatus:
        """What is there now."""
        daemons = _by_node(pods)
        wanted = [name for name, (should, _) in self._nodes.items() if should]
        first = [daemons[name][0] for name in wanted if daemons.get(name)]
        ready = [pod for pod in first if is_ready(pod)]
        available = sum(is_available(pod, self._owner.spec.min_ready_seconds, self._now) for pod in ready)
        status = DaemonSetStatus(
            desired_number_scheduled=len(wanted),
            current_number_scheduled=len(first),
            number_misscheduled=sum(not should and name in daemons for name, (should, _) in self._nodes.items()),
            number_ready=len(ready),
            number_available=available or None,
            number_unavailable=(len(wanted) - available) or None,
            updated_number_scheduled=sum(is_updated(self._owner, pod, self._hash) for pod in first) or None,
            observed_generation=self._owner.metadata.generation,
            collision_count=collisions,
        )
        if self._owner.status is not None:
            status.conditions = self._owner.status.conditions
        return status

    @property
    def _is_rolling(self) -> bool:
        strategy = self._owner.spec.update_strategy
        return strategy is None or strategy.type != "OnDelete"

    def _needs(self, daemons: dict[str, list[Pod]]) -> tuple[list[Pod], list[str]]:
        doomed: list[Pod] = []
        bare: list[str] = []
        for name, (should, may_stay) in self._nodes.items():
            present = daemons.get(name, [])
            if should and not present:
                bare.append(name)
            elif not may_stay:
                doomed += [pod for pod in present if pod.metadata.deletion_timestamp is None]
            elif present:
                excess, running = self._excess(name, present)
                doomed += excess
                if allows_surge(self._owner) and should and not running:
                    bare.append(name)
        # Made for a node that went away before they were placed on it.
        doomed += [
            pod for name, pods in daemons.items() if name not in self._nodes for pod in pods if not pod.spec.node_name
        ]
        return doomed, bare

    def _excess(self, node: str, present: list[Pod]) -> tuple[list[Pod], list[Pod]]:
        """Daemons of a node that have ended or are too many, and those that run."""
        doomed: list[Pod] = []
        running: list[Pod] = []
        for pod in present:
            if pod.metadata.deletion_timestamp is not None:
                # With surge a new one need not wait for it; else the node is not bare until it is gone.
                continue
            if is_finished(pod):
                doomed += self._ended(node, pod)
            else:
                running.append(pod)
        if not allows_surge(self._owner):
            return [*doomed, *running[1:]], running
        new = [pod for pod in running if is_updated(self._owner, pod, self._hash)]
        old = [pod for pod in running if pod not in new]
        doomed += [*new[1:], *old[1:]]
        if new and old and (not is_ready(old[0]) or self._is_up(new[0])):
            doomed.append(old[0])
        return doomed, running

    def _ended(self, node: str, pod: Pod) -> list[Pod]:
        if pod.status.phase == "Succeeded":
            sentence = f"Found succeeded daemon pod {pod.key} on node {node}, will try to delete it"
            self._ctx.event("SucceededDaemonPod", sentence)
            return [pod]
        wait = self._failures.wait(self._owner, node, self._now)
        if wait:
            self.wait = min(wait, self.wait or wait)
            return []
        sentence = f"Found failed daemon pod {pod.key} on node {node}, will try to kill it"
        self._ctx.event("FailedDaemonPod", sentence, type="Warning")
        return [pod]

    async def _act(self, doomed: Sequence[Pod], bare: Sequence[str]) -> None:
        async def create(place: int) -> None:
            await create_pod(self._ctx, self._pod(bare[place]))

        _, failure = await create_many(min(len(bare), BURST), create)
        failure = await delete_pods(self._ctx, doomed[:BURST]) or failure
        if failure is not None:
            raise failure

    def _pod(self, node: str) -> Pod:
        pod = pod_from(self._owner.spec.template, self._owner.metadata.name)
        pod.metadata.labels[REVISION_LABEL] = self._hash
        generation = self._owner.metadata.annotations.get(GENERATION)
        if generation is not None:
            pod.metadata.labels[GENERATION_LABEL] = generation
        pod.spec = bound_to(pod.spec, node)
        return pod

    def _is_up(self, pod: Pod) -> bool:
        return is_available(pod, self._owner.spec.min_ready_seconds, self._now)


def _by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """The daemons of each node: those that are placed first, then the oldest."""
    found: dict[str, list[Pod]] = defaultdict(list)

    def place(pod: Pod) -> tuple[bool, datetime, str]:
        return not pod.spec.node_name, pod.metadata.creation_timestamp or _EPOCH, pod.metadata.name

    for pod in sorted(pods, key=place):
        if not (is_finished(pod) and pod.metadata.deletion_timestamp is not None):
            found[target_of(pod)].append(pod)
    return dict(found)


def _moves_daemons(change: Change[Any]) -> bool:
    """A node that came, went, or changed in what daemons look at; not its heartbeat."""
    old, new = change.old_metadata, change.new_metadata
    if old is None or new is None or old.labels != new.labels:
        return True
    before, after = change.old, change.new
    return before is not None and after is not None and bool(before.spec.taints != after.spec.taints)


def _selector_of(owner: DaemonSet) -> Selector:
    return Selector.from_structured(owner.spec.selector)
