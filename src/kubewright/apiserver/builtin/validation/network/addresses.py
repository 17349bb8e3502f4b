"""Validates IPAddresses and ServiceCIDRs."""

from __future__ import annotations

from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.validation.fields import (
    IMMUTABLE,
    JSON,
    Errors,
    each,
    invalid,
    required,
)
from kubewright.apiserver.builtin.validation.formats import (
    cidr_errors,
    dns_subdomain,
    parse_cidr,
    parse_ip,
    path_segment,
)
from kubewright.apiserver.builtin.validation.pods.pods import equal_ignoring_empty

__all__ = ("address_errors", "address_update_errors", "range_errors", "range_update_errors", "strict_address_errors")


def strict_address_errors(name: str) -> list[str]:
    """IsValidIP: an address in its canonical form."""
    address = parse_ip(name)
    if address is None:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    if str(address) == name:
        return []
    if address.version == 4:
        return ["must not have leading 0s"]
    return [f'must be in canonical form ("{address}")']


def address_errors(address: JSON) -> Errors:
    """ValidateIPAddress."""
    parent, place = (address.get("spec") or {}).get("parentRef"), "spec.parentRef"
    if parent is None:
        return [required(place)]
    group = parent.get("group", "")
    errors = each(f"{place}.group", group, dns_subdomain(group)) if group else []
    for name in ("resource", "name"):
        value, at = parent.get(name, ""), f"{place}.{name}"
        errors += each(at, value, path_segment(value)) if value else [required(at)]
    namespace = parent.get("namespace", "")
    return errors + each(f"{place}.namespace", namespace, path_segment(namespace))


def address_update_errors(address: JSON, old: JSON) -> Errors:
    """ValidateIPAddressUpdate: the parentRef is immutable."""
    new, before = ((side.get("spec") or {}).get("parentRef") for side in (address, old))
    if equal_ignoring_empty(new, before):
        return []
    return [invalid("spec.parentRef", internal(new, "*networking.ParentReference"), IMMUTABLE)]


def range_errors(cidrs: JSON) -> Errors:
    """ValidateServiceCIDR: one CIDR for each family at most."""
    return _ranges((cidrs.get("spec") or {}).get("cidrs") or [])


def _ranges(texts: list[str]) -> Errors:
    place = "spec.cidrs"
    if not texts:
        return [required(place, "at least one CIDR required")]
    if len(texts) > 2:
        return [invalid(place, {"CIDRs": texts}, "may only hold up to 2 values")]
    errors: Errors = []
    for position, text in enumerate(texts):
        errors += each(f"{place}[{position}]", text, _strict(text))
    families = [network.version for text in texts if (network := parse_cidr(text))]
    if len(families) == 2 and families[0] == families[1]:
        detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        errors.append(invalid(place, texts, detail))
    return errors


def _strict(text: str) -> list[str]:
    network = parse_cidr(text)
    if network is None:
        return cidr_errors(text)
    start = parse_ip(text.partition("/")[0])
    if start is not None and start != network.network_address:
        return ["must not have bits set beyond the prefix length"]
    return [] if str(network) == text else [f'must be in canonical form ("{network}")']


def range_update_errors(cidrs: JSON, old: JSON) -> Errors:
    """ValidateServiceCIDRUpdate: a second family may be added."""
    new, before = ((side.get("spec") or {}).get("cidrs") or [] for side in (cidrs, old))
    if len(new) == len(before):
        return [
            invalid(f"spec.cidrs[{position}]", text, IMMUTABLE)
            for position, text in enumerate(new)
            if text != before[position]
        ]
    if len(before) == 1 and len(new) == 2:
        changed = [invalid("spec.cidrs[0]", new[0], IMMUTABLE)] if new[0] != before[0] else []
        return changed + _ranges(new)
    return [invalid("spec.cidrs", new or None, IMMUTABLE)]
