"""The defaults of built-in kinds.

The strategy calls `apply_defaults` on every body, after decoding and before admission and validation: an admission
plugin and a validator may rely on defaults. It is idempotent. Values that depend on other objects or on the user are
not defaults: admission plugins set them. Upstream: the defaults.go of each API group, for example
k8s.io/kubernetes/pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.canonical import encode
from kubewright.apiserver.builtin.defaults import admission, autoscaling, core, groups, pods, volumes, workloads
from kubewright.apiserver.builtin.trees import Tree

__all__ = ("apply_defaults",)

_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_RBAC: Final = "rbac.authorization.k8s.io/v1"
_STORAGE: Final = "storage.k8s.io/v1"
_NETWORKING: Final = "networking.k8s.io/v1"
_FLOW: Final = "flowcontrol.apiserver.k8s.io/v1"
_DEVICES: Final = "resource.k8s.io/v1"

_DEFAULTS: Final[Mapping[GroupVersionKind, Callable[[Tree], None]]] = {
    GroupVersionKind.of(api_version, kind): function
    for api_version, kind, function in (
        ("v1", "Endpoints", core.default_endpoints),
        ("v1", "LimitRange", core.default_limit_range),
        ("v1", "Namespace", core.default_namespace),
        ("v1", "Node", core.default_node),
        ("v1", "PersistentVolume", volumes.default_volume_resource),
        ("v1", "PersistentVolumeClaim", volumes.default_claim),
        ("v1", "Pod", pods.default_pod),
        ("v1", "PodTemplate", workloads.default_pod_template),
        ("v1", "ReplicationController", workloads.default_replication_controller),
        ("v1", "ResourceQuota", core.default_resource_quota),
        ("v1", "Secret", core.default_secret),
        ("v1", "Service", core.default_service),
        ("apps/v1", "DaemonSet", workloads.default_daemon_set),
        ("apps/v1", "Deployment", workloads.default_deployment),
        ("apps/v1", "ReplicaSet", workloads.default_replica_set),
        ("apps/v1", "StatefulSet", workloads.default_stateful_set),
        ("autoscaling/v1", "HorizontalPodAutoscaler", autoscaling.default_autoscaler_v1),
        ("autoscaling/v2", "HorizontalPodAutoscaler", autoscaling.default_autoscaler),
        ("batch/v1", "CronJob", workloads.default_cron_job),
        ("batch/v1", "Job", workloads.default_job),
        ("discovery.k8s.io/v1", "EndpointSlice", groups.default_endpoint_slice),
        ("scheduling.k8s.io/v1", "PriorityClass", groups.default_priority_class),
        ("apiregistration.k8s.io/v1", "APIService", groups.default_api_service),
        ("authentication.k8s.io/v1", "TokenRequest", groups.default_token_request),
        (_ADMISSION, "MutatingWebhookConfiguration", admission.default_mutating_webhooks),
        (_ADMISSION, "ValidatingAdmissionPolicy", admission.default_policy),
        (_ADMISSION, "ValidatingAdmissionPolicyBinding", admission.default_policy_binding),
        (_ADMISSION, "ValidatingWebhookConfiguration", admission.default_validating_webhooks),
        (_RBAC, "ClusterRoleBinding", groups.default_role_binding),
        (_RBAC, "RoleBinding", groups.default_role_binding),
        (_STORAGE, "CSIDriver", groups.default_csi_driver),
        (_STORAGE, "StorageClass", groups.default_storage_class),
        (_STORAGE, "VolumeAttachment", groups.default_volume_attachment),
        (_NETWORKING, "IngressClass", groups.default_ingress_class),
        (_NETWORKING, "NetworkPolicy", groups.default_network_policy),
        (_FLOW, "FlowSchema", groups.default_flow_schema),
        (_FLOW, "PriorityLevelConfiguration", groups.default_priority_level),
        (_DEVICES, "ResourceClaim", groups.default_resource_claim),
        (_DEVICES, "ResourceClaimTemplate", groups.default_resource_claim_template),
    )
}


def apply_defaults(gvk: GroupVersionKind, obj: Tree) -> None:
    """Set the defaults of an object, in place, and bring it into Go's encoding."""
    function = _DEFAULTS.get(gvk)
    if function is not None:
        function(obj)
    encode(gvk, obj)
