"""The preparation of pods: the initial status, and the fields that each endpoint may write.

Upstream: k8s.io/kubernetes/pkg/registry/core/pod/strategy.go.
"""

from __future__ import annotations

from typing import Final

from kubewright.api.quantity import Quantity
from kubewright.apiserver.builtin.preparation.restoring import restore, restore_metadata
from kubewright.apiserver.builtin.trees import Tree, items, peek, section, text
from kubewright.errors import DecodeError

__all__ = (
    "create_pod",
    "qos_class",
    "update_pod_ephemeral_containers",
    "update_pod_resize",
    "update_pod_status",
)

_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "lastTransitionTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def create_pod(pod: Tree, *, now: str) -> None:
    """Phase Pending, the QoS class, and matchLabelKeys added to the selectors."""
    spec = section(pod, "spec")
    status: Tree = {"phase": "Pending", "qosClass": text(pod, "status", "qosClass") or qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [{**_GATED, "lastTransitionTime": now}]
    pod["status"] = status
    labels = peek(pod, "metadata", "labels") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        _select_by_labels(peek(spec, "affinity", kind), labels)
    for constraint in items(spec, "topologySpreadConstraints"):
        if constraint.get("labelSelector") is not None:
            _select(constraint["labelSelector"], constraint.get("matchLabelKeys"), "In", labels)


def update_pod_status(pod: Tree, old: Tree, *, now: str) -> None:
    """pods/status: reset spec, deletionTimestamp and ownerReferences; the QoS class stays."""
    restore(pod, old, "spec")
    metadata = section(pod, "metadata")
    metadata.pop("deletionTimestamp", None)
    restore(metadata, old["metadata"], "ownerReferences")
    status, before = section(pod, "status"), old.get("status") or {}
    for name in ("qosClass", "observedGeneration"):
        if not status.get(name) and before.get(name):
            status[name] = before[name]
    seen: dict[str, list[int]] = {}
    for condition in items(before, "conditions"):
        seen.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration") or 0)
    for condition in items(status, "conditions"):
        generations = seen.get(condition.get("type", ""))
        generation = generations.pop(0) if generations else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def update_pod_ephemeral_containers(pod: Tree, old: Tree, *, now: str) -> None:
    """pods/ephemeralcontainers: reset all but the ephemeral containers."""
    ephemeral_containers = peek(pod, "spec", "ephemeralContainers")
    _restore_all(pod, old)
    pod["spec"] = spec = dict(old["spec"])
    if ephemeral_containers:
        spec["ephemeralContainers"] = ephemeral_containers
    else:
        spec.pop("ephemeralContainers", None)


def update_pod_resize(pod: Tree, old: Tree, *, now: str) -> None:
    """pods/resize: reset all but resources and resizePolicy; other containers are left for validation to reject."""
    spec, before = section(pod, "spec"), old["spec"]
    names = ("containers", "initContainers")
    if any(len(items(spec, name)) != len(items(before, name)) for name in names):
        return
    resized = {name: _resized(items(spec, name), items(before, name)) for name in names}
    _restore_all(pod, old)
    pod["spec"] = {**before, **{name: containers for name, containers in resized.items() if containers}}


def qos_class(spec: Tree) -> str:
    """Guaranteed, Burstable or BestEffort, by requests and limits of CPU and memory."""
    whole = spec.get("resources")
    if whole is not None:
        holders = [{"resources": whole}]
    else:
        holders = [*items(spec, "containers"), *items(spec, "initContainers")]
    guaranteed = True
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    for holder in holders:
        _count(requests, holder, "requests")
        found = _count(limits, holder, "limits")
        if found < 2 and not (whole is not None and not whole.get("limits")):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _count(total: dict[str, Quantity], holder: Tree, which: str) -> int:
    found = 0
    for name, amount in (peek(holder, "resources", which) or {}).items():
        if name not in ("cpu", "memory"):
            continue
        try:
            quantity = Quantity.parse(str(amount))
        except DecodeError:
            continue  # validation names it
        if quantity > 0:
            found += 1
            total[name] = total[name] + quantity if name in total else quantity
    return found


def _restore_all(pod: Tree, old: Tree) -> None:
    restore_metadata(pod, old)
    restore(pod, old, "spec")
    restore(pod, old, "status")


def _resized(containers: list[Tree], before: list[Tree]) -> list[Tree]:
    if any(new.get("name") != was.get("name") for new, was in zip(containers, before, strict=True)):
        return containers
    merged: list[Tree] = []
    for new, was in zip(containers, before, strict=True):
        container = dict(was)
        for name in ("resources", "resizePolicy"):
            restore(container, new, name)
        merged.append(container)
    return merged


def _select_by_labels(affinity: Tree | None, labels: Tree) -> None:
    terms = [
        item.get("podAffinityTerm") or {} for item in items(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
    ]
    for term in terms + items(affinity, "requiredDuringSchedulingIgnoredDuringExecution"):
        selector = term.get("labelSelector")
        if selector is not None:
            _select(selector, term.get("matchLabelKeys"), "In", labels)
            _select(selector, term.get("mismatchLabelKeys"), "NotIn", labels)


def _select(selector: Tree, keys: list[str] | None, operator: str, labels: Tree) -> None:
    for key in keys or ():
        if key in labels:
            chosen = {"key": key, "operator": operator, "values": [labels[key]]}
            selector.setdefault("matchExpressions", []).append(chosen)
