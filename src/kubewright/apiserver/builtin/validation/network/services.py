"""Validates Services: ports, addresses, types, and what may not change once it is allocated."""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    duplicate,
    each,
    forbidden,
    invalid,
    label_name_errors,
    labels_errors,
    long_name_errors,
    one_of,
    port_errors,
    required,
    short_name_errors,
)
from kubewright.apiserver.builtin.validation.formats import cidr_errors, ip_errors, parse_ip, port_number_errors
from kubewright.apiserver.builtin.validation.network.endpoints import endpoint_ip_errors

__all__ = (
    "cluster_ip_errors",
    "load_balancer_errors",
    "service_create_errors",
    "service_status_errors",
    "service_update_errors",
)

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES: Final = ("IPv4", "IPv6")
_FAMILY_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_MODE: Final = "service.kubernetes.io/topology-mode"
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_BALANCED: Final = "may only be used when `type` is 'LoadBalancer'"
_FIXED: Final = "may not change once set"


def service_create_errors(service: JSON) -> Errors:
    """ValidateServiceCreate."""
    return _service_errors(service, None)


def service_update_errors(service: JSON, old: JSON) -> Errors:
    """ValidateServiceUpdate: the primary cluster IP is immutable."""
    spec, before = service.get("spec") or {}, old.get("spec") or {}
    errors = _cluster_ip_changes(spec, before) + _family_changes(spec, before)
    errors += _class_errors(spec, before)
    moved = spec.get("healthCheckNodePort", 0) != before.get("healthCheckNodePort", 0)
    if moved and _needs_health_check(spec) and _needs_health_check(before):
        errors.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
    return errors + _service_errors(service, old)


def _is_headless(spec: JSON) -> bool:
    addresses: list[str] = spec.get("clusterIPs") or []
    return addresses == ["None"]


def _needs_health_check(spec: JSON) -> bool:
    return bool(spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local")


def _service_errors(service: JSON, old: JSON) -> Errors:
    spec, notes = service.get("spec") or {}, (service.get("metadata") or {}).get("annotations") or {}
    before = (old or {}).get("spec") or {}
    errors: Errors = []
    if _MODE in notes and _HINTS in notes and notes[_MODE] != notes[_HINTS]:
        detail = f"must match annotations[{_HINTS}] when both are specified"
        errors.append(invalid(f"metadata.annotations[{_MODE}]", notes[_MODE], detail))
    errors += _type_errors(spec) + _ports_errors(spec)
    errors += labels_errors("spec.selector", spec.get("selector")) + _affinity_errors(spec)
    errors += cluster_ip_errors(spec, before)
    for position, address in enumerate(spec.get("externalIPs") or ()):
        place = f"spec.externalIPs[{position}]"
        wrong = [] if address in (before.get("externalIPs") or ()) else each(place, address, ip_errors(address))
        errors += wrong or endpoint_ip_errors(place, address)
    kind = spec.get("type", "")
    if kind not in _TYPES:
        errors.append(one_of("spec.type", kind, _TYPES) if kind else required("spec.type"))
    errors += _port_number_errors(spec) + _range_errors(spec, before, notes, old)
    if spec.get("allocateLoadBalancerNodePorts") is not None and kind != "LoadBalancer":
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", _BALANCED))
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        errors.append(required("allocateLoadBalancerNodePorts"))
    return errors + _class_errors(spec, None) + _traffic_errors(spec)


def _type_errors(spec: JSON) -> Errors:
    errors: Errors = []
    kind = spec.get("type", "")
    if not spec.get("ports") and not _is_headless(spec) and kind != "ExternalName":
        errors.append(required("spec.ports"))
    if kind in ("LoadBalancer", "NodePort") and _is_headless(spec):
        errors.append(invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services"))
    if kind == "ExternalName":
        for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(name):
                errors.append(forbidden(f"spec.{name}", "may not be set for ExternalName services"))
        host = spec.get("externalName", "").removesuffix(".")
        errors += long_name_errors("spec.externalName", host) if host else [required("spec.externalName")]
    return errors


def _ports_errors(spec: JSON) -> Errors:
    errors: Errors = []
    ports = spec.get("ports") or ()
    names: set[str] = set()
    for position, port in enumerate(ports):
        place, name = f"spec.ports[{position}]", port.get("name", "")
        if len(ports) > 1 and not name:
            errors.append(required(f"{place}.name"))
        elif name:
            errors += short_name_errors(f"{place}.name", name)
            if name in names:
                errors.append(duplicate(f"{place}.name", name))
            names.add(name)
        number, protocol = port.get("port", 0), port.get("protocol", "")
        errors += each(f"{place}.port", number, port_number_errors(number))
        if protocol not in _PROTOCOLS:
            at = f"{place}.protocol"
            errors.append(one_of(at, protocol, _PROTOCOLS) if protocol else required(at))
        errors += port_errors(f"{place}.targetPort", port.get("targetPort"))
        if port.get("appProtocol") is not None:
            errors += label_name_errors(f"{place}.appProtocol", port["appProtocol"])
    return errors


def _affinity_errors(spec: JSON) -> Errors:
    affinity, config, place = (
        spec.get("sessionAffinity", ""),
        spec.get("sessionAffinityConfig"),
        "spec.sessionAffinityConfig",
    )
    if affinity not in ("ClientIP", "None"):
        at = "spec.sessionAffinity"
        return [one_of(at, affinity, ("ClientIP", "None")) if affinity else required(at)]
    if affinity == "None":
        detail = "must not be set when session affinity is None"
        return [] if config is None else [forbidden(place, detail)]
    when = "when session affinity type is ClientIP"
    if config is None:
        return [required(place, when)]
    if config.get("clientIP") is None:
        return [required(f"{place}.clientIP", when)]
    seconds = config["clientIP"].get("timeoutSeconds")
    if seconds is None:
        return [required(f"{place}.clientIP.timeoutSeconds", when)]
    if 0 < seconds <= 86400:
        return []
    return [invalid(f"{place}.clientIP.timeoutSeconds", seconds, "must be greater than 0 and less than 86400")]


def cluster_ip_errors(spec: JSON, before: JSON) -> Errors:
    """ValidateServiceClusterIPsRelatedFields."""
    if spec.get("type") == "ExternalName":
        return []
    errors: Errors = []
    first, addresses = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    if first and not addresses:
        errors.append(required("spec.clusterIPs"))
    elif first and addresses[0] != first:
        errors.append(invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`"))
    elif not first and addresses:
        errors.append(invalid("spec.clusterIPs", addresses, "must be empty when `clusterIP` is not specified"))
    errors += _family_errors(spec)
    bad: Errors = []
    for position, address in enumerate(addresses):
        if position == 0 and address == "None":
            if len(addresses) > 1:
                bad.append(invalid("spec.clusterIPs", addresses, "'None' must be the first and only value"))
            continue
        if address not in (before.get("clusterIPs") or ()):
            bad += each(f"spec.clusterIPs[{position}]", address, ip_errors(address))
    errors += bad
    if len(addresses) > 2:
        errors.append(invalid("spec.clusterIPs", addresses, "may only hold up to 2 values"))
    return errors if bad else errors + _stack_errors(spec, addresses)


def _family_errors(spec: JSON) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for position, family in enumerate(spec.get("ipFamilies") or ()):
        place = f"spec.ipFamilies[{position}]"
        if family not in _FAMILIES:
            errors.append(one_of(place, family, _FAMILIES))
        if family in seen:
            errors.append(duplicate(place, family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        errors.append(one_of("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES))
    return errors


def _stack_errors(spec: JSON, addresses: list[str]) -> Errors:
    errors: Errors = []
    versions = [address.version if (address := parse_ip(text)) else 0 for text in addresses]
    if len(addresses) > 1 and len(set(versions)) != len(versions):
        detail = "may specify no more than one IP for each IP family"
        errors.append(invalid("spec.clusterIPs", addresses, detail))
    if _is_headless(spec):
        return errors
    families = spec.get("ipFamilies") or ()
    for position, (family, version) in enumerate(zip(families, versions, strict=False)):
        if family in _FAMILIES and version != (4 if family == "IPv4" else 6):
            detail = f"expected an {family} value as indicated by `ipFamilies[{position}]`"
            errors.append(invalid(f"spec.clusterIPs[{position}]", addresses[position], detail))
    return errors


def _port_number_errors(spec: JSON) -> Errors:
    errors: Errors = []
    ports = spec.get("ports") or ()
    if spec.get("type") == "ClusterIP":
        detail = "may not be used when `type` is 'ClusterIP'"
        errors += [
            forbidden(f"spec.ports[{position}].nodePort", detail)
            for position, port in enumerate(ports)
            if port.get("nodePort")
        ]
    taken: set[tuple[str, int]] = set()
    for position, port in enumerate(ports):
        key = (port.get("protocol", ""), port.get("nodePort", 0))
        if key[1] and key in taken:
            errors.append(duplicate(f"spec.ports[{position}].nodePort", key[1]))
        taken.add(key)
    numbers: set[tuple[str, int]] = set()
    for position, port in enumerate(ports):
        key = (port.get("protocol", ""), port.get("port", 0))
        if key in numbers:
            shown = internal({"protocol": key[0], "port": key[1]}, "core.ServicePort")
            errors.append(duplicate(f"spec.ports[{position}]", shown))
        numbers.add(key)
    return errors


def _range_errors(spec: JSON, before: JSON, notes: JSON, old: JSON) -> Errors:
    errors: Errors = []
    ranges, balanced = spec.get("loadBalancerSourceRanges") or (), spec.get("type") == "LoadBalancer"
    if ranges:
        place = "spec.LoadBalancerSourceRanges"
        if not balanced:
            errors.append(forbidden(place, _BALANCED))
        known = {value.strip() for value in before.get("loadBalancerSourceRanges") or ()}
        for position, value in enumerate(ranges):
            if value.strip() not in known:
                errors += each(f"{place}[{position}]", value.strip(), cidr_errors(value.strip()))
    elif _RANGES in notes:
        place = f"metadata.annotations[{_RANGES}]"
        if not balanced:
            errors.append(forbidden(place, _BALANCED))
        kept = ((old or {}).get("metadata") or {}).get("annotations") or {}
        if kept.get(_RANGES) != notes[_RANGES] and notes[_RANGES].strip():
            for value in notes[_RANGES].split(","):
                errors += each(place, value.strip(), cidr_errors(value.strip()))
    return errors


def _class_errors(spec: JSON, before: JSON) -> Errors:
    errors: Errors = []
    name, balanced = spec.get("loadBalancerClass"), spec.get("type") == "LoadBalancer"
    if (
        before is not None
        and balanced
        and before.get("type") == "LoadBalancer"
        and name != before.get("loadBalancerClass")
    ):
        errors.append(invalid("spec.loadBalancerClass", name, _FIXED))
    if name is not None:
        place = "spec.loadBalancerClass"
        errors += label_name_errors(place, name) if balanced else [forbidden(place, _BALANCED)]
    return errors


def _traffic_errors(spec: JSON) -> Errors:
    errors: Errors = []
    kind, policy = spec.get("type"), spec.get("externalTrafficPolicy", "")
    reachable = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))
    place = "spec.externalTrafficPolicy"
    if not reachable and policy:
        errors.append(invalid(place, policy, "may only be set for externally-accessible services"))
    elif reachable and policy not in ("Cluster", "Local"):
        errors.append(one_of(place, policy, ("Cluster", "Local")) if policy else required(place))
    port, place = spec.get("healthCheckNodePort", 0), "spec.healthCheckNodePort"
    if not _needs_health_check(spec):
        if port:
            detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            errors.append(invalid(place, port, detail))
    elif not port:
        errors.append(required(place))
    else:
        errors += each(place, port, port_number_errors(port))
    inner = spec.get("internalTrafficPolicy")
    if inner is None and kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        errors.append(required("spec.internalTrafficPolicy"))
    elif inner is not None and inner not in ("Cluster", "Local"):
        errors.append(one_of("spec.internalTrafficPolicy", inner, ("Cluster", "Local")))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        errors.append(one_of("spec.trafficDistribution", distribution, _DISTRIBUTIONS))
    return errors


def _cluster_ip_changes(spec: JSON, before: JSON) -> Errors:
    if "ExternalName" in (spec.get("type"), before.get("type")) or (_is_headless(spec) and _is_headless(before)):
        return []
    new, old = spec.get("clusterIPs"), before.get("clusterIPs") or []
    count = len(new or ())
    errors: Errors = []
    if len(old) == count:
        for position, address in enumerate(old):
            if (new or [])[position] != address:
                errors.append(invalid(f"spec.clusterIPs[{position}]", new, _FIXED))
    elif len(old) > count:
        if not count:
            errors.append(invalid("spec.clusterIPs[0]", new, "primary clusterIP can not be unset"))
        elif new[0] != old[0]:
            errors.append(invalid("spec.clusterIPs[0]", new, _FIXED))
        if count == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
            detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
            errors.append(invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail))
    elif old and new[0] != old[0]:
        errors.append(invalid("spec.clusterIPs[0]", new, _FIXED))
    return errors


def _family_changes(spec: JSON, before: JSON) -> Errors:
    if "ExternalName" in (spec.get("type"), before.get("type")) or _is_headless(spec) or _is_headless(before):
        return []
    new, old, addresses = spec.get("ipFamilies"), before.get("ipFamilies") or [], spec.get("clusterIPs")
    count, place = len(new or ()), "spec.ipFamilies[0]"
    errors: Errors = []
    if len(old) == count:
        errors += [invalid(place, new, _FIXED) for position in range(count) if (new or [])[position] != old[position]]
    elif len(old) > count:
        if not addresses:
            errors.append(invalid(place, new, "primary ipFamily can not be unset"))
        if count and new[0] != old[0]:
            errors.append(invalid(place, addresses, _FIXED))
        if count == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
            detail = "must be set to 'SingleStack' when releasing the secondary ipFamily"
            errors.append(invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail))
    elif old and new[0] != old[0]:
        errors.append(invalid(place, addresses, _FIXED))
    return errors


def service_status_errors(service: JSON, old: JSON) -> Errors:
    """ValidateServiceStatusUpdate."""
    balancer = (service.get("status") or {}).get("loadBalancer") or {}
    before = ((old.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    place, entries = "status.loadBalancer.ingress", balancer.get("ingress") or ()
    if (service.get("spec") or {}).get("type") != "LoadBalancer" and entries:
        return [forbidden(place, "may only be used when `spec.type` is 'LoadBalancer'")]
    return load_balancer_errors(place, entries, before, modes=True)


def load_balancer_errors(path: str, entries: JSON, before: JSON, *, modes: bool) -> Errors:
    """ValidateLoadBalancerStatus; `modes` are the ipModes of Services."""
    errors: Errors = []
    known = {entry.get("ip") for entry in before}
    for position, entry in enumerate(entries):
        place, address, host = f"{path}[{position}]", entry.get("ip", ""), entry.get("hostname", "")
        if address and address not in known:
            errors += each(f"{place}.ip", address, ip_errors(address))
        if modes:
            errors += _mode_errors(f"{place}.ipMode", entry.get("ipMode"), address)
        if host:
            errors += long_name_errors(f"{place}.hostname", host)
            if parse_ip(host):
                errors.append(invalid(f"{place}.hostname", host, "must be a DNS name, not an IP address"))
    return errors


def _mode_errors(path: str, mode: str | None, address: str) -> Errors:
    if mode is None:
        return [required(path, "must be specified when `ip` is set")] if address else []
    if not address:
        return [forbidden(path, "may not be specified when `ip` is not set")]
    return [] if mode in ("VIP", "Proxy") else [one_of(path, mode, ("Proxy", "VIP"))]
