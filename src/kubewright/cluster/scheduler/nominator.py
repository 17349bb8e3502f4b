"""Nominated pods: pods that wait for the victims of a preemption to leave their node.

Other pods of the same or a lower priority are filtered as if the nominated pods ran on their nodes already, so that
they do not take the freed resources. After pkg/scheduler/backend/queue/nominator.go and
RunFilterPluginsWithNominatedPods of pkg/scheduler/framework/runtime/framework.go. Updated and read by `preemption`;
read by `scheduler`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import msgspec

from kubewright.cluster.scheduler.filters import PodFilter
from kubewright.cluster.scheduler.node_info import NamespaceLabels, NodeInfo, PodInfo, new_pod_info
from kubewright.k8s.core.v1 import Pod

__all__ = ("Nominator",)


@final
class _Nomination(msgspec.Struct):
    node: str
    confirmed: bool
    """Whether the cache has shown the pod with this nomination; a decision counts before that."""


@final
class Nominator:
    """The nominations of one scheduler."""

    def __init__(self, scheduler: str, *, namespaces: NamespaceLabels) -> None:
        self._scheduler = scheduler
        self._namespaces = namespaces
        self._nominations: dict[str, _Nomination] = {}
        """By the uid of the pod."""
        self._pods: dict[str, dict[str, PodInfo]] = {}
        """The nominated pods without a node, by node and uid."""

    def nominated_node(self, uid: str) -> str:
        """The node a pod is nominated for; empty if there is none."""
        nomination = self._nominations.get(uid)
        return nomination.node if nomination is not None else ""

    def with_nominated_pods(self, info: PodInfo, run_filters: PodFilter) -> PodFilter:
        """The filter, run with the nominated pods of at least the pod's priority added to each node."""
        if not any(self._pods.values()):
            return run_filters

        def run_with_nominated_pods(node: NodeInfo) -> tuple[str, ...]:
            nominated = self._pods.get(node.name, {}).values()
            added = [pod for pod in nominated if pod.priority >= info.priority and pod.uid != info.uid]
            return _run_with(added, node, run_filters) if added else run_filters(node)

        return run_with_nominated_pods

    def nominate(self, info: PodInfo, node: str, *, confirmed: bool) -> None:
        """Nominate a pod for a node."""
        self.remove(info.uid)
        self._nominations[info.uid] = _Nomination(node, confirmed)
        self._pods.setdefault(node, {})[info.uid] = info

    def observe(self, pod: Pod) -> bool:
        """Update the nomination of a pod without a node from its status; whether its old node became free."""
        if (pod.spec.scheduler_name or "default-scheduler") != self._scheduler:
            return False
        uid, node = pod.metadata.uid, pod.status.nominated_node_name or ""
        known = self._nominations.get(uid)
        if node:
            if known is None or known.node != node:
                self.nominate(new_pod_info(pod, self._namespaces), node, confirmed=True)
                return known is not None
            known.confirmed = True
            return False
        if known is None or not known.confirmed:
            return False  # the cache is older than the nomination made here
        self.remove(uid)
        return True

    def clear_lower(self, info: PodInfo, node: str) -> tuple[PodInfo, ...]:
        """Clear the nominations of pods with a lower priority for a node; those pods."""
        nominated = self._pods.get(node, {})
        lower = tuple(each for each in nominated.values() if each.priority < info.priority)
        for each in lower:
            self.clear(each.uid, published=True)
        return lower

    def clear(self, uid: str, *, published: bool) -> None:
        """Free the resources of a nomination.

        If it is `published` in the pod's status, `observe` sees the status without it later and reports the free node.
        """
        nomination = self._nominations.get(uid)
        if nomination is None or not published:
            self.remove(uid)
            return
        nomination.confirmed = True
        self._pods.get(nomination.node, {}).pop(uid, None)

    def pod_assigned(self, uid: str) -> None:
        """A pod has a node: its nomination does not count for other pods any more."""
        if (nomination := self._nominations.get(uid)) is not None:
            self._pods.get(nomination.node, {}).pop(uid, None)

    def remove(self, uid: str) -> bool:
        """Remove the nomination of a pod; whether there was one."""
        nomination = self._nominations.pop(uid, None)
        if nomination is None:
            return False
        self._pods.get(nomination.node, {}).pop(uid, None)
        return True


def _run_with(pods: Sequence[PodInfo], node: NodeInfo, run_filters: PodFilter) -> tuple[str, ...]:
    for pod in pods:
        node.assigned.add(pod)
    try:
        reasons = run_filters(node)
    finally:
        for pod in pods:
            node.assigned.remove(pod.uid)
    # The filters must pass without them too: a nominated pod may never arrive, so no affinity may rely on it.
    return reasons or run_filters(node)
