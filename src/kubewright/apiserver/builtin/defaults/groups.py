"""Defaults of kinds of the smaller groups: RBAC, networking, storage, discovery, flow control, resource claims."""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.defaults.volumes import default_source
from kubewright.apiserver.builtin.trees import Tree, fill, fill_empty, items, peek, section

__all__ = (
    "default_api_service",
    "default_csi_driver",
    "default_endpoint_slice",
    "default_flow_schema",
    "default_ingress_class",
    "default_network_policy",
    "default_priority_class",
    "default_priority_level",
    "default_resource_claim",
    "default_resource_claim_template",
    "default_role_binding",
    "default_storage_class",
    "default_token_request",
    "default_volume_attachment",
)

_RBAC: Final = "rbac.authorization.k8s.io"


def default_role_binding(binding: Tree) -> None:
    """RoleBinding and ClusterRoleBinding: the apiGroup of users, groups and roles."""
    fill_empty(section(binding, "roleRef"), "apiGroup", _RBAC)
    for subject in items(binding, "subjects"):
        if subject.get("kind") in ("User", "Group"):
            fill_empty(subject, "apiGroup", _RBAC)


def default_network_policy(policy: Tree) -> None:
    """NetworkPolicy: policyTypes Ingress, and Egress if there are egress rules; protocol TCP."""
    spec = section(policy, "spec")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for name in ("ingress", "egress"):
        for rule in items(spec, name):
            for port in items(rule, "ports"):
                fill(port, "protocol", "TCP")


def default_ingress_class(ingress_class: Tree) -> None:
    """IngressClass: cluster-scoped parameters."""
    parameters = (ingress_class.get("spec") or {}).get("parameters")
    if parameters is not None:
        fill(parameters, "scope", "Cluster")


def default_storage_class(storage_class: Tree) -> None:
    """StorageClass: reclaim policy Delete, immediate binding."""
    fill(storage_class, "reclaimPolicy", "Delete")
    fill(storage_class, "volumeBindingMode", "Immediate")


def default_csi_driver(driver: Tree) -> None:
    """CSIDriver."""
    spec = section(driver, "spec")
    fill(spec, "attachRequired", True)
    fill(spec, "podInfoOnMount", False)
    fill(spec, "storageCapacity", False)
    fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType")
    fill_empty(spec, "volumeLifecycleModes", ["Persistent"])
    fill(spec, "requiresRepublish", False)
    fill(spec, "seLinuxMount", False)


def default_volume_attachment(attachment: Tree) -> None:
    """VolumeAttachment: the defaults of its inline volume."""
    inline = peek(attachment, "spec", "source", "inlineVolumeSpec")
    if inline is not None:
        default_source(inline)


def default_endpoint_slice(endpoint_slice: Tree) -> None:
    """EndpointSlice: ports with an empty name, protocol TCP."""
    for port in items(endpoint_slice, "ports"):
        fill(port, "name", "")
        fill(port, "protocol", "TCP")


def default_priority_class(priority_class: Tree) -> None:
    """PriorityClass: preemption."""
    fill(priority_class, "preemptionPolicy", "PreemptLowerPriority")


def default_api_service(service: Tree) -> None:
    """APIService: port 443."""
    reference = (service.get("spec") or {}).get("service")
    if reference is not None:
        fill(reference, "port", 443)


def default_token_request(request: Tree) -> None:
    """TokenRequest: one hour."""
    fill(section(request, "spec"), "expirationSeconds", 3600)


def default_flow_schema(schema: Tree) -> None:
    """FlowSchema: matching precedence 1000."""
    fill_empty(section(schema, "spec"), "matchingPrecedence", 1000)


def default_priority_level(level: Tree) -> None:
    """PriorityLevelConfiguration: 30 shares, 64 queues of length 50, hand size 8."""
    spec = level.get("spec") or {}
    limited, exempt = spec.get("limited"), spec.get("exempt")
    if limited is not None:
        fill(limited, "nominalConcurrencyShares", 30)
        fill(limited, "lendablePercent", 0)
        queuing = peek(limited, "limitResponse", "queuing")
        if queuing is not None:
            fill_empty(queuing, "handSize", 8)
            fill_empty(queuing, "queues", 64)
            fill_empty(queuing, "queueLengthLimit", 50)
    if exempt is not None:
        fill(exempt, "nominalConcurrencyShares", 0)
        fill(exempt, "lendablePercent", 0)


def default_resource_claim(claim: Tree) -> None:
    """ResourceClaim: exactly one device for each request."""
    _default_device_requests(claim.get("spec"))
    for result in items(peek(claim, "status", "allocation", "devices"), "results"):
        _default_tolerations(result)


def default_resource_claim_template(template: Tree) -> None:
    """ResourceClaimTemplate: as a ResourceClaim."""
    _default_device_requests((template.get("spec") or {}).get("spec"))


def _default_device_requests(spec: Tree | None) -> None:
    for request in items((spec or {}).get("devices"), "requests"):
        exactly = request.get("exactly")
        for part in ([] if exactly is None else [exactly]) + items(request, "firstAvailable"):
            fill_empty(part, "allocationMode", "ExactCount")
            if part["allocationMode"] == "ExactCount":
                fill_empty(part, "count", 1)
            _default_tolerations(part)


def _default_tolerations(holder: Tree) -> None:
    for toleration in items(holder, "tolerations"):
        fill_empty(toleration, "operator", "Equal")
