"""PodInfo and NodeInfo: pods and nodes, decoded once for many scheduling decisions.

Pure, after pkg/scheduler/framework/types.go. A `NodeInfo` shares its `AssignedPods` with the scheduler, so that
preemption can remove and add pods for a dry run. Built by `scheduler`; read by every plugin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import final

import msgspec

from kubewright.api.names import ObjectKey
from kubewright.api.quantity import Quantity
from kubewright.api.selectors import Selector
from kubewright.k8s.core.v1 import Container, Node, Pod, PodAffinityTerm, Taint, WeightedPodAffinityTerm

__all__ = ("AffinityTerm", "AssignedPods", "NamespaceLabels", "NodeInfo", "PodInfo", "new_node_info", "new_pod_info")

NamespaceLabels = Mapping[str, Mapping[str, str]]
"""The labels of each namespace, by its name."""


@final
class AffinityTerm(msgspec.Struct, frozen=True):
    """A decoded PodAffinityTerm."""

    selector: Selector
    namespaces: frozenset[str]
    topology_key: str
    namespace_selector: Selector | None = None
    """Selects namespaces in addition to `namespaces`."""
    namespace_labels: NamespaceLabels = {}
    """A live view of the labels of all namespaces."""

    def matches(self, pod: PodInfo) -> bool:
        namespace = pod.key.namespace
        return (
            namespace in self.namespaces
            or (
                self.namespace_selector is not None
                and self.namespace_selector.matches(self.namespace_labels.get(namespace, {}))
            )
        ) and self.selector.matches(pod.labels)


@final
class PodInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a pod that the plugins read."""

    key: ObjectKey
    uid: str
    labels: Mapping[str, str]
    requests: Mapping[str, int]
    """In thousandths of the unit."""
    host_ports: frozenset[tuple[str, int]] = frozenset()
    required_affinity_terms: tuple[AffinityTerm, ...] = ()
    required_anti_affinity_terms: tuple[AffinityTerm, ...] = ()
    preferred_terms: tuple[tuple[int, AffinityTerm], ...] = ()
    """Preferred terms with their weights; the weight of an anti-affinity term is negative."""
    priority: int = 0


@final
class AssignedPods:
    """The pods that are bound to one node or assumed on it, and the sum of their requests."""

    def __init__(self) -> None:
        self.pods: dict[str, PodInfo] = {}
        """By uid."""
        self.requested: Counter[str] = Counter()
        self.used_ports: Counter[tuple[str, int]] = Counter()
        self.with_required_anti_affinity: dict[str, PodInfo] = {}
        self.with_affinity: dict[str, PodInfo] = {}
        """Pods with required affinity terms or preferred terms, which count for the score of other pods."""
        self.priorities: Counter[int] = Counter()
        """The number of pods of each priority."""

    def __len__(self) -> int:
        return len(self.pods)

    def add(self, pod: PodInfo) -> None:
        self.remove(pod.uid)
        self.pods[pod.uid] = pod
        self.requested.update(pod.requests)
        self.used_ports.update(pod.host_ports)
        self.priorities[pod.priority] += 1
        if pod.required_anti_affinity_terms:
            self.with_required_anti_affinity[pod.uid] = pod
        if pod.required_affinity_terms or pod.preferred_terms:
            self.with_affinity[pod.uid] = pod

    def remove(self, uid: str) -> bool:
        """Remove a pod; whether it was there."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return False
        self.requested.subtract(pod.requests)
        self.used_ports.subtract(pod.host_ports)
        self.priorities[pod.priority] -= 1
        if not self.priorities[pod.priority]:
            del self.priorities[pod.priority]
        self.with_required_anti_affinity.pop(uid, None)
        self.with_affinity.pop(uid, None)
        return True


@final
class NodeInfo(msgspec.Struct, kw_only=True):
    """The part of a node that the plugins read, and the pods on it."""

    name: str
    labels: Mapping[str, str]
    taints: Sequence[Taint]
    unschedulable: bool
    allocatable: Mapping[str, int]
    """In thousandths of the unit."""
    assigned: AssignedPods


def new_node_info(node: Node, assigned: AssignedPods) -> NodeInfo:
    """Decode a node."""
    allocatable = node.status.allocatable or node.status.capacity or {}
    return NodeInfo(
        name=node.metadata.name,
        labels=node.metadata.labels,
        taints=node.spec.taints or (),
        unschedulable=bool(node.spec.unschedulable),
        allocatable={name: amount.milli_value for name, amount in allocatable.items()},
        assigned=assigned,
    )


def new_pod_info(pod: Pod, namespaces: NamespaceLabels | None = None) -> PodInfo:
    """Decode a pod. Its terms read `namespaces` when they match, so the mapping may change afterwards."""
    affinity = pod.spec.affinity.pod_affinity if pod.spec.affinity is not None else None
    anti_affinity = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity is not None else None
    return PodInfo(
        key=pod.key,
        uid=pod.metadata.uid,
        labels=pod.metadata.labels,
        requests=_pod_requests(pod),
        host_ports=frozenset(
            (port.protocol or "TCP", port.host_port)
            for container in pod.spec.containers
            for port in container.ports or ()
            if port.host_port
        ),
        required_affinity_terms=_required_terms(
            affinity.required_during_scheduling_ignored_during_execution if affinity else None, pod, namespaces
        ),
        required_anti_affinity_terms=_required_terms(
            anti_affinity.required_during_scheduling_ignored_during_execution if anti_affinity else None,
            pod,
            namespaces,
        ),
        preferred_terms=(
            *_preferred_terms(
                affinity.preferred_during_scheduling_ignored_during_execution if affinity else None, 1, pod, namespaces
            ),
            *_preferred_terms(
                anti_affinity.preferred_during_scheduling_ignored_during_execution if anti_affinity else None,
                -1,
                pod,
                namespaces,
            ),
        ),
        priority=pod.spec.priority or 0,
    )


def _required_terms(
    terms: Sequence[PodAffinityTerm] | None, pod: Pod, namespaces: NamespaceLabels | None
) -> tuple[AffinityTerm, ...]:
    return tuple(_affinity_term(each, pod, namespaces) for each in terms or ())


def _preferred_terms(
    terms: Sequence[WeightedPodAffinityTerm] | None, sign: int, pod: Pod, namespaces: NamespaceLabels | None
) -> Iterator[tuple[int, AffinityTerm]]:
    for each in terms or ():
        yield sign * each.weight, _affinity_term(each.pod_affinity_term, pod, namespaces)


def _affinity_term(term: PodAffinityTerm, pod: Pod, namespaces: NamespaceLabels | None) -> AffinityTerm:
    namespace_selector = None if term.namespace_selector is None else Selector.from_structured(term.namespace_selector)
    # Without names and without a selector the term is about the namespace of its own pod.
    named = term.namespaces or (() if namespace_selector is not None else (pod.metadata.namespace,))
    return AffinityTerm(
        Selector.from_structured(term.label_selector),
        frozenset(named),
        term.topology_key,
        namespace_selector,
        {} if namespaces is None else namespaces,
    )


def _pod_requests(pod: Pod) -> dict[str, int]:
    """The peak requests of a pod, as PodRequests of staging/src/k8s.io/component-helpers/resource/helpers.go.

    All main containers run together with the sidecars (init containers that always restart). Each other init container
    runs alone with the sidecars started before it.
    """
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.spec.init_containers or ():
        requests = _container_requests(container)
        if container.restart_policy == "Always":
            _add(running, requests)
            _raise_to(peak, running)
        else:
            with_sidecars = dict(running)
            _add(with_sidecars, requests)
            _raise_to(peak, with_sidecars)
    for container in pod.spec.containers:
        _add(running, _container_requests(container))
    _raise_to(peak, running)
    _raise_to(peak, _milli_values(pod.spec.resources.requests if pod.spec.resources is not None else None))
    _add(peak, _milli_values(pod.spec.overhead))
    return peak


def _container_requests(container: Container) -> dict[str, int]:
    return _milli_values(container.resources.requests if container.resources is not None else None)


def _milli_values(amounts: Mapping[str, Quantity] | None) -> dict[str, int]:
    return {name: amount.milli_value for name, amount in (amounts or {}).items()}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(peak: dict[str, int], other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        peak[name] = max(peak.get(name, 0), amount)
