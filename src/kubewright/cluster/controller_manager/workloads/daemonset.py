"""DaemonSetController: one pod on every eligible node.

`daemon_placement` decides which nodes are eligible, `daemon_update` what a rolling update replaces. Pods have a node
affinity for their node; the scheduler binds them. After pkg/controller/daemon/daemon_controller.go. Registered by
`controllers`.
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
from kubewright.cluster.controller_manager.workloads.daemon_placement import (
    node_should_run_daemon_pod,
    target_node_name,
    with_node_name_affinity,
)
from kubewright.cluster.controller_manager.workloads.daemon_update import (
    TEMPLATE_GENERATION,
    TEMPLATE_GENERATION_LABEL,
    allows_surge,
    is_updated,
    rolling_update,
)
from kubewright.cluster.controller_manager.workloads.pod_control import (
    BURST_REPLICAS,
    create_pod,
    delete_pods,
    slow_start_batch,
)
from kubewright.cluster.controller_manager.workloads.pods import (
    is_available,
    is_finished,
    is_ready,
    pod_from_template,
    seconds_until_available,
)
from kubewright.cluster.controller_manager.workloads.revisions import (
    REVISION_LABEL,
    get_or_create_revision,
    sort_revisions,
    truncate_history,
)
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.predicates import Predicate, any_version
from kubewright.controllers.reconcile import Result
from kubewright.k8s.apps.v1 import ControllerRevision, DaemonSet, DaemonSetStatus
from kubewright.k8s.core.v1 import Node, Pod, PodSpec

__all__ = ("daemon_set_controller",)

_EPOCH = datetime.fromtimestamp(0, UTC)
_INITIAL_BACKOFF, _MAX_BACKOFF = 1.0, 900.0


def daemon_set_controller(clock: Clock) -> Declaration[DaemonSet]:
    """The controller of DaemonSets."""
    pod_refs = ControllerRefManager(DaemonSet, Pod, _selector_of)
    revision_refs = ControllerRefManager(DaemonSet, ControllerRevision, _selector_of)
    backoff = FailedPodsBackoff()

    def all_daemon_sets(change: Change[Any]) -> Iterable[ObjectKey]:
        return pod_refs.owners()

    nodes = Watch(Node, all_daemon_sets, Predicate(_affects_daemon_pods, "affects_daemon_pods"))

    @controller(
        DaemonSet,
        name="daemonset-controller",
        watches=(*pod_refs.watches, *revision_refs.watches, nodes),
        when=any_version,
        concurrency=2,
    )
    async def reconcile(owner: DaemonSet, ctx: Context) -> Result | None:
        if _selector_of(owner).selects_everything:
            message = "This daemon set is selecting all pods. A non-empty selector is required."
            ctx.event("SelectingAll", message, type="Warning")
            return None
        revisions = sort_revisions(await revision_refs.claim(owner, ctx))
        previous = owner.status.collision_count if owner.status is not None else None
        revision, collisions = await get_or_create_revision(
            owner, revisions, previous or 0, ctx, labels=(REVISION_LABEL,)
        )
        sync = DaemonSetSync(owner, revision, await ctx.client.list(Node), backoff, ctx, clock.now())
        try:
            await sync.run(await pod_refs.claim(owner, ctx))
        finally:
            pods = await pod_refs.claim(owner, ctx)
            owner.status = sync.status(pods, collisions or previous)
        hashes = {pod.metadata.labels.get(REVISION_LABEL, "") for pod in pods}
        in_use = {f"{owner.metadata.name}-{value}" for value in hashes} | {revision.metadata.name}
        await truncate_history(revisions, in_use, owner.spec.revision_history_limit, ctx)
        delays = (seconds_until_available(pods, owner.spec.min_ready_seconds, clock.now()), sync.delay)
        delay = min((seconds for seconds in delays if seconds is not None), default=None)
        return None if delay is None else Result(requeue_after=delay)

    return reconcile


@final
class FailedPodsBackoff:
    """failedPodsBackoff of upstream: delays the replacement of failed daemon pods, by set, generation and node."""

    def __init__(self) -> None:
        self._delays: dict[tuple[str, int, str], tuple[float, datetime]] = {}

    def delay(self, owner: DaemonSet, node: str, now: datetime) -> float:
        """Seconds until a failed pod may be replaced; 0 also starts the next, longer delay."""
        key = (owner.metadata.uid, owner.metadata.generation, node)
        delay, until = self._delays.get(key, (0.0, now))
        if until > now:
            return (until - now).total_seconds()
        # Reset the back-off of a pod that ran for twice the maximum.
        expired = now - until > timedelta(seconds=2 * _MAX_BACKOFF)
        delay = _INITIAL_BACKOFF if expired or not delay else min(_MAX_BACKOFF, delay * 2)
        self._delays = {known: value for known, value in self._delays.items() if _is_recent(value[1], now)}
        self._delays[key] = (delay, now + timedelta(seconds=delay))
        return 0.0


def _is_recent(until: datetime, now: datetime) -> bool:
    return now - until <= timedelta(seconds=2 * _MAX_BACKOFF)


@final
class DaemonSetSync:
    """One reconcile of one DaemonSet."""

    def __init__(
        self,
        owner: DaemonSet,
        revision: ControllerRevision,
        nodes: Iterable[Node],
        backoff: FailedPodsBackoff,
        ctx: Context,
        now: datetime,
    ) -> None:
        self.delay: float | None = None
        """Seconds until a failed pod may be replaced."""
        self._owner = owner
        self._hash = revision.metadata.labels.get(REVISION_LABEL, "")
        self._backoff = backoff
        self._ctx = ctx
        self._now = now
        spec = owner.spec.template.spec or PodSpec()
        self._nodes = {node.metadata.name: node_should_run_daemon_pod(spec, node) for node in nodes}

    async def run(self, pods: Sequence[Pod]) -> None:
        """Create and delete pods so that every eligible node has one; if there is nothing to do, roll an update on."""
        pods_by_node = _pods_by_node(pods)
        to_delete, nodes_needing_pods = self._pods_to_delete_and_nodes(pods_by_node)
        if not to_delete and not nodes_needing_pods and self._is_rolling_update:
            nodes_to_run = [name for name, (should_run, _) in self._nodes.items() if should_run]
            to_delete, nodes_needing_pods = rolling_update(
                self._owner, pods_by_node, nodes_to_run, self._hash, self._now
            )
        await self._sync_nodes(to_delete, nodes_needing_pods)

    def status(self, pods: Sequence[Pod], collisions: int | None) -> DaemonSetStatus:
        """The new status."""
        pods_by_node = _pods_by_node(pods)
        nodes_to_run = [name for name, (should_run, _) in self._nodes.items() if should_run]
        first = [pods_by_node[name][0] for name in nodes_to_run if pods_by_node.get(name)]
        ready = [pod for pod in first if is_ready(pod)]
        available = sum(is_available(pod, self._owner.spec.min_ready_seconds, self._now) for pod in ready)
        status = DaemonSetStatus(
            desired_number_scheduled=len(nodes_to_run),
            current_number_scheduled=len(first),
            number_misscheduled=sum(
                not should_run and name in pods_by_node for name, (should_run, _) in self._nodes.items()
            ),
            number_ready=len(ready),
            number_available=available or None,
            number_unavailable=(len(nodes_to_run) - available) or None,
            updated_number_scheduled=sum(is_updated(self._owner, pod, self._hash) for pod in first) or None,
            observed_generation=self._owner.metadata.generation,
            collision_count=collisions,
        )
        if self._owner.status is not None:
            status.conditions = self._owner.status.conditions
        return status

    @property
    def _is_rolling_update(self) -> bool:
        strategy = self._owner.spec.update_strategy
        return strategy is None or strategy.type != "OnDelete"

    def _pods_to_delete_and_nodes(self, pods_by_node: dict[str, list[Pod]]) -> tuple[list[Pod], list[str]]:
        to_delete: list[Pod] = []
        nodes_needing_pods: list[str] = []
        for name, (should_run, may_continue) in self._nodes.items():
            node_pods = pods_by_node.get(name, [])
            if should_run and not node_pods:
                nodes_needing_pods.append(name)
            elif not may_continue:
                to_delete += [pod for pod in node_pods if pod.metadata.deletion_timestamp is None]
            elif node_pods:
                excess_pods, running = self._excess_pods(name, node_pods)
                to_delete += excess_pods
                if allows_surge(self._owner) and should_run and not running:
                    nodes_needing_pods.append(name)
        # Pods for nodes that were deleted before the scheduler bound them.
        to_delete += [
            pod
            for name, pods in pods_by_node.items()
            if name not in self._nodes
            for pod in pods
            if not pod.spec.node_name
        ]
        return to_delete, nodes_needing_pods

    def _excess_pods(self, node: str, node_pods: list[Pod]) -> tuple[list[Pod], list[Pod]]:
        """The finished and surplus pods of a node, and its running pods."""
        to_delete: list[Pod] = []
        running: list[Pod] = []
        for pod in node_pods:
            if pod.metadata.deletion_timestamp is not None:
                # With surge a new pod does not wait for it; otherwise the node has a pod until this one is deleted.
                continue
            if is_finished(pod):
                to_delete += self._finished(node, pod)
            else:
                running.append(pod)
        if not allows_surge(self._owner):
            return [*to_delete, *running[1:]], running
        new = [pod for pod in running if is_updated(self._owner, pod, self._hash)]
        old = [pod for pod in running if pod not in new]
        to_delete += [*new[1:], *old[1:]]
        if new and old and (not is_ready(old[0]) or self._is_available(new[0])):
            to_delete.append(old[0])
        return to_delete, running

    def _finished(self, node: str, pod: Pod) -> list[Pod]:
        if pod.status.phase == "Succeeded":
            message = f"Found succeeded daemon pod {pod.key} on node {node}, will try to delete it"
            self._ctx.event("SucceededDaemonPod", message)
            return [pod]
        delay = self._backoff.delay(self._owner, node, self._now)
        if delay:
            self.delay = min(delay, self.delay or delay)
            return []
        message = f"Found failed daemon pod {pod.key} on node {node}, will try to kill it"
        self._ctx.event("FailedDaemonPod", message, type="Warning")
        return [pod]

    async def _sync_nodes(self, to_delete: Sequence[Pod], nodes_needing_pods: Sequence[str]) -> None:
        async def create(index: int) -> None:
            await create_pod(self._ctx, self._new_pod(nodes_needing_pods[index]))

        _, failure = await slow_start_batch(min(len(nodes_needing_pods), BURST_REPLICAS), create)
        failure = await delete_pods(self._ctx, to_delete[:BURST_REPLICAS]) or failure
        if failure is not None:
            raise failure

    def _new_pod(self, node: str) -> Pod:
        pod = pod_from_template(self._owner.spec.template, self._owner.metadata.name)
        pod.metadata.labels[REVISION_LABEL] = self._hash
        generation = self._owner.metadata.annotations.get(TEMPLATE_GENERATION)
        if generation is not None:
            pod.metadata.labels[TEMPLATE_GENERATION_LABEL] = generation
        pod.spec = with_node_name_affinity(pod.spec, node)
        return pod

    def _is_available(self, pod: Pod) -> bool:
        return is_available(pod, self._owner.spec.min_ready_seconds, self._now)


def _pods_by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """The pods of each node: bound pods first, then the oldest."""
    found: dict[str, list[Pod]] = defaultdict(list)

    def index(pod: Pod) -> tuple[bool, datetime, str]:
        return not pod.spec.node_name, pod.metadata.creation_timestamp or _EPOCH, pod.metadata.name

    for pod in sorted(pods, key=index):
        if not (is_finished(pod) and pod.metadata.deletion_timestamp is not None):
            found[target_node_name(pod)].append(pod)
    return dict(found)


def _affects_daemon_pods(change: Change[Any]) -> bool:
    """Whether a node was added or deleted, or its labels or taints changed; heartbeats do not matter."""
    old, new = change.old_metadata, change.new_metadata
    if old is None or new is None or old.labels != new.labels:
        return True
    before, after = change.old, change.new
    return before is not None and after is not None and bool(before.spec.taints != after.spec.taints)


def _selector_of(owner: DaemonSet) -> Selector:
    return Selector.from_structured(owner.spec.selector)
