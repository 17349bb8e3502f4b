"""Finds the printer of a kind. `verbs.transform` calls it for every object of a Table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.conversion import convert
from kubewright.apiserver.builtin.trees import Tree
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.printers import networks, others, pods, policies, volumes, workloads
from kubewright.apiserver.printers.custom import custom_cells
from kubewright.apiserver.printers.texts import name_of, number

__all__ = ("cells", "row_conditions", "row_order", "scale_cells")

T = TypeVar("T")
Printer = Callable[[Tree, datetime], list[Any]]

_AUTOSCALER: Final = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")


def _autoscaler(tree: Tree, now: datetime) -> list[Any]:
    return workloads.autoscaler_cells(convert(tree, _AUTOSCALER), now)


_PRINTERS: Final[Mapping[str, Printer]] = {
    "APIService": others.api_service_cells,
    "CSIDriver": volumes.csi_driver_cells,
    "CSINode": volumes.csi_node_cells,
    "CertificateSigningRequest": policies.signing_request_cells,
    "ClusterRoleBinding": policies.binding_cells,
    "ComponentStatus": others.component_status_cells,
    "ConfigMap": others.config_map_cells,
    "ControllerRevision": workloads.revision_cells,
    "CronJob": workloads.cron_job_cells,
    "DaemonSet": workloads.daemon_set_cells,
    "Deployment": workloads.deployment_cells,
    "DeviceClass": others.name_and_age_cells,
    "EndpointSlice": networks.endpoint_slice_cells,
    "Endpoints": networks.endpoints_cells,
    "Event": others.event_cells,
    "FlowSchema": policies.flow_schema_cells,
    "HorizontalPodAutoscaler": _autoscaler,
    "IPAddress": networks.address_cells,
    "Ingress": networks.ingress_cells,
    "IngressClass": networks.ingress_class_cells,
    "Job": workloads.job_cells,
    "Lease": others.lease_cells,
    "MutatingWebhookConfiguration": policies.webhooks_cells,
    "Namespace": others.namespace_cells,
    "NetworkPolicy": networks.network_policy_cells,
    "Node": others.node_cells,
    "PersistentVolume": volumes.volume_cells,
    "PersistentVolumeClaim": volumes.claim_cells,
    "Pod": pods.pod_cells,
    "PodDisruptionBudget": workloads.budget_cells,
    "PodTemplate": pods.pod_template_cells,
    "PriorityClass": policies.priority_class_cells,
    "PriorityLevelConfiguration": policies.priority_level_cells,
    "ReplicaSet": workloads.replica_set_cells,
    "ReplicationController": workloads.controller_cells,
    "ResourceClaim": volumes.device_claim_cells,
    "ResourceClaimTemplate": others.name_and_age_cells,
    "ResourceQuota": policies.quota_cells,
    "ResourceSlice": volumes.device_slice_cells,
    "RoleBinding": policies.binding_cells,
    "RuntimeClass": others.runtime_class_cells,
    "Secret": others.secret_cells,
    "Service": networks.service_cells,
    "ServiceAccount": others.name_and_age_cells,
    "ServiceCIDR": networks.service_cidr_cells,
    "StatefulSet": workloads.stateful_set_cells,
    "StorageClass": volumes.storage_class_cells,
    "ValidatingAdmissionPolicy": policies.policy_cells,
    "ValidatingAdmissionPolicyBinding": policies.policy_binding_cells,
    "ValidatingWebhookConfiguration": policies.webhooks_cells,
    "VolumeAttachment": volumes.attachment_cells,
    "VolumeAttributesClass": volumes.attributes_class_cells,
}


def _now() -> datetime:
    return datetime.now(UTC)


def cells(resource: Resource, tree: Tree, *, now: Callable[[], datetime] = _now) -> list[Any]:
    """The cells of an object, in the order of the resource's column definitions."""
    if resource.custom:
        return custom_cells(resource.columns, tree, now())
    return _PRINTERS.get(resource.kind.kind, others.default_cells)(tree, now())


def scale_cells(tree: Tree, *, now: Callable[[], datetime] = _now) -> list[Any]:
    """The cells of a Scale, in the order of its column definitions."""
    return workloads.scale_cells(tree, now())


def row_conditions(resource: Resource, tree: Tree) -> list[Tree]:
    """The conditions of a row; only pods have any."""
    return pods.pod_conditions(tree) if not resource.custom and resource.kind.kind == "Pod" else []


def row_order(resource: Resource, items: Sequence[T], *, tree_of: Callable[[T], Tree]) -> Sequence[T]:
    """The objects of a list in the order of their rows: FlowSchemas by precedence, all others unchanged."""
    if resource.custom or resource.kind.kind != "FlowSchema":
        return items

    def key(item: T) -> tuple[int, str]:
        tree = tree_of(item)
        return number(tree, "spec", "matchingPrecedence"), name_of(tree)

    return sorted(items, key=key)
