"""The contents of Endpoints and EndpointSlices, computed from a Service and its pods.

Pure. As kube-controller-manager: ports resolve by name or number, not-ready addresses are listed separately, and
terminating pods appear only in slices. Called by `endpoint_controllers`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final

from kubewright.k8s.core.v1 import (
    EndpointAddress,
    EndpointSubset,
    ObjectReference,
    Pod,
    Service,
    ServicePort,
)
from kubewright.k8s.core.v1 import EndpointPort as CorePort
from kubewright.k8s.discovery.v1 import Endpoint, EndpointConditions, EndpointPort

__all__ = ("Group", "endpoint_groups", "endpoint_labels", "endpoint_subsets", "slice_labels")

HEADLESS: Final = "service.kubernetes.io/headless"
MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
SLICE_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
SLICE_SERVICE: Final = "kubernetes.io/service-name"
SLICE_CONTROLLER: Final = "endpointslice-controller.k8s.io"
_FAMILIES: Final = {"IPv4": 4, "IPv6": 6}

Port = tuple[str, int, str, str | None]
"""Name, number, protocol, application protocol."""
Group = tuple[str, tuple[Port, ...]]
"""An address family and ports: pods with the same ones are placed in the same slices."""


def endpoint_subsets(service: Service, pods: Iterable[Pod]) -> list[EndpointSubset]:
    """The subsets of the Endpoints object, one for each set of ports, sorted."""
    family = (service.spec.ip_families or ["IPv4"])[0]
    ready: dict[tuple[Port, ...], list[EndpointAddress]] = {}
    not_ready: dict[tuple[Port, ...], list[EndpointAddress]] = {}
    publish_not_ready = bool(service.spec.publish_not_ready_addresses)
    for pod in pods:
        if not _should_include(pod, with_terminating=publish_not_ready):
            continue
        addresses = _addresses(pod, family)
        ports = _ports(service, pod)
        if not addresses or (service.spec.ports and not ports) or not (service.spec.ports or _is_headless(service)):
            continue
        address = EndpointAddress(
            ip=addresses[0],
            hostname=_hostname(service, pod),
            node_name=pod.spec.node_name,
            target_ref=_target_ref(pod),
        )
        (ready if publish_not_ready or _is_ready(pod) else not_ready).setdefault(ports, []).append(address)
    return [
        EndpointSubset(
            addresses=_sort_addresses(ready.get(ports)),
            not_ready_addresses=_sort_addresses(not_ready.get(ports)),
            ports=[_core_port(port) for port in ports] or None,
        )
        for ports in sorted({*ready, *not_ready}, key=str)
    ]


def endpoint_groups(service: Service, pods: Iterable[Pod]) -> dict[Group, list[Endpoint]]:
    """The endpoints of the slices by group. A family without endpoints has an empty group: it gets one empty slice."""
    families = service.spec.ip_families or ["IPv4"]
    groups: dict[Group, list[Endpoint]] = {}
    for pod in pods:
        if not _should_include(pod, with_terminating=True):
            continue
        ports = _ports(service, pod)
        for family in families:
            addresses = _addresses(pod, family)
            if addresses:
                groups.setdefault((family, ports), []).append(_endpoint(service, pod, addresses))
    for family in families:
        if not any(known == family for known, _ in groups):
            groups[(family, ())] = []
    for endpoints in groups.values():
        endpoints.sort(key=lambda endpoint: (endpoint.target_ref.name or "") if endpoint.target_ref else "")
    return groups


def endpoint_labels(service: Service) -> dict[str, str]:
    """The labels of the Endpoints object."""
    labels = {name: value for name, value in service.metadata.labels.items() if name != HEADLESS}
    if _is_headless(service):
        labels[HEADLESS] = ""
    labels[MANAGED_BY] = "endpoint-controller"
    return labels


def slice_labels(service: Service) -> dict[str, str]:
    """The labels of the EndpointSlices."""
    reserved = (HEADLESS, SLICE_SERVICE, SLICE_MANAGED_BY)
    labels = {name: value for name, value in service.metadata.labels.items() if name not in reserved}
    if _is_headless(service):
        labels[HEADLESS] = ""
    labels[SLICE_SERVICE] = service.metadata.name
    labels[SLICE_MANAGED_BY] = SLICE_CONTROLLER
    return labels


def slice_ports(ports: Sequence[Port]) -> list[EndpointPort]:
    """The ports of an EndpointSlice."""
    return [
        EndpointPort(name=name, port=number, protocol=protocol, app_protocol=application)
        for name, number, protocol, application in ports
    ]


def _endpoint(service: Service, pod: Pod, addresses: list[str]) -> Endpoint:
    serving, terminating = _is_ready(pod), pod.metadata.deletion_timestamp is not None
    ready = bool(service.spec.publish_not_ready_addresses) or (serving and not terminating)
    return Endpoint(
        addresses=addresses,
        conditions=EndpointConditions(ready=ready, serving=serving, terminating=terminating),
        hostname=_hostname(service, pod),
        node_name=pod.spec.node_name,
        target_ref=_target_ref(pod),
    )


def _core_port(port: Port) -> CorePort:
    name, number, protocol, application = port
    return CorePort(name=name or None, port=number, protocol=protocol, app_protocol=application)


def _should_include(pod: Pod, *, with_terminating: bool) -> bool:
    if pod.status.phase in ("Succeeded", "Failed") or not pod.status.pod_ip:
        return False
    return with_terminating or pod.metadata.deletion_timestamp is None


def _is_ready(pod: Pod) -> bool:
    return any(item.type == "Ready" and item.status == "True" for item in pod.status.conditions or ())


def _is_headless(service: Service) -> bool:
    return service.spec.cluster_ip in (None, "", "None")


def _addresses(pod: Pod, family: str) -> list[str]:
    """The addresses of a family without loopback ones, which simulated pods in the host network have."""
    found = []
    for item in pod.status.pod_ips or ():
        address = ipaddress.ip_address(item.ip)
        if address.version == _FAMILIES.get(family) and not address.is_loopback:
            found.append(str(address))
    return found


def _ports(service: Service, pod: Pod) -> tuple[Port, ...]:
    found: list[Port] = []
    for port in service.spec.ports or ():
        number = _find_port(port, pod)
        if number is not None:
            found.append((port.name or "", number, port.protocol or "TCP", port.app_protocol))
    return tuple(sorted(found, key=lambda item: (item[0], item[1], item[2])))


def _find_port(port: ServicePort, pod: Pod) -> int | None:
    target = port.target_port if port.target_port not in (None, "", 0) else port.port
    if isinstance(target, int):
        return target
    sidecars = [item for item in pod.spec.init_containers or () if item.restart_policy == "Always"]
    for container in (*pod.spec.containers, *sidecars):
        for candidate in container.ports or ():
            if candidate.name == target and (candidate.protocol or "TCP") == (port.protocol or "TCP"):
                return candidate.container_port
    return None


def _hostname(service: Service, pod: Pod) -> str | None:
    return pod.spec.hostname if pod.spec.hostname and pod.spec.subdomain == service.metadata.name else None


def _target_ref(pod: Pod) -> ObjectReference:
    metadata = pod.metadata
    return ObjectReference(kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)


def _sort_addresses(addresses: list[EndpointAddress] | None) -> list[EndpointAddress] | None:
    return sorted(addresses, key=lambda address: ipaddress.ip_address(address.ip).packed) if addresses else None
