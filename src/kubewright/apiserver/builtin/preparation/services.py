"""The preparation of Services: patch in allocated values, and drop the fields of the old type.

An update that leaves out cluster IPs and node ports keeps them: `service_allocator` calls `keep_allocated` before it
allocates. One that changes the type drops what only the old type has, unless the client changed it too
(`patchAllocatedValues` and `dropTypeDependentFields` of k8s.io/kubernetes/pkg/registry/core/service).
"""

from __future__ import annotations

from kubewright.apiserver.builtin.trees import Tree, items, section

__all__ = (
    "create_service",
    "is_externally_accessible",
    "keep_allocated",
    "needs_health_port",
    "needs_node_ports",
    "node_ports_of",
    "update_service",
)


def keep_allocated(spec: Tree, before: Tree | None) -> None:
    """Bring clusterIP and clusterIPs into line; an update that leaves out what the Service has keeps it."""
    if before is not None:
        _patch_allocated(spec, before)
        _align_addresses(spec, before)
    elif spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]


def create_service(service: Tree, *, now: str) -> None:
    """Drop the field that ExternalName Services have no use for."""
    _drop_internal_policy(section(service, "spec"))


def update_service(service: Tree, old: Tree, *, now: str) -> None:
    """Drop type-dependent fields."""
    spec, before = section(service, "spec"), section(old, "spec")
    if before.get("type") != "ExternalName" and spec.get("type") == "ExternalName":
        if _same(spec, before, "clusterIP") and _same(spec, before, "clusterIPs"):
            _drop(spec, "clusterIP", "clusterIPs")
        for name in ("ipFamilies", "ipFamilyPolicy"):
            if _same(spec, before, name):
                _drop(spec, name)
    if needs_node_ports(before) and not needs_node_ports(spec) and node_ports_of(spec) <= node_ports_of(before):
        for port in items(spec, "ports"):
            _drop(port, "nodePort")
    if needs_health_port(before) and not needs_health_port(spec) and _same(spec, before, "healthCheckNodePort"):
        _drop(spec, "healthCheckNodePort")
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if _same(spec, before, name):
                _drop(spec, name)
    lost_external_access = is_externally_accessible(before) and not is_externally_accessible(spec)
    if lost_external_access and _same(spec, before, "externalTrafficPolicy"):
        _drop(spec, "externalTrafficPolicy")
    if spec.get("type") != "LoadBalancer" and service.get("status"):
        service["status"] = {**service["status"], "loadBalancer": {}}
    _drop_internal_policy(spec)


def _drop_internal_policy(spec: Tree) -> None:
    if spec.get("type") == "ExternalName":
        spec.pop("internalTrafficPolicy", None)


def _patch_allocated(spec: Tree, before: Tree) -> None:
    if before.get("type") != "ExternalName" and spec.get("type") != "ExternalName":
        for name in ("clusterIP", "clusterIPs"):
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
    if needs_node_ports(before) and needs_node_ports(spec):
        used = node_ports_of(before) & node_ports_of(spec)
        named = {port.get("name", ""): port.get("nodePort", 0) for port in items(before, "ports")}
        for port in items(spec, "ports"):
            node_port = named.get(port.get("name", ""), 0)
            if node_port and not port.get("nodePort") and node_port not in used:
                port["nodePort"] = node_port
    if needs_health_port(before) and needs_health_port(spec) and before.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = spec.get("healthCheckNodePort") or before["healthCheckNodePort"]


def _align_addresses(spec: Tree, before: Tree) -> None:
    """Old clients write clusterIP only: if it changed and clusterIPs did not, clusterIPs follows."""
    now, was = spec.get("clusterIP") or "", before.get("clusterIP") or ""
    if now == was:
        if before.get("clusterIPs") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = before["clusterIPs"]
    elif _same(spec, before, "clusterIPs"):
        if now:
            spec["clusterIPs"] = [now]
        else:
            spec.pop("clusterIPs", None)


def is_externally_accessible(spec: Tree) -> bool:
    """Whether it can be reached from outside of the cluster."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_node_ports(spec: Tree) -> bool:
    """Whether its type has node ports."""
    return spec.get("type") in ("NodePort", "LoadBalancer")


def needs_health_port(spec: Tree) -> bool:
    """Whether it has a health check node port: a load balancer with local traffic."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def node_ports_of(spec: Tree) -> set[int]:
    """The node ports it has or requests."""
    return {port["nodePort"] for port in items(spec, "ports") if port.get("nodePort")}


def _same(spec: Tree, before: Tree, name: str) -> bool:
    return (spec.get(name) or None) == (before.get(name) or None)


def _drop(tree: Tree, *names: str) -> None:
    for name in names:
        tree.pop(name, None)
