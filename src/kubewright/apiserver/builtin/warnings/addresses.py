"""Warnings about addresses and CIDRs that are accepted but not canonical."""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address, ip_interface
from typing import Final

__all__ = ("address_warnings", "network_warnings")

_DOTTED: Final = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){3}")
_FUTURE: Final = "will be considered invalid in a future Kubernetes release: use"


def address_warnings(path: str, value: str) -> list[str]:
    """The warnings about an address (`GetWarningsForIP`)."""
    plain = _without_zeros(value)
    try:
        address = ip_address(plain)
    except ValueError:
        return []  # validation reports it
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    if plain != value or mapped is not None:
        return [f'{path}: non-standard IP address "{value}" {_FUTURE} "{mapped or address}"']
    if address.version == 6 and str(address) != value:
        return [f'{path}: IPv6 address "{value}" should be in RFC 5952 canonical format ("{address}")']
    return []


def network_warnings(path: str, value: str) -> list[str]:
    """The warnings about a CIDR (`GetWarningsForCIDR`)."""
    head, slash, length = value.partition("/")
    plain = _without_zeros(head)
    try:
        interface = ip_interface(f"{plain}{slash}{length}")
    except ValueError:
        return []
    network, warnings = interface.network, []
    if interface.ip != network.network_address:
        single = f"{interface.ip}/{interface.max_prefixlen}"
        warnings.append(
            f'{path}: CIDR value "{value}" is ambiguous in this context (should be "{network}" or "{single}"?)'
        )
    mapped = isinstance(interface.ip, IPv6Address) and interface.ip.ipv4_mapped is not None
    if plain != head or mapped:
        warnings.append(f'{path}: non-standard CIDR value "{value}" {_FUTURE} "{network}"')
    if not warnings and network.version == 6 and str(network) != value:
        warnings.append(f'{path}: IPv6 CIDR value "{value}" should be in RFC 5952 canonical format ("{network}")')
    return warnings


def _without_zeros(value: str) -> str:
    """The address without leading zeros, which are ignored, not octal."""
    if not _DOTTED.fullmatch(value):
        return value
    return ".".join(str(int(part)) for part in value.split("."))
