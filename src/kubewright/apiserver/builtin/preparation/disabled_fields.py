"""Drops the fields of features whose gate is off by default in Kubernetes. `strategies` calls it.

A stored object that has such a field keeps it: the field was written when the gate was on. Upstream: the
dropDisabledFields functions of the strategies, for pods `DropDisabledPodFields` of
k8s.io/kubernetes/pkg/api/pod/util.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.trees import Tree

__all__ = ("drop_disabled",)

Path = tuple[str, ...]

_IN_PODS: Final = (
    "volumes.*.projected.sources.*.clusterTrustBundle",
    "volumes.*.projected.sources.*.podCertificate",
    "containers.*.lifecycle.stopSignal",
    "initContainers.*.lifecycle.stopSignal",
    "ephemeralContainers.*.lifecycle.stopSignal",
    "workloadRef",
)
_IN_CLAIMS: Final = (
    "spec.devices.requests.*.exactly.capacity",
    "spec.devices.requests.*.exactly.tolerations",
    "spec.devices.requests.*.firstAvailable.*.capacity",
    "spec.devices.requests.*.firstAvailable.*.tolerations",
)
_POD_HOLDERS: Final = {
    "Pod": "spec",
    "PodTemplate": "template.spec",
    "CronJob": "spec.jobTemplate.spec.template.spec",
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"), "spec.template.spec"
    ),
}
_OTHERS: Final = {
    "Pod": (
        "status.resources",
        "status.allocatedResources",
        "status.extendedResourceClaimStatus",
        "status.containerStatuses.*.allocatedResourcesStatus",
        "status.initContainerStatuses.*.allocatedResourcesStatus",
        "status.ephemeralContainerStatuses.*.allocatedResourcesStatus",
    ),
    "DeviceClass": ("spec.extendedResourceName",),
    "Lease": ("spec.strategy", "spec.preferredHolder"),
    "Node": ("spec.configSource", "status.config", "status.declaredFeatures"),
    "ResourceClaim": _IN_CLAIMS,
    "ResourceClaimTemplate": tuple(f"spec.{path}" for path in _IN_CLAIMS),
    "ResourceSlice": (
        "spec.sharedCounters",
        "spec.perDeviceNodeSelection",
        *(
            f"spec.devices.*.{name}"
            for name in (
                "allNodes",
                "allowMultipleAllocations",
                "bindingConditions",
                "bindingFailureConditions",
                "bindsToNode",
                "consumesCounters",
                "nodeName",
                "nodeSelector",
                "taints",
            )
        ),
        "spec.devices.*.capacity.*.requestPolicy",
    ),
    "StatefulSet": ("spec.updateStrategy.rollingUpdate.maxUnavailable",),
}
_PATHS: Final[Mapping[str, tuple[Path, ...]]] = {
    kind: tuple(
        tuple(path.split("."))
        for path in (
            *(f"{_POD_HOLDERS[kind]}.{path}" for path in _IN_PODS if kind in _POD_HOLDERS),
            *_OTHERS.get(kind, ()),
        )
    )
    for kind in (*_POD_HOLDERS, *_OTHERS)
}


def drop_disabled(gvk: GroupVersionKind, obj: Tree, old: Tree | None = None) -> None:
    """Drop the disabled fields of an object, in place, unless `old` has them."""
    for path in _PATHS.get(gvk.kind, ()):
        if _has(obj, path) and (old is None or not _has(old, path)):
            _drop(obj, path)


def _inside(tree: Any, step: str) -> list[Any]:
    if step == "*":
        return list(tree.values()) if isinstance(tree, dict) else tree if isinstance(tree, list) else []
    found = tree.get(step) if isinstance(tree, dict) else None
    return [] if found is None else [found]


def _has(tree: Any, path: Path) -> bool:
    step, rest = path[0], path[1:]
    found = _inside(tree, step)
    return bool(found) if not rest else any(_has(part, rest) for part in found)


def _drop(tree: Any, path: Path) -> None:
    step, rest = path[0], path[1:]
    if not rest:
        if isinstance(tree, dict):
            tree.pop(step, None)
        return
    for part in _inside(tree, step):
        _drop(part, rest)
        # A lifecycle with a stopSignal only becomes nil.
        if step == "lifecycle" and not part:
            tree.pop(step)
