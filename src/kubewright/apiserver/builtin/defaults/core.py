"""Defaults of core kinds: Secret, Namespace, Node, Service, Endpoints, LimitRange, ResourceQuota."""

from __future__ import annotations

from base64 import b64encode
from typing import Final

from kubewright.apiserver.builtin.defaults.resources import round_amounts
from kubewright.apiserver.builtin.trees import Tree, fill, fill_empty, items, peek, section

__all__ = (
    "default_endpoints",
    "default_limit_range",
    "default_namespace",
    "default_node",
    "default_resource_quota",
    "default_secret",
    "default_service",
)

_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_THREE_HOURS: Final = 10800


def default_secret(secret: Tree) -> None:
    """Secret: type Opaque; stringData is moved into data."""
    fill_empty(secret, "type", "Opaque")
    texts = secret.pop("stringData", None)
    if texts:
        data = section(secret, "data")
        for key, value in texts.items():
            data[key] = b64encode((value or "").encode()).decode()


def default_namespace(namespace: Tree) -> None:
    """Namespace: the label kubernetes.io/metadata.name, for selectors; phase Active."""
    metadata = section(namespace, "metadata")
    if metadata.get("name"):
        section(metadata, "labels")[_NAME_LABEL] = metadata["name"]
    fill_empty(section(namespace, "status"), "phase", "Active")


def default_node(node: Tree) -> None:
    """Node: allocatable is the capacity; podCIDR and podCIDRs agree."""
    status = node.get("status")
    if status:
        if status.get("allocatable") is None and status.get("capacity") is not None:
            status["allocatable"] = dict(status["capacity"])
        round_amounts(status, "capacity", "allocatable")
    spec = node.get("spec")
    if spec:
        ranges, first = spec.get("podCIDRs"), spec.get("podCIDR")
        if first and (not ranges or ranges[0] != first):
            spec["podCIDRs"] = [first]
        elif ranges and not first:
            spec["podCIDR"] = ranges[0]


def default_service(service: Tree) -> None:
    """Service: type ClusterIP, protocol TCP, the target port the same as the port."""
    spec = section(service, "spec")
    fill_empty(spec, "sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    timeout = peek(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds")
    if spec["sessionAffinity"] == "ClientIP" and timeout is None:
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _THREE_HOURS}}
    fill_empty(spec, "type", "ClusterIP")
    kind = spec["type"]
    for port in items(spec, "ports"):
        fill_empty(port, "protocol", "TCP")
        fill_empty(port, "targetPort", port.get("port", 0))
    if kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs")):
        fill_empty(spec, "externalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        fill(spec, "internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        fill(spec, "allocateLoadBalancerNodePorts", True)
        for ingress in items(peek(service, "status", "loadBalancer"), "ingress"):
            if ingress.get("ip"):
                fill(ingress, "ipMode", "VIP")


def default_endpoints(endpoints: Tree) -> None:
    """Endpoints: protocol TCP."""
    for subset in items(endpoints, "subsets"):
        for port in items(subset, "ports"):
            fill_empty(port, "protocol", "TCP")


def default_limit_range(limit_range: Tree) -> None:
    """LimitRange: for containers, the default limit is the max, and the default request is the limit, else the min."""
    for limit in items(limit_range.get("spec"), "limits"):
        if limit.get("type") == "Container":
            limits, requests = section(limit, "default"), section(limit, "defaultRequest")
            for resource, amount in (limit.get("max") or {}).items():
                limits.setdefault(resource, amount)
            for source in (limits, limit.get("min") or {}):
                for resource, amount in source.items():
                    requests.setdefault(resource, amount)
        round_amounts(limit, "max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def default_resource_quota(quota: Tree) -> None:
    """ResourceQuota: quantities rounded up to milli."""
    round_amounts(quota.get("spec"), "hard")
    round_amounts(quota.get("status"), "hard", "used")
