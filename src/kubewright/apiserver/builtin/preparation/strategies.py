"""The strategies of built-in kinds in one table: which fields an endpoint may write, generations, and update rules.

`prepare_for_create` and `prepare_for_update` run after defaults and admission and before validation: they reset what
the endpoint may not write, increase the generation, and call the functions of single kinds (`pods`, `services`,
`others`). One table, so that the properties of a kind (namespaced, create on update) and its preparation cannot
contradict. Upstream: the strategy.go of each resource in k8s.io/kubernetes/pkg/registry.
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
from kubewright.apiserver.builtin.trees import Tree, section, semantic_equal
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
"""The names of a field path; `*` matches any item of a list."""

_SPEC: Final = (("spec",),)
_METADATA_AND_SPEC: Final = (("metadata",), ("spec",))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Strategy:
    """The strategy of one kind."""

    namespaced: bool = True
    has_status: bool = False
    """Whether the main endpoint resets the status."""
    create_keeps_status: bool = False
    """Whether a create may set the status all the same."""
    generation_fields: tuple[str, ...] | None = None
    """The fields whose change increases the generation; None for kinds without generations."""
    first_generation: int = 1
    status_resets: tuple[FieldPath, ...] = _SPEC
    """The fields that the status endpoint resets."""
    create_on_update: bool = False
    unconditional_update: bool = True
    propagation: str = "Background"
    """The default propagation policy of a delete (DefaultGarbageCollectionPolicy)."""
    create: Callable[..., None] | None = None
    update: Callable[..., None] | None = None
    subresources: Mapping[str, Callable[..., None]] = field(default_factory=dict)


def _workload(**more: Any) -> _Strategy:
    return _Strategy(has_status=True, generation_fields=("spec",), **more)


def _cluster(**more: Any) -> _Strategy:
    return _Strategy(namespaced=False, **more)


_PLAIN: Final = _Strategy()
_ROLES: Final = _Strategy(create_on_update=True)
_CLUSTER_ROLES: Final = _cluster(create_on_update=True)
_WEBHOOKS: Final = _cluster(generation_fields=("webhooks",), unconditional_update=False)
_EVENTS: Final = _Strategy(create_on_update=True)
_FLOW: Final = _cluster(has_status=True, generation_fields=("spec",), status_resets=_METADATA_AND_SPEC)

_STRATEGIES: Final[Mapping[tuple[str, str], _Strategy]] = {
    ("", "ConfigMap"): _PLAIN,
    ("", "Endpoints"): _Strategy(create_on_update=True),
    ("", "Event"): _EVENTS,
    ("", "LimitRange"): _Strategy(create_on_update=True),
    ("", "Namespace"): _cluster(has_status=True, create=others.create_namespace, update=others.update_namespace),
    ("", "Node"): _cluster(has_status=True, create_keeps_status=True),
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
    ("", "PodTemplate"): _Strategy(generation_fields=("template",)),
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
        has_status=True, generation_fields=("spec",), status_resets=_METADATA_AND_SPEC, unconditional_update=False
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _cluster(
        generation_fields=("spec",), unconditional_update=False
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
        generation_fields=("addressType", "endpoints", "ports"),
        create=others.drop_topology,
        update=others.drop_topology,
    ),
    ("events.k8s.io", "Event"): _EVENTS,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): _FLOW,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): _FLOW,
    ("networking.k8s.io", "IPAddress"): _cluster(),
    ("networking.k8s.io", "Ingress"): _workload(),
    ("networking.k8s.io", "IngressClass"): _cluster(generation_fields=("spec",)),
    ("networking.k8s.io", "NetworkPolicy"): _Strategy(generation_fields=("spec",)),
    ("networking.k8s.io", "ServiceCIDR"): _cluster(subresources={"status": others.update_range_status}),
    ("node.k8s.io", "RuntimeClass"): _cluster(create_on_update=True, unconditional_update=False),
    ("policy", "PodDisruptionBudget"): _workload(unconditional_update=False),
    ("rbac.authorization.k8s.io", "ClusterRole"): _CLUSTER_ROLES,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _CLUSTER_ROLES,
    ("rbac.authorization.k8s.io", "Role"): _ROLES,
    ("rbac.authorization.k8s.io", "RoleBinding"): _ROLES,
    ("resource.k8s.io", "DeviceClass"): _cluster(generation_fields=("spec",)),
    ("resource.k8s.io", "ResourceClaim"): _Strategy(
        has_status=True,
        status_resets=_METADATA_AND_SPEC,
        subresources={"status": others.update_resource_claim_status},
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): _PLAIN,
    ("resource.k8s.io", "ResourceSlice"): _cluster(generation_fields=("spec",)),
    ("scheduling.k8s.io", "PriorityClass"): _cluster(generation_fields=()),
    ("storage.k8s.io", "CSIDriver"): _cluster(
        generation_fields=("spec",), first_generation=0, unconditional_update=False
    ),
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
    """PrepareForCreate: prepare a new object, in place.

    Its metadata has a name, a uid and a creationTimestamp already. `user` is the UserInfo of the request.
    """
    strategy = _STRATEGIES.get((gvk.group, gvk.kind), _PLAIN)
    if strategy.has_status and not strategy.create_keeps_status and gvk.kind != "Pod":
        obj.pop("status", None)
    drop_disabled(gvk, obj)
    if strategy.generation_fields is not None and strategy.first_generation:
        section(obj, "metadata")["generation"] = strategy.first_generation
    if strategy.create is not None:
        time = now or obj["metadata"].get("creationTimestamp") or format_time(datetime.now(UTC))
        if strategy.create is others.create_certificate_request:
            others.create_certificate_request(obj, now=time, user=user)
        else:
            strategy.create(obj, now=time)
    canonicalize(gvk, obj)


def prepare_for_update(gvk: GroupVersionKind, obj: Tree, old: Tree, *, subresource: str = "", now: str = "") -> None:
    """PrepareForUpdate: reset what the endpoint may not write, and increase the generation; changes `obj` in place.

    What is reset is shared with `old`.
    """
    strategy = _STRATEGIES.get((gvk.group, gvk.kind), _PLAIN)
    canonicalize(gvk, obj)
    drop_disabled(gvk, obj, old)
    metadata = section(obj, "metadata")
    restore(metadata, old["metadata"], "generation")
    time = now or format_time(datetime.now(UTC))
    prepare_subresource = strategy.subresources.get(subresource)
    if prepare_subresource is not None:
        prepare_subresource(obj, old, now=time)
        if ("metadata",) in strategy.status_resets:
            restore_metadata(obj, old)
    elif subresource == "status":
        _restore_for_status(strategy, obj, old)
    else:
        _restore_for_main(strategy, obj, old, subresource, time)
    counts = strategy.generation_fields is not None and subresource not in ("approval", "binding", "status")
    if counts and _is_new_generation(strategy, gvk, obj, old):
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


def _restore_for_main(strategy: _Strategy, obj: Tree, old: Tree, subresource: str, time: str) -> None:
    if strategy.create is others.create_certificate_request:
        restore(obj, old, "spec")
    if strategy.has_status:
        restore(obj, old, "status")
    if strategy.update is not None and subresource != "finalize":
        strategy.update(obj, old, now=time)


def _is_new_generation(strategy: _Strategy, gvk: GroupVersionKind, obj: Tree, old: Tree) -> bool:
    if any(not semantic_equal(obj.get(part), old.get(part)) for part in strategy.generation_fields or ()):
        return True
    # The strategies of these two kinds compare some metadata too.
    extra = {"Deployment": "annotations", "EndpointSlice": "labels"}.get(gvk.kind)
    return extra is not None and not semantic_equal(obj["metadata"].get(extra), old["metadata"].get(extra))


def is_namespaced(gvk: GroupVersionKind) -> bool:
    """Whether a built-in kind is namespaced."""
    strategy = _STRATEGIES.get((gvk.group, gvk.kind))
    return strategy.namespaced if strategy is not None else (gvk.group, gvk.kind) not in _cluster_kinds()


@cache
def _cluster_kinds() -> frozenset[tuple[str, str]]:
    """Cluster-scoped kinds, with those that are never stored, such as reviews."""
    return frozenset(
        (group["metadata"].get("name", ""), resource["responseKind"]["kind"])
        for group in discovery()
        for version in group["versions"]
        for resource in version["resources"]
        if resource["scope"] == "Cluster"
    )


def allows_create_on_update(gvk: GroupVersionKind) -> bool:
    """Whether a PUT creates an object that does not exist (AllowCreateOnUpdate)."""
    return _STRATEGIES.get((gvk.group, gvk.kind), _PLAIN).create_on_update


def allows_unconditional_update(gvk: GroupVersionKind) -> bool:
    """Whether a PUT needs no resourceVersion (AllowUnconditionalUpdate)."""
    return _STRATEGIES.get((gvk.group, gvk.kind), _PLAIN).unconditional_update


def default_propagation(gvk: GroupVersionKind) -> str:
    """The default propagation policy of a delete: Background, or Orphan for a few old kinds."""
    return _STRATEGIES.get((gvk.group, gvk.kind), _PLAIN).propagation


def deletes_gracefully(gvk: GroupVersionKind) -> bool:
    """Whether a delete has a grace period, which the kubelet ends: pods only."""
    return gvk.kind == "Pod" and not gvk.group


def grace_period(gvk: GroupVersionKind, obj: Tree, *, requested: int | None = None) -> int:
    """The grace period of a delete in seconds; 0 for all but scheduled pods that have not ended."""
    if not deletes_gracefully(gvk):
        return 0
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    period: int = requested if requested is not None else spec.get("terminationGracePeriodSeconds") or 0
    if not spec.get("nodeName") or status.get("phase") in ("Failed", "Succeeded"):
        return 0
    return 1 if period < 0 else period
