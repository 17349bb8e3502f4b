"""Validates NetworkPolicies, Ingresses and IngressClasses."""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.validation.fields import (
    IMMUTABLE,
    JSON,
    Errors,
    each,
    forbidden,
    invalid,
    label_selector_errors,
    long_name_errors,
    one_of,
    required,
    too_long,
)
from kubewright.apiserver.builtin.validation.formats import (
    cidr_errors,
    dns_label,
    dns_label_1035,
    dns_subdomain,
    parse_cidr,
    parse_ip,
    path_segment,
    port_name_errors,
    port_number_errors,
    wildcard_domain_errors,
)
from kubewright.apiserver.builtin.validation.network.services import load_balancer_errors
from kubewright.apiserver.builtin.validation.workloads.jobs import domain_path_errors

__all__ = (
    "ingress_class_errors",
    "ingress_class_update_errors",
    "ingress_create_errors",
    "ingress_errors",
    "ingress_status_errors",
    "network_policy_errors",
    "network_policy_update_errors",
)

_CLASS: Final = "kubernetes.io/ingress.class"
_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_SUFFIXES: Final = ("/..", "/.")
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")


def network_policy_errors(policy: JSON, known: frozenset[str] = frozenset()) -> Errors:
    """ValidateNetworkPolicy; CIDRs in `known` are of the old object and not validated again."""
    spec = policy.get("spec") or {}
    errors = label_selector_errors("spec.podSelector", spec.get("podSelector"))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for number, rule in enumerate(spec.get(direction) or ()):
            place = f"spec.{direction}[{number}]"
            for position, port in enumerate(rule.get("ports") or ()):
                errors += _policy_port(f"{place}.ports[{position}]", port)
            for position, peer in enumerate(rule.get(peers) or ()):
                errors += _peer(f"{place}.{peers}[{position}]", peer, known)
    kinds = spec.get("policyTypes") or []
    if len(kinds) > 2:
        return [*errors, invalid("spec.policyTypes", kinds, "may not specify more than two policyTypes")]
    for position, kind in enumerate(kinds):
        if kind not in ("Ingress", "Egress"):
            errors.append(one_of(f"spec.policyTypes[{position}]", kind, ("Ingress", "Egress")))
    return errors


def network_policy_update_errors(policy: JSON, old: JSON) -> Errors:
    """ValidateNetworkPolicyUpdate."""
    known: set[str] = set()
    spec = old.get("spec") or {}
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for rule in spec.get(direction) or ():
            for peer in rule.get(peers) or ():
                block = peer.get("ipBlock") or {}
                known |= {block.get("cidr", ""), *(block.get("except") or ())}
    return network_policy_errors(policy, frozenset(known))


def _policy_port(path: str, port: JSON) -> Errors:
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    errors: Errors = []
    if protocol is not None and protocol not in ("TCP", "UDP", "SCTP"):
        errors.append(one_of(f"{path}.protocol", protocol, ("TCP", "UDP", "SCTP")))
    place = f"{path}.endPort"
    if number is None:
        detail = "may not be specified when `port` is not specified"
        return errors if end is None else [*errors, invalid(place, end, detail)]
    if isinstance(number, str):
        if end is not None:
            errors.append(invalid(place, end, "may not be specified when `port` is non-numeric"))
        return errors + each(f"{path}.port", number, port_name_errors(number))
    errors += each(f"{path}.port", number, port_number_errors(number))
    if end is not None:
        if end < number:
            errors.append(invalid(place, number, "must be greater than or equal to `port`"))
        errors += each(place, end, port_number_errors(end))
    return errors


def _peer(path: str, peer: JSON, known: frozenset[str]) -> Errors:
    errors: Errors = []
    selectors = [name for name in ("podSelector", "namespaceSelector") if peer.get(name) is not None]
    for name in selectors:
        errors += label_selector_errors(f"{path}.{name}", peer[name])
    block = peer.get("ipBlock")
    if block is not None:
        errors += _block(f"{path}.ipBlock", block, known)
        if selectors:
            errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    elif not selectors:
        errors.append(required(path, "must specify a peer"))
    return errors


def _block(path: str, block: JSON, known: frozenset[str]) -> Errors:
    text = block.get("cidr", "")
    if not text:
        return [required(f"{path}.cidr")]
    errors = [] if text in known else each(f"{path}.cidr", text, cidr_errors(text))
    network = parse_cidr(text)
    if network is None:
        return errors
    for position, hole in enumerate(block.get("except") or ()):
        place = f"{path}.except[{position}]"
        errors += [] if hole in known else each(place, hole, cidr_errors(hole))
        part = parse_cidr(hole)
        if part is None:
            continue
        inside = part.version == network.version and part.network_address in network
        if not inside or network.prefixlen >= part.prefixlen:
            errors.append(invalid(place, hole, "must be a strict subset of `cidr`"))
    return errors


def ingress_create_errors(ingress: JSON) -> Errors:
    """ValidateIngressCreate."""
    errors = ingress_errors(ingress)
    note = ((ingress.get("metadata") or {}).get("annotations") or {}).get(_CLASS)
    name = (ingress.get("spec") or {}).get("ingressClassName")
    if note is not None and name is not None and note != name:
        detail = "must match `ingressClassName` when both are specified"
        errors.append(invalid(f"annotations.{_CLASS}", note, detail))
    return errors


def ingress_errors(ingress: JSON, old: JSON = None) -> Errors:
    """ValidateIngressSpec."""
    spec = ingress.get("spec") or {}
    rules, backend = spec.get("rules"), spec.get("defaultBackend")
    errors: Errors = []
    if not rules and backend is None:
        errors.append(invalid("spec", rules, "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        errors += _backend("spec.defaultBackend", backend)
    for position, rule in enumerate(rules or ()):
        errors += _rule(f"spec.rules[{position}]", rule)
    for position, tls in enumerate(spec.get("tls") or ()):
        errors += _tls(f"spec.tls[{position}]", tls)
    if spec.get("ingressClassName") is not None:
        errors += long_name_errors("spec.ingressClassName", spec["ingressClassName"])
    return errors


def _host(path: str, host: str) -> Errors:
    return each(path, host, wildcard_domain_errors(host) if "*" in host else dns_subdomain(host))


def _rule(path: str, rule: JSON) -> Errors:
    host = rule.get("host", "")
    errors: Errors = []
    if host:
        if parse_ip(host):
            errors.append(invalid(f"{path}.host", host, "must be a DNS name, not an IP address"))
        errors += _host(f"{path}.host", host)
    http = rule.get("http")
    if http is None:
        return errors
    paths = http.get("paths") or ()
    if not paths:
        errors.append(required(f"{path}.http.paths"))
    for position, entry in enumerate(paths):
        errors += _path(f"{path}.http.paths[{position}]", entry)
    return errors


def _path(path: str, entry: JSON) -> Errors:
    kind, text, place = entry.get("pathType"), entry.get("path", ""), f"{path}.path"
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    errors: Errors = []
    if kind in ("Exact", "Prefix"):
        if not text.startswith("/"):
            errors.append(invalid(place, text, "must be an absolute path"))
        errors += [invalid(place, text, f"must not contain '{part}'") for part in _SEQUENCES if part in text]
        errors += [invalid(place, text, f"cannot end with '{part}'") for part in _SUFFIXES if text.endswith(part)]
    elif kind == "ImplementationSpecific":
        if text and not text.startswith("/"):
            errors.append(invalid(place, text, "must be an absolute path"))
    else:
        errors.append(one_of(f"{path}.pathType", kind, _PATH_TYPES))
    return errors + _backend(f"{path}.backend", entry.get("backend") or {})


def _backend(path: str, backend: JSON) -> Errors:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return _object_reference(f"{path}.resource", resource)
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name, port = service.get("name", ""), service.get("port") or {}
    place = f"{path}.service"
    errors = each(f"{place}.name", name, dns_label_1035(name)) if name else [required(f"{place}.name")]
    port_name, number = port.get("name", ""), port.get("number", 0)
    if port_name and number:
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif port_name:
        errors += each(f"{place}.port.name", port_name, port_name_errors(port_name))
    elif number:
        errors += each(f"{place}.port.number", number, port_number_errors(number))
    else:
        errors.append(required(path, "port name or number is required"))
    return errors


def _object_reference(path: str, reference: JSON) -> Errors:
    group = reference.get("apiGroup")
    errors = each(f"{path}.apiGroup", group, dns_subdomain(group)) if group is not None else []
    for name in ("kind", "name"):
        value, place = reference.get(name, ""), f"{path}.{name}"
        errors += each(place, value, path_segment(value)) if value else [required(place)]
    return errors


def _tls(path: str, tls: JSON) -> Errors:
    errors: Errors = []
    for position, host in enumerate(tls.get("hosts") or ()):
        errors += _host(f"{path}.hosts[{position}]", host)
    secret = tls.get("secretName", "")
    return errors + (long_name_errors(f"{path}.secretName", secret) if secret else [])


def ingress_status_errors(ingress: JSON, old: JSON) -> Errors:
    """ValidateIngressStatusUpdate."""
    new, before = (
        ((side.get("status") or {}).get("loadBalancer") or {}).get("ingress") or () for side in (ingress, old)
    )
    return load_balancer_errors("status.loadBalancer.ingress", new, before, modes=False)


def ingress_class_errors(kind: JSON) -> Errors:
    """ValidateIngressClass."""
    spec = kind.get("spec") or {}
    controller, parameters = spec.get("controller", ""), spec.get("parameters")
    errors = [too_long("spec.controller", 250)] if len(controller) > 250 else []
    errors += domain_path_errors("spec.controller", controller)
    if parameters is None:
        return errors
    place = "spec.parameters"
    errors += _object_reference(place, parameters)
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        return [*errors, required(f"{place}.scope")]
    if scope not in ("Cluster", "Namespace"):
        errors.append(one_of(f"{place}.scope", scope, ("Cluster", "Namespace")))
    elif scope == "Namespace":
        at = f"{place}.namespace"
        missing = [required(at, "`parameters.scope` is set to 'Namespace'")]
        errors += missing if namespace is None else each(at, namespace, dns_label(namespace))
    elif namespace is not None:
        errors.append(forbidden(f"{place}.namespace", "`parameters.scope` is set to 'Cluster'"))
    return errors


def ingress_class_update_errors(kind: JSON, old: JSON) -> Errors:
    """ValidateIngressClassUpdate: the controller is immutable."""
    new, before = ((side.get("spec") or {}).get("controller", "") for side in (kind, old))
    errors = [] if new == before else [invalid("spec.controller", new, IMMUTABLE)]
    return errors + ingress_class_errors(kind)
