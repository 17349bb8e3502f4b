"""Defaults of the kinds of the smaller groups: RBAC, networking, storage, discovery, flow control, devices."""

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
    """RoleBinding and ClusterRoleBinding: users, groups and roles are of this group, service accounts of the core."""
    fill_empty(section(binding, "roleRef"), "apiGroup", _RBAC)
    for subject in items(binding, "subjects"):
        if subject.get("kind") in ("User", "Group"):
            fill_empty(subject, "apiGroup", _RBAC)


def default_network_policy(policy: Tree) -> None:
    """Ingress is always meant, egress where there are rules for it."""
    spec = section(policy, "spec")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for name in ("ingress", "egress"):
        for rule in items(spec, name):
            for port in items(rule, "ports"):
                fill(port, "protocol", "TCP")


def default_ingress_class(ingress_class: Tree) -> None:
    """Parameters are of the cluster."""
    parameters = (ingress_class.get("spec") or {}).get("parameters")
    if parameters is not None:
        fill(parameters, "scope", "Cluster")


def default_storage_class(storage_class: Tree) -> None:
    """Volumes go with their claims, and are bound at once."""
    fill(storage_class, "reclaimPolicy", "Delete")
    fill(storage_class, "volumeBindingMode", "Immediate")


def default_csi_driver(driver: Tree) -> None:
    """The cautious choice in each respect."""
    spec = section(driver, "spec")
    fill(spec, "attachRequired", True)
    fill(spec, "podInfoOnMount", False)
    fill(spec, "storageCapacity", False)
    fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType")
    fill_empty(spec, "volumeLifecycleModes", ["Persistent"])
    fill(spec, "requiresRepublish", False)
    fill(spec, "seLinuxMount", False)


def default_volume_attachment(attachment: Tree) -> None:
    """As the volume it holds inline."""
    inline = peek(attachment, "spec", "source", "inlineVolumeSpec")
    if inline is not None:
        default_source(inline)


def default_endpoint_slice(endpoint_slice: Tree) -> None:
    """Ports without a name, TCP."""
    for port in items(endpoint_slice, "ports"):
        fill(port, "name", "")
        fill(port, "protocol", "TCP")


def default_priority_class(priority_class: Tree) -> None:
    """More important pods push others out."""
    fill(priority_class, "preemptionPolicy", "PreemptLowerPriority")


def default_api_service(service: Tree) -> None:
    """HTTPS."""
    reference = (service.get("spec") or {}).get("service")
    if reference is not None:
        fill(reference, "port", 443)


def default_token_request(request: Tree) -> None:
    """An hour."""
    fill(section(request, "spec"), "expirationSeconds", 3600)


def default_flow_schema(schema: Tree) -> None:
    """In the middle of the order."""
    fill_empty(section(schema, "spec"), "matchingPrecedence", 1000)


def default_priority_level(level: Tree) -> None:
    """Thirty shares, nothing lent, 64 queues of 50 dealt in hands of eight."""
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
    """One device for each request."""
    _default_device_requests(claim.get("spec"))
    for result in items(peek(claim, "status", "allocation", "devices"), "results"):
        _default_tolerations(result)


def default_resource_claim_template(template: Tree) -> None:
    """As the claims made from it."""
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
