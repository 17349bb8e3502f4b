"""Validates Endpoints and EndpointSlices."""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import Final

from kubewright.apiserver.builtin.validation.fields import (
    IMMUTABLE,
    JSON,
    Errors,
    duplicate,
    each,
    invalid,
    label_name_errors,
    labels_errors,
    long_name_errors,
    one_of,
    required,
    short_name_errors,
    too_many,
)
from kubewright.apiserver.builtin.validation.formats import (
    Address,
    dns_label,
    dns_subdomain,
    ip_errors,
    label_value_errors,
    parse_ip,
    port_number_errors,
)

__all__ = ("endpoint_ip_errors", "endpoints_errors", "slice_create_errors", "slice_update_errors")

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def endpoint_ip_errors(path: str, text: str) -> Errors:
    """ValidateEndpointIP."""
    address = parse_ip(text)
    if address is None:
        return [invalid(path, text, "must be a valid IP address")]
    errors: Errors = []
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped  # to Go ::ffff:127.0.0.1 is an IPv4 address
    if address.is_unspecified:
        errors.append(invalid(path, text, f"may not be unspecified ({text})"))
    if address.is_loopback:
        errors.append(invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if address.is_link_local:
        errors.append(invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if _is_link_local_multicast(address):
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(invalid(path, text, detail))
    return errors


def _is_link_local_multicast(address: Address) -> bool:
    """Go's `IP.IsLinkLocalMulticast`."""
    first = address.packed
    if address.version == 4:
        return first[:3] == bytes((224, 0, 0))
    return first[0] == 0xFF and first[1] & 0x0F == 0x02


def endpoints_errors(endpoints: JSON, old: JSON = None) -> Errors:
    """ValidateEndpoints; subsets of the old object are not validated again."""
    errors: Errors = []
    for number, subset in enumerate(endpoints.get("subsets") or ()):
        place = f"subsets[{number}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            errors.append(required(place, "must specify `addresses` or `notReadyAddresses`"))
        for part in ("addresses", "notReadyAddresses"):
            for position, address in enumerate(subset.get(part) or ()):
                errors += _address_errors(f"{place}.{part}[{position}]", address)
        ports = subset.get("ports") or ()
        for position, port in enumerate(ports):
            errors += _port_errors(f"{place}.ports[{position}]", port, named=len(ports) > 1)
    return [] if old is not None and old.get("subsets") == endpoints.get("subsets") else errors


def _address_errors(path: str, address: JSON) -> Errors:
    text = address.get("ip", "")
    errors = each(f"{path}.ip", text, ip_errors(text))
    if address.get("hostname"):
        errors += short_name_errors(f"{path}.hostname", address["hostname"])
    if address.get("nodeName") is not None:
        errors += long_name_errors(f"{path}.nodeName", address["nodeName"])
    return errors + endpoint_ip_errors(f"{path}.ip", text)


def _port_errors(path: str, port: JSON, *, named: bool) -> Errors:
    name, number, protocol = port.get("name", ""), port.get("port", 0), port.get("protocol", "")
    errors = [required(f"{path}.name")] if named and not name else []
    errors += short_name_errors(f"{path}.name", name) if name else []
    errors += each(f"{path}.port", number, port_number_errors(number))
    if protocol not in _PROTOCOLS:
        errors.append(one_of(f"{path}.protocol", protocol, _PROTOCOLS) if protocol else required(f"{path}.protocol"))
    if port.get("appProtocol") is not None:
        errors += label_name_errors(f"{path}.appProtocol", port["appProtocol"])
    return errors


def slice_create_errors(piece: JSON, old: JSON = None) -> Errors:
    """ValidateEndpointSliceCreate."""
    errors: Errors = []
    kind = piece.get("addressType", "")
    if kind not in ("FQDN", "IPv4", "IPv6"):
        errors.append(one_of("addressType", kind, ("FQDN", "IPv4", "IPv6")) if kind else required("addressType"))
    errors += _slice_ports(piece.get("ports") or ())
    endpoints = piece.get("endpoints") or ()
    found = [too_many("endpoints", len(endpoints), 1000)] if len(endpoints) > 1000 else []
    for position, endpoint in enumerate(() if found else endpoints):
        found += _endpoint_errors(f"endpoints[{position}]", endpoint, kind)
    if old is not None and (old.get("endpoints") or []) == (piece.get("endpoints") or []):
        found = []
    return errors + found


def slice_update_errors(piece: JSON, old: JSON) -> Errors:
    """ValidateEndpointSliceUpdate: the address type is immutable."""
    errors = slice_create_errors(piece, old)
    if piece.get("addressType", "") != old.get("addressType", ""):
        errors.append(invalid("addressType", piece.get("addressType", ""), IMMUTABLE))
    return errors


def _slice_ports(ports: JSON) -> Errors:
    if len(ports) > 20000:
        return [too_many("ports", len(ports), 20000)]
    errors: Errors = []
    names: set[str] = set()
    for position, port in enumerate(ports):
        place, name, protocol = f"ports[{position}]", port.get("name") or "", port.get("protocol")
        errors += short_name_errors(f"{place}.name", name) if name else []
        if name in names:
            errors.append(duplicate(f"{place}.name", name))
        names.add(name)
        if protocol is None:
            errors.append(required(f"{place}.protocol"))
        elif protocol not in _PROTOCOLS:
            errors.append(one_of(f"{place}.protocol", protocol, _PROTOCOLS))
        if port.get("appProtocol") is not None:
            errors += label_name_errors(f"{place}.appProtocol", port["appProtocol"])
    return errors


def _endpoint_errors(path: str, endpoint: JSON, kind: str) -> Errors:
    errors: Errors = []
    addresses, place = endpoint.get("addresses") or (), f"{path}.addresses"
    if not addresses:
        errors.append(required(place, "must contain at least 1 address"))
    elif len(addresses) > 100:
        errors.append(too_many(place, len(addresses), 100))
    for position, text in enumerate(addresses):
        errors += _typed_address(place, f"{place}[{position}]", text, kind)
    if endpoint.get("nodeName") is not None:
        errors += long_name_errors(f"{path}.nodeName", endpoint["nodeName"])
    errors += labels_errors(f"{path}.deprecatedTopology", endpoint.get("deprecatedTopology"))
    if endpoint.get("hostname") is not None:
        errors += short_name_errors(f"{path}.hostname", endpoint["hostname"])
    return errors + _hints(f"{path}.hints", endpoint.get("hints") or {})


def _typed_address(path: str, place: str, text: str, kind: str) -> Errors:
    if kind == "FQDN":
        return _domain_errors(place, text)
    if kind not in ("IPv4", "IPv6"):
        return []
    errors = each(place, text, ip_errors(text))
    address = parse_ip(text)
    if errors or address is None:
        return errors
    if address.version != int(kind[-1]):
        errors.append(invalid(path, text, f"must be an {kind} address"))
    elif kind == "IPv6" and str(address) != text:
        return [invalid(place, text, f'must be in canonical form ("{address}")')]
    return errors + endpoint_ip_errors(place, text)


def _domain_errors(path: str, text: str) -> Errors:
    if not text:
        return [required(path)]
    name = text.removesuffix(".")
    if wrong := dns_subdomain(name):
        return [invalid(path, name, ",".join(wrong))]
    if "." not in name:
        return [invalid(path, name, "should be a domain with at least two segments separated by dots")]
    for label in name.split("."):
        if wrong := dns_label(label):
            return [invalid(path, label, ",".join(wrong))]
    return []


def _hints(path: str, hints: JSON) -> Errors:
    errors: Errors = []
    for part, rule in (("forZones", label_value_errors), ("forNodes", dns_subdomain)):
        entries = hints.get(part) or ()
        if len(entries) > 8:
            return [*errors, too_many(f"{path}.{part}", len(entries), 8)]
        seen: set[str] = set()
        for position, entry in enumerate(entries):
            place, name = f"{path}.{part}[{position}].name", entry.get("name", "")
            if name in seen:
                errors.append(duplicate(place, name))
            seen.add(name)
            errors += each(place, name, rule(name))
    return errors
