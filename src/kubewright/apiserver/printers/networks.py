"""The rows of networking kinds: Service, Endpoints, EndpointSlice, Ingress, NetworkPolicy, ServiceCIDR, IPAddress."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kubewright.apiserver.builtin.trees import Tree, items, peek, text
from kubewright.apiserver.printers.ages import age_of
from kubewright.apiserver.printers.texts import (
    NONE,
    UNKNOWN,
    UNSET,
    labels_text,
    list_with_more,
    name_of,
    number,
    selector_text,
)

__all__ = (
    "address_cells",
    "endpoint_slice_cells",
    "endpoints_cells",
    "ingress_cells",
    "ingress_class_cells",
    "network_policy_cells",
    "service_cells",
    "service_cidr_cells",
)

_MAX_SHOWN: Final = 3


def service_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a Service."""
    spec = tree.get("spec") or {}
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP") or NONE]
    ports = ",".join(_service_port(port) for port in items(spec, "ports"))
    return [
        name_of(tree),
        text(spec, "type"),
        addresses[0],
        _external_ip(spec, tree.get("status")),
        ports or NONE,
        age_of(tree, now),
        labels_text(spec.get("selector")),
    ]


def _service_port(port: Tree) -> str:
    outside = number(port, "nodePort")
    inside = f"{number(port, 'port')}:{outside}" if outside > 0 else str(number(port, "port"))
    return f"{inside}/{text(port, 'protocol')}"


def _external_ip(spec: Tree, status: Tree | None) -> str:
    given: list[str] = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NONE
        case "LoadBalancer":
            return ",".join((*_load_balancer_status(status), *given)) or "<pending>"
        case "ExternalName":
            return text(spec, "externalName")
    return UNKNOWN


def _load_balancer_status(status: Tree | None) -> list[str]:
    points = items(peek(status, "loadBalancer"), "ingress")
    return sorted({found for point in points if (found := text(point, "ip") or text(point, "hostname"))})


def endpoints_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of an Endpoints."""
    subsets = items(tree, "subsets")
    words: list[str] = []
    for subset in subsets:
        addresses = [text(one, "ip") for one in items(subset, "addresses")]
        # The endpoints of a headless service without ports are its addresses.
        words.extend(addresses if not items(subset, "ports") else ())
        words.extend(_host_port(ip, number(port, "port")) for port in items(subset, "ports") for ip in addresses)
    return [name_of(tree), list_with_more(words, _MAX_SHOWN) if subsets else NONE, age_of(tree, now)]


def _host_port(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def endpoint_slice_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of an EndpointSlice."""
    ports = [_slice_port(port) for port in items(tree, "ports")]
    addresses = [address for endpoint in items(tree, "endpoints") for address in endpoint.get("addresses") or ()]
    return [
        name_of(tree),
        text(tree, "addressType"),
        list_with_more(ports, _MAX_SHOWN) or UNSET,
        list_with_more(addresses, _MAX_SHOWN) or UNSET,
        age_of(tree, now),
    ]


def _slice_port(port: Tree) -> str:
    if port.get("port") is not None:
        return str(port["port"])
    return "*" if port.get("name") is None else str(port["name"])


def ingress_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of an Ingress."""
    spec = tree.get("spec") or {}
    return [
        name_of(tree),
        NONE if spec.get("ingressClassName") is None else spec["ingressClassName"],
        _hosts(items(spec, "rules")),
        ",".join(_load_balancer_status(tree.get("status"))),
        "80, 443" if items(spec, "tls") else "80",
        age_of(tree, now),
    ]


def _hosts(rules: list[Tree]) -> str:
    hosts: list[str] = []
    more = False
    for rule in rules:
        # As `formatHosts`: any rule after the third host counts as one more, even without a host.
        more = more or len(hosts) == _MAX_SHOWN
        if not more and text(rule, "host"):
            hosts.append(text(rule, "host"))
    shown = ",".join(hosts) or "*"
    return f"{shown} + {len(rules) - _MAX_SHOWN} more..." if more else shown


def ingress_class_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of an IngressClass."""
    found = peek(tree, "spec", "parameters")
    parameters = NONE
    if found is not None:
        group = "" if found.get("apiGroup") is None else f".{found['apiGroup']}"
        parameters = f"{text(found, 'kind')}{group}/{text(found, 'name')}"
    return [name_of(tree), text(tree, "spec", "controller"), parameters, age_of(tree, now)]


def network_policy_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a NetworkPolicy."""
    return [name_of(tree), selector_text(peek(tree, "spec", "podSelector")), age_of(tree, now)]


def service_cidr_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a ServiceCIDR."""
    return [name_of(tree), ",".join(peek(tree, "spec", "cidrs") or ()), age_of(tree, now)]


def address_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of an IPAddress; kube-apiserver's has one cell (the age) more than the kind has columns."""
    found = peek(tree, "spec", "parentRef")
    parent = NONE
    if found is not None:
        group, resource = text(found, "group"), text(found, "resource")
        parts = [f"{resource}.{group}" if group else resource, text(found, "namespace"), text(found, "name")]
        parent = "/".join((parts[0].lower(), *([parts[1]] if parts[1] else ()), parts[2]))
    return [name_of(tree), parent, age_of(tree, now)]
