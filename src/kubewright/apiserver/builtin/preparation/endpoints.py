"""Which part of a built-in object each endpoint may write, and what becomes of the rest.

The server calls `prepare_for_create` and `prepare_for_update` after defaults and admission and before validation: they
wipe or put back what the endpoint does not own, count the generation, and let single kinds have their way
(`builtin.preparation`). The rules of all kinds stand in one table below, so that the answers about a kind (is it in a
namespace, may a PUT create it) and what is done to its objects cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, final

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.times import format_time
from kubewright.apiserver.builtin.canonical import canonicalize
from kubewright.apiserver.builtin.preparation import others, pods, services
from kubewright.apiserver.builtin.preparation.disabled_fields import drop_disabled
from kubewright.apiserver.builtin.preparation.restoring import restore, restore_metadata
from kubewright.apiserver.builtin.trees import Tree, same, section
from kubewright.k8s.documents import discovery

__all__ = (
    "FieldPath",
    "allows_create_on_update",
    "allows_unconditional_update",
    "default_propagation",
    "deletes_gracefully",
    "grace_period",
    "is_namespaced",
    "prepare_for_create",
    "prepare_for_update",
)

FieldPath = tuple[str, ...]
"""The names on the way to a field; `*` is any item of a list."""

_SPEC: Final = (("spec",),)
_METADATA_AND_SPEC: Final = (("metadata",), ("spec",))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Strategy:
    """The rules of one kind."""

    namespaced: bool = True
    has_status: bool = False
    """Whether the main endpoint leaves the status alone."""
    keeps_first_status: bool = False
    """Whether a create may bring a status all the same."""
    counted: tuple[str, ...] | None = None
    """The parts whose change is a new generation; None where generations are not counted."""
    starts_at: int = 1
    status_resets: tuple[FieldPath, ...] = _SPEC
    """What the status endpoint puts back."""
    create_on_update: bool = False
    unconditional_update: bool = True
    propagation: str = "Background"
    """What becomes of dependents when nobody says so."""
    create: Callable[..., None] | None = None
    update: Callable[..., None] | None = None
    subresources: Mapping[str, Callable[..., None]] = field(default_factory=dict)


def _workload(**more: Any) -> _Strategy:
    return _Strategy(has_status=True, counted=("spec",), **more)


def _cluster(**more: Any) -> _Strategy:
    return _Strategy(namespaced=False, **more)


_PLAIN: Final = _Strategy()
_ROLES: Final = _Strategy(create_on_update=True)
_CLUSTER_ROLES: Final = _cluster(create_on_update=True)
_WEBHOOKS: Final = _cluster(counted=("webhooks",), unconditional_update=False)
_EVENTS: Final = _Strategy(create_on_update=True)
_FLOW: Final = _cluster(has_status=True, counted=("spec",), status_resets=_METADATA_AND_SPEC)

_STRATEGIES: Final[Mapping[tuple[str, str], _Strategy]] = {
    ("", "ConfigMap"): _PLAIN,
    ("", "Endpoints"): _Strategy(create_on_update=True),
    ("", "Event"): _EVENTS,
    ("", "LimitRange"): _Strategy(create_on_update=True),
    ("", "Namespace"): _cluster(has_status=True, create=others.create_namespace, update=others.update_namespace),
    ("", "Node"): _cluster(has_status=True, keeps_first_status=True),
    ("", "PersistentVolume"): _cluster(
        has_status=True, create=others.create_volume, subresources={"status": others.update_volume_status}
    ),
    ("", "PersistentVolumeClaim"): _Strategy(has_status=True, create=others.create_claim, update=others.update_claim),
    ("", "Pod"): _workload(
        create=pods.create_pod,
        status_resets=(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
        subresources={
            "status": pods.update_pod_status,
            "ephemeralcontainers": pods.update_pod_ephemeral_containers,
            "resize": pods.update_pod_resize,
        },
    ),
    ("", "PodTemplate"): _Strategy(counted=("template",)),
    ("", "ReplicationController"): _workload(propagation="Orphan"),
    ("", "ResourceQuota"): _Strategy(has_status=True),
    ("", "Secret"): _PLAIN,
    ("", "Service"): _Strategy(
        has_status=True, create_on_update=True, create=services.create_service, update=services.update_service
    ),
    ("", "ServiceAccount"): _Strategy(create=others.clean_service_account, update=others.clean_service_account),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _cluster(
        has_status=True, counted=("spec",), status_resets=_METADATA_AND_SPEC, unconditional_update=False
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _cluster(
        counted=("spec",), unconditional_update=False
    ),
    ("apiregistration.k8s.io", "APIService"): _cluster(
        has_status=True,
        status_resets=_METADATA_AND_SPEC,
        unconditional_update=False,
        create=others.create_api_service,
        subresources={"status": others.update_api_service_status},
    ),
    ("apps", "ControllerRevision"): _PLAIN,
    ("apps", "DaemonSet"): _workload(
        create=others.create_daemon_set,
        update=others.update_daemon_set,
        subresources={"status": others.update_daemon_set_status},
    ),
    ("apps", "Deployment"): _workload(status_resets=(("spec",), ("metadata", "labels"))),
    ("apps", "ReplicaSet"): _workload(),
    ("apps", "StatefulSet"): _workload(),
    ("autoscaling", "HorizontalPodAutoscaler"): _Strategy(
        has_status=True,
        create=others.create_autoscaler,
        update=others.update_autoscaler,
        subresources={"status": others.update_autoscaler_status},
    ),
    ("batch", "CronJob"): _workload(),
    ("batch", "Job"): _workload(create=others.create_job, propagation="Orphan"),
    ("certificates.k8s.io", "CertificateSigningRequest"): _cluster(
        has_status=True,
        create=others.create_certificate_request,
        subresources={
            "status": others.update_certificate_status,
            "approval": others.update_certificate_approval,
        },
    ),
    ("coordination.k8s.io", "Lease"): _Strategy(create_on_update=True, unconditional_update=False),
    ("discovery.k8s.io", "EndpointSlice"): _Strategy(
        counted=("addressType", "endpoints", "ports"), create=others.drop_topology, update=others.drop_topology
    ),
    ("events.k8s.io", "Event"): _EVENTS,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): _FLOW,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): _FLOW,
    ("networking.k8s.io", "IPAddress"): _cluster(),
    ("networking.k8s.io", "Ingress"): _workload(),
    ("networking.k8s.io", "IngressClass"): _cluster(counted=("spec",)),
    ("networking.k8s.io", "NetworkPolicy"): _Strategy(counted=("spec",)),
    ("networking.k8s.io", "ServiceCIDR"): _cluster(subresources={"status": others.update_range_status}),
    ("node.k8s.io", "RuntimeClass"): _cluster(create_on_update=True, unconditional_update=False),
    ("policy", "PodDisruptionBudget"): _workload(unconditional_update=False),
    ("rbac.authorization.k8s.io", "ClusterRole"): _CLUSTER_ROLES,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _CLUSTER_ROLES,
    ("rbac.authorization.k8s.io", "Role"): _ROLES,
    ("rbac.authorization.k8s.io", "RoleBinding"): _ROLES,
    ("resource.k8s.io", "DeviceClass"): _cluster(counted=("spec",)),
    ("resource.k8s.io", "ResourceClaim"): _Strategy(
        has_status=True,
        status_resets=_METADATA_AND_SPEC,
        subresources={"status": others.update_resource_claim_status},
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): _PLAIN,
    ("resource.k8s.io", "ResourceSlice"): _cluster(counted=("spec",)),
    ("scheduling.k8s.io", "PriorityClass"): _cluster(counted=()),
    ("storage.k8s.io", "CSIDriver"): _cluster(counted=("spec",), starts_at=0, unconditional_update=False),
    ("storage.k8s.io", "CSINode"): _cluster(unconditional_update=False),
    ("storage.k8s.io", "CSIStorageCapacity"): _Strategy(unconditional_update=False),
    ("storage.k8s.io", "StorageClass"): _cluster(),
    ("storage.k8s.io", "VolumeAttachment"): _cluster(
        has_status=True, status_resets=_METADATA_AND_SPEC, unconditional_update=False
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): _cluster(),
}


def prepare_for_create(
    gvk: GroupVersionKind, obj: Tree, *, now: str = "", user: Mapping[str, Any] | None = None
) -> None:
    """Make a new object as the endpoint lets it be; changes it in place.

    Its metadata has a name, a uid and a creationTimestamp already. `user` is who asks (username, uid, groups, extra).
    """
    strategy = _STRATEGIES.get((gvk.group, gvk.kind), _PLAIN)
    if strategy.has_status and not strategy.keeps_first_status and gvk.kind != "Pod":
        obj.pop("status", None)
    drop_disabled(gvk, obj)
    if strategy.counted is not None and strategy.starts_at:
        section(obj, "metadata")["generation"] = strategy.starts_at
    if strategy.create is not None:
        moment = now or obj["metadata"].get("creationTimestamp") or format_time(datetime.now(UTC))
        if strategy.create is others.create_certificate_request:
            others.create_certificate_request(obj, now=moment, user=user)
        else:
            strategy.create(obj, now=moment)
    canonicalize(gvk, obj)


def prepare_for_update(gvk: GroupVersionKind, obj: Tree, old: Tree, *, subresource: str = "", now: str = "") -> None:
    """Put back what this endpoint may not change and count the generation; changes `obj` in place, not `old`.

    What is put back is shared with `old`.
    """
    strategy = _STRATEGIES.get((gvk.group, gvk.kind), _PLAIN)
    canonicalize(gvk, obj)
    drop_disabled(gvk, obj, old)
    metadata = section(obj, "metadata")
    restore(metadata, old["metadata"], "generation")
    moment = now or format_time(datetime.now(UTC))
    special = strategy.subresources.get(subresource)
    if special is not None:
        special(obj, old, now=moment)
        if ("metadata",) in strategy.status_resets:
            restore_metadata(obj, old)
    elif subresource == "status":
        _restore_for_status(strategy, obj, old)
    else:
        _restore_for_main(strategy, obj, old, subresource, moment)
    counts = strategy.counted is not None and subresource not in ("approval", "binding", "status")
    if counts and _is_new(strategy, gvk, obj, old):
        metadata["generation"] = (old["metadata"].get("generation") or 0) + 1
    canonicalize(gvk, obj)


def _restore_for_status(strategy: _Strategy, obj: Tree, old: Tree) -> None:
    for path in strategy.status_resets:
        if path == ("metadata",):
            restore_metadata(obj, old)
        elif len(path) == 1:
            restore(obj, old, path[0])
        else:
            restore(obj["metadata"], old["metadata"], path[1])


def _restore_for_main(strategy: _Strategy, obj: Tree, old: Tree, subresource: str, moment: str) -> None:
    if strategy.create is others.create_certificate_request:
        restore(obj, old, "spec")
    if strategy.has_status:
        restore(obj, old, "status")
    if strategy.update is not None and subresource != "finalize":
        strategy.update(obj, old, now=moment)


def _is_new(strategy: _Strategy, gvk: GroupVersionKind, obj: Tree, old: Tree) -> bool:
    if any(not same(obj.get(part), old.get(part)) for part in strategy.counted or ()):
        return True
    # Two kinds whose controllers read more than the counted parts.
    extra = {"Deployment": "annotations", "EndpointSlice": "labels"}.get(gvk.kind)
    return extra is not None and not same(obj["metadata"].get(extra), old["metadata"].get(extra))


def is_namespaced(gvk: GroupVersionKind) -> bool:
    """Whether objects of this built-in kind are in namespaces."""
    strategy = _STRATEGIES.get((gvk.group, gvk.kind))
    return strategy.namespaced if strategy is not None else (gvk.group, gvk.kind) not in _cluster_kinds()


@cache
def _cluster_kinds() -> frozenset[tuple[str, str]]:
    """Kinds outside of namespaces, those included that are never stored, such as reviews."""
    return frozenset(
        (group["metadata"].get("name", ""), resource["responseKind"]["kind"])
        for group in discovery()
        for version in group["versions"]
        for resource in version["resources"]
        if resource["scope"] == "Cluster"
    )


def allows_create_on_update(gvk: GroupVersionKind) -> bool:
    """Whether a PUT of an object that is not there makes it."""
    return _STRATEGIES.get((gvk.group, gvk.kind), _PLAIN).create_on_update


def allows_unconditional_update(gvk: GroupVersionKind) -> bool:
    """Whether a PUT may leave out the resourceVersion."""
    return _STRATEGIES.get((gvk.group, gvk.kind), _PLAIN).unconditional_update


def default_propagation(gvk: GroupVersionKind) -> str:
    """Background, or Orphan for the kinds that leave their dependents behind when nobody says otherwise."""
    return _STRATEGIES.get((gvk.group, gvk.kind), _PLAIN).propagation


def deletes_gracefully(gvk: GroupVersionKind) -> bool:
    """Whether a delete marks the object and leaves the end to somebody else: pods only."""
    return gvk.kind == "Pod" and not gvk.group


def grace_period(gvk: GroupVersionKind, obj: Tree, *, asked: int | None = None) -> int:
    """The seconds a deleted object has left; 0 for all but pods that run somewhere."""
    if not deletes_gracefully(gvk):
        return 0
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    period: int = asked if asked is not None else spec.get("terminationGracePeriodSeconds") or 0
    if not spec.get("nodeName") or status.get("phase") in ("Failed", "Succeeded"):
        return 0
    return 1 if period < 0 else period
