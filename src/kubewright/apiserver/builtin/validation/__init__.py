"""Validates objects of built-in kinds: the table of validators by kind and subresource.

The strategy calls `validate_create` and `validate_update` on a decoded object with defaults; they change nothing. The
strategy validates metadata itself; only the name rule of a kind (`name_rule`) and the finalizers of built-in kinds are
validated here. There is one module for each noun. Upstream: the validation.go of each group in
k8s.io/kubernetes/pkg/apis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.validation import (
    admission,
    configuration,
    coordination,
    flow_control,
    nodes,
    quotas,
    rbac,
    requests,
)
from kubewright.apiserver.builtin.validation.names import error_kind, name_rule
from kubewright.apiserver.builtin.validation.network import addresses, endpoints, networking, services
from kubewright.apiserver.builtin.validation.pods import pod_status, pods
from kubewright.apiserver.builtin.validation.pods import volume_claims as claims
from kubewright.apiserver.builtin.validation.storage import device_claims, device_slices, drivers
from kubewright.apiserver.builtin.validation.storage import volumes as storage
from kubewright.apiserver.builtin.validation.workloads import apps as workloads
from kubewright.apiserver.builtin.validation.workloads import autoscaling, disruption, job_status, jobs

__all__ = ("error_kind", "name_rule", "validate_create", "validate_update")

Tree: TypeAlias = dict[str, Any]
Create: TypeAlias = Callable[[Tree], list[FieldError]]
Update: TypeAlias = Callable[[Tree, Tree], list[FieldError]]

_APPS: Final = "apps"
_RBAC: Final = "rbac.authorization.k8s.io"
_NETWORK: Final = "networking.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_STORAGE: Final = "storage.k8s.io"
_ACCESS: Final = "authorization.k8s.io"
_DEVICES: Final = "resource.k8s.io"
_FLOW: Final = "flowcontrol.apiserver.k8s.io"

_CREATE: Final[Mapping[tuple[str, str], Create]] = {
    ("", "Binding"): pods.binding_errors,
    ("", "ConfigMap"): configuration.config_map_errors,
    ("", "Endpoints"): endpoints.endpoints_errors,
    ("", "Event"): coordination.core_event_errors,
    ("", "LimitRange"): quotas.limit_range_errors,
    ("", "Namespace"): configuration.namespace_errors,
    ("", "Node"): nodes.node_errors,
    ("", "PersistentVolume"): storage.volume_errors,
    ("", "PersistentVolumeClaim"): claims.claim_create_errors,
    ("", "Pod"): pods.pod_create_errors,
    ("", "PodTemplate"): pods.pod_template_errors,
    ("", "ReplicationController"): workloads.controller_errors,
    ("", "ResourceQuota"): quotas.quota_errors,
    ("", "Secret"): configuration.secret_errors,
    ("", "Service"): services.service_create_errors,
    (_ADMISSION, "MutatingWebhookConfiguration"): admission.mutating_webhooks_errors,
    (_ADMISSION, "ValidatingAdmissionPolicy"): admission.policy_errors,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): admission.policy_binding_errors,
    (_ADMISSION, "ValidatingWebhookConfiguration"): admission.validating_webhooks_errors,
    ("apiregistration.k8s.io", "APIService"): requests.api_service_errors,
    (_APPS, "ControllerRevision"): workloads.revision_errors,
    (_APPS, "DaemonSet"): workloads.daemon_set_errors,
    (_APPS, "Deployment"): workloads.deployment_errors,
    (_APPS, "ReplicaSet"): workloads.replica_set_errors,
    (_APPS, "StatefulSet"): workloads.stateful_set_errors,
    ("authentication.k8s.io", "TokenRequest"): requests.token_request_errors,
    (_ACCESS, "LocalSubjectAccessReview"): requests.local_access_review_errors,
    (_ACCESS, "SelfSubjectAccessReview"): requests.self_access_review_errors,
    (_ACCESS, "SubjectAccessReview"): requests.access_review_errors,
    ("autoscaling", "HorizontalPodAutoscaler"): autoscaling.autoscaler_errors,
    ("autoscaling", "Scale"): autoscaling.scale_errors,
    ("batch", "CronJob"): jobs.cron_job_create_errors,
    ("batch", "Job"): jobs.job_create_errors,
    ("certificates.k8s.io", "CertificateSigningRequest"): requests.certificate_request_errors,
    ("coordination.k8s.io", "Lease"): coordination.lease_errors,
    ("discovery.k8s.io", "EndpointSlice"): endpoints.slice_create_errors,
    ("events.k8s.io", "Event"): coordination.event_errors,
    (_FLOW, "FlowSchema"): flow_control.flow_schema_errors,
    (_FLOW, "PriorityLevelConfiguration"): flow_control.priority_level_errors,
    (_NETWORK, "IPAddress"): addresses.address_errors,
    (_NETWORK, "Ingress"): networking.ingress_create_errors,
    (_NETWORK, "IngressClass"): networking.ingress_class_errors,
    (_NETWORK, "NetworkPolicy"): networking.network_policy_errors,
    (_NETWORK, "ServiceCIDR"): addresses.range_errors,
    ("node.k8s.io", "RuntimeClass"): drivers.runtime_class_errors,
    ("policy", "PodDisruptionBudget"): disruption.budget_errors,
    (_RBAC, "ClusterRole"): rbac.cluster_role_errors,
    (_RBAC, "ClusterRoleBinding"): rbac.cluster_role_binding_errors,
    (_RBAC, "Role"): rbac.role_errors,
    (_RBAC, "RoleBinding"): rbac.role_binding_errors,
    (_DEVICES, "DeviceClass"): device_claims.device_class_errors,
    (_DEVICES, "ResourceClaim"): device_claims.resource_claim_errors,
    (_DEVICES, "ResourceClaimTemplate"): device_claims.resource_claim_template_errors,
    (_DEVICES, "ResourceSlice"): device_slices.resource_slice_errors,
    ("scheduling.k8s.io", "PriorityClass"): coordination.priority_class_errors,
    (_STORAGE, "CSIDriver"): drivers.driver_errors,
    (_STORAGE, "CSINode"): drivers.node_drivers_errors,
    (_STORAGE, "CSIStorageCapacity"): drivers.storage_capacity_errors,
    (_STORAGE, "StorageClass"): storage.storage_class_errors,
    (_STORAGE, "VolumeAttachment"): drivers.attachment_errors,
    (_STORAGE, "VolumeAttributesClass"): drivers.attributes_class_errors,
}


def _nothing(tree: Tree, old: Tree) -> list[FieldError]:
    return []


_UPDATE: Final[Mapping[tuple[str, str, str], Update]] = {
    ("", "ConfigMap", ""): configuration.config_map_update_errors,
    ("", "Endpoints", ""): endpoints.endpoints_errors,
    ("", "Event", ""): coordination.core_event_errors,
    ("", "Namespace", ""): _nothing,
    ("", "Namespace", "finalize"): configuration.namespace_finalize_errors,
    ("", "Namespace", "status"): configuration.namespace_status_errors,
    ("", "Node", ""): nodes.node_update_errors,
    ("", "Node", "status"): nodes.node_update_errors,
    ("", "PersistentVolume", ""): storage.volume_update_errors,
    ("", "PersistentVolume", "status"): storage.volume_status_errors,
    ("", "PersistentVolumeClaim", ""): claims.claim_update_errors,
    ("", "PersistentVolumeClaim", "status"): claims.claim_status_errors,
    ("", "Pod", ""): pods.pod_update_errors,
    ("", "Pod", "ephemeralcontainers"): pods.ephemeral_containers_errors,
    ("", "Pod", "resize"): pods.pod_resize_errors,
    ("", "Pod", "status"): pod_status.pod_status_errors,
    ("", "ReplicationController", "status"): workloads.controller_status_errors,
    ("", "ResourceQuota", ""): quotas.quota_update_errors,
    ("", "ResourceQuota", "status"): quotas.quota_status_errors,
    ("", "Secret", ""): configuration.secret_update_errors,
    ("", "Service", ""): services.service_update_errors,
    ("", "Service", "status"): services.service_status_errors,
    ("apiregistration.k8s.io", "APIService", "status"): requests.api_service_status_errors,
    (_APPS, "ControllerRevision", ""): workloads.revision_update_errors,
    (_APPS, "DaemonSet", ""): workloads.daemon_set_update_errors,
    (_APPS, "DaemonSet", "status"): workloads.daemon_set_status_errors,
    (_APPS, "Deployment", ""): workloads.deployment_update_errors,
    (_APPS, "Deployment", "status"): workloads.deployment_status_errors,
    (_APPS, "ReplicaSet", ""): workloads.replica_set_update_errors,
    (_APPS, "ReplicaSet", "status"): workloads.replica_set_status_errors,
    (_APPS, "StatefulSet", ""): workloads.stateful_set_update_errors,
    (_APPS, "StatefulSet", "status"): workloads.stateful_set_status_errors,
    ("autoscaling", "HorizontalPodAutoscaler", "status"): autoscaling.autoscaler_status_errors,
    ("batch", "CronJob", ""): jobs.cron_job_update_errors,
    ("batch", "CronJob", "status"): _nothing,
    ("batch", "Job", ""): jobs.job_update_errors,
    ("batch", "Job", "status"): job_status.job_status_errors,
    ("discovery.k8s.io", "EndpointSlice", ""): endpoints.slice_update_errors,
    ("events.k8s.io", "Event", ""): coordination.event_update_errors,
    (_FLOW, "FlowSchema", "status"): flow_control.flow_schema_status_errors,
    (_FLOW, "PriorityLevelConfiguration", "status"): flow_control.priority_level_status_errors,
    (_NETWORK, "IPAddress", ""): addresses.address_update_errors,
    (_NETWORK, "Ingress", ""): networking.ingress_errors,
    (_NETWORK, "Ingress", "status"): networking.ingress_status_errors,
    (_NETWORK, "IngressClass", ""): networking.ingress_class_update_errors,
    (_NETWORK, "NetworkPolicy", ""): networking.network_policy_update_errors,
    (_NETWORK, "ServiceCIDR", ""): addresses.range_update_errors,
    ("node.k8s.io", "RuntimeClass", ""): drivers.runtime_class_update_errors,
    ("policy", "PodDisruptionBudget", "status"): disruption.budget_status_errors,
    (_RBAC, "ClusterRoleBinding", ""): rbac.cluster_role_binding_update_errors,
    (_RBAC, "RoleBinding", ""): rbac.role_binding_update_errors,
    (_DEVICES, "ResourceClaim", ""): device_claims.resource_claim_update_errors,
    (_DEVICES, "ResourceClaim", "status"): device_slices.resource_claim_status_errors,
    (_DEVICES, "ResourceClaimTemplate", ""): device_claims.resource_claim_template_update_errors,
    (_DEVICES, "ResourceSlice", ""): device_slices.resource_slice_update_errors,
    ("scheduling.k8s.io", "PriorityClass", ""): coordination.priority_class_update_errors,
    (_STORAGE, "CSIDriver", ""): drivers.driver_update_errors,
    (_STORAGE, "CSINode", ""): drivers.node_drivers_update_errors,
    (_STORAGE, "CSIStorageCapacity", ""): drivers.storage_capacity_update_errors,
    (_STORAGE, "StorageClass", ""): storage.storage_class_update_errors,
    (_STORAGE, "VolumeAttachment", ""): drivers.attachment_update_errors,
    (_STORAGE, "VolumeAttributesClass", ""): drivers.attributes_class_update_errors,
}
_FREE_FINALIZERS: Final = frozenset((_ADMISSION, "apiregistration.k8s.io", "coordination.k8s.io", "events.k8s.io"))
"""Groups whose finalizers need no domain."""


@cache
def _creator(gvk: GroupVersionKind) -> Create | None:
    if gvk.group == "autoscaling" and gvk.version == "v1" and gvk.kind == "HorizontalPodAutoscaler":
        return autoscaling.autoscaler_v1_errors
    return _CREATE.get((gvk.group, gvk.kind))


@cache
def _updater(gvk: GroupVersionKind, subresource: str) -> Update:
    found = _UPDATE.get((gvk.group, gvk.kind, subresource))
    if found is not None:
        return found
    if gvk.kind == "HorizontalPodAutoscaler" and not subresource:
        return autoscaling.autoscaler_v1_errors if gvk.version == "v1" else autoscaling.autoscaler_errors
    create = None if subresource else _creator(gvk)
    return (lambda tree, _old: create(tree)) if create is not None else _nothing


def validate_create(gvk: GroupVersionKind, obj: Tree) -> list[FieldError]:  # hot
    """The errors of a new object, in kube-apiserver's order."""
    create = _creator(gvk)
    errors = _finalizer_errors(gvk, obj)
    return errors + create(obj) if create is not None else errors


def validate_update(gvk: GroupVersionKind, obj: Tree, old: Tree, *, subresource: str = "") -> list[FieldError]:
    """The errors of an update of the main endpoint or of a subresource."""
    errors = _finalizer_errors(gvk, obj)
    if gvk.kind == "CertificateSigningRequest":
        return errors + requests.certificate_request_update_errors(obj, old, subresource)
    return errors + _updater(gvk, subresource)(obj, old)


def _finalizer_errors(gvk: GroupVersionKind, obj: Tree) -> list[FieldError]:
    finalizers = (obj.get("metadata") or {}).get("finalizers")
    if not finalizers or gvk.group in _FREE_FINALIZERS:
        return []
    errors: list[FieldError] = []
    for position, name in enumerate(finalizers):
        errors += configuration.finalizer_errors(f"metadata.finalizers[{position}]", name)
    return errors
