"""`ip('10.0.0.1')` and `cidr('10.0.0.0/8')`: addresses and networks."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from typing import Final, final

from kubewright.cel.celtypes import BOOL, INT, STRING, opaque
from kubewright.cel.declarations import Declaration, function, member
from kubewright.cel.errors import EvaluationError
from kubewright.cel.library.addresses import ip_problem
from kubewright.cel.values import OpaqueValue, no_overload

__all__ = ("CIDR", "IP", "declarations")

IP: Final = opaque("net.IP")
CIDR: Final = opaque("net.CIDR")
_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


@final
class _Address(OpaqueValue):
    """An address."""

    __slots__ = ("ip",)
    cel_type = IP

    def __init__(self, ip: _Ip) -> None:
        self.ip = ip

    @property
    def cost_size(self) -> int:
        """Bytes."""
        return self.ip.max_prefixlen // 8

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Address) and self.ip == other.ip

    def __hash__(self) -> int:
        return hash(self.ip)


@final
class _Network(OpaqueValue):
    """An address and the number of its network bits."""

    __slots__ = ("bits", "ip")
    cel_type = CIDR

    def __init__(self, ip: _Ip, bits: int) -> None:
        self.ip = ip
        self.bits = bits

    @property
    def cost_size(self) -> int:
        """The number of bytes of the prefix."""
        return -(-self.bits // 8)

    @property
    def start(self) -> int:
        """The network bits alone."""
        drop = self.ip.max_prefixlen - self.bits
        return int(self.ip) >> drop << drop

    def covers(self, ip: _Ip) -> bool:
        """Whether an address is inside."""
        if ip.version != self.ip.version:
            return False
        drop = self.ip.max_prefixlen - self.bits
        return int(ip) >> drop == int(self.ip) >> drop

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Network) and (self.ip, self.bits) == (other.ip, other.bits)

    def __hash__(self) -> int:
        return hash((self.ip, self.bits))


def declarations() -> Iterator[Declaration]:
    """All functions of this module."""
    yield function("ip", "string_to_ip", (STRING,), IP, _address)
    yield member("ip", "cidr_ip", (CIDR,), IP, lambda network: _Address(network.ip))
    yield member("family", "ip_family", (IP,), INT, lambda address: address.ip.version)
    yield function("ip.isCanonical", "ip_is_canonical", (STRING,), BOOL, _is_canonical)
    yield member("isUnspecified", "ip_is_unspecified", (IP,), BOOL, lambda address: address.ip.is_unspecified)
    yield member("isLoopback", "ip_is_loopback", (IP,), BOOL, lambda address: address.ip.is_loopback)
    yield member("isLinkLocalMulticast", "ip_is_link_local_multicast", (IP,), BOOL, _is_link_local_multicast)
    yield member("isLinkLocalUnicast", "ip_is_link_local_unicast", (IP,), BOOL, lambda each: each.ip.is_link_local)
    yield member("isGlobalUnicast", "ip_is_global_unicast", (IP,), BOOL, _is_global_unicast)
    yield function("isIP", "is_ip", (STRING,), BOOL, _is_ip)
    yield function("string", "ip_to_string", (IP,), STRING, lambda address: str(address.ip))
    yield function("cidr", "string_to_cidr", (STRING,), CIDR, _network)
    yield member("containsIP", "cidr_contains_ip_string", (CIDR, STRING), BOOL, _contains_ip_text)
    yield member("containsIP", "cidr_contains_ip_ip", (CIDR, IP), BOOL, lambda one, other: one.covers(other.ip))
    yield member("containsCIDR", "cidr_contains_cidr_string", (CIDR, STRING), BOOL, _contains_network_text)
    yield member("containsCIDR", "cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_network)
    yield member("prefixLength", "cidr_prefix_length", (CIDR,), INT, lambda network: network.bits)
    yield member("masked", "cidr_masked", (CIDR,), CIDR, _masked)
    yield function("isCIDR", "is_cidr", (STRING,), BOOL, _is_network)
    yield function("string", "cidr_to_string", (CIDR,), STRING, lambda network: f"{network.ip}/{network.bits}")


def _address(text: str) -> _Address:
    shown = json.dumps(text, ensure_ascii=False)
    problem = ip_problem(text)
    if problem is not None:
        raise EvaluationError(f"IP Address {shown} parse error during conversion from string: {problem}")
    if "%" in text:
        raise EvaluationError(f"IP address {shown} with zone value is not allowed")
    ip = ipaddress.ip_address(text)
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {shown} is not allowed")
    return _Address(ip)


def _is_canonical(text: str) -> bool:
    return str(_address(text).ip) == text


def _is_ip(text: str) -> bool:
    try:
        _address(text)
    except EvaluationError:
        return False
    return True


def _is_link_local_multicast(address: _Address) -> bool:
    ip = address.ip
    if ip.version == 4:
        return int(ip) >> 8 == 0xE00000
    return int(ip) >> 112 & 0xFF0F == 0xFF02


def _is_global_unicast(address: _Address) -> bool:
    ip = address.ip
    broadcast = ip.version == 4 and int(ip) == 0xFFFFFFFF
    return not (broadcast or ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local)


def _network(text: str) -> _Network:
    wrong = "network address parse error during conversion from string: "
    shown = json.dumps(text, ensure_ascii=False)
    bare, slash, bits = text.rpartition("/")
    if not slash:
        raise EvaluationError(f"{wrong * 2}netip.ParsePrefix({shown}): no '/'")
    problem = ip_problem(bare)
    if problem is not None:
        raise EvaluationError(f"{wrong * 2}netip.ParsePrefix({shown}): {problem}")
    if "%" in bare:
        raise EvaluationError(f"{wrong * 2}netip.ParsePrefix({shown}): IPv6 zones cannot be present in a prefix")
    ip = ipaddress.ip_address(bare)
    if not (bits.isascii() and bits.isdigit()) or (len(bits) > 1 and bits[0] == "0"):
        reason = f"bad bits after slash: {json.dumps(bits)}"
        raise EvaluationError(f"{wrong * 2}netip.ParsePrefix({shown}): {reason}")
    if int(bits) > ip.max_prefixlen:
        raise EvaluationError(f"{wrong * 2}netip.ParsePrefix({shown}): prefix length out of range")
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        raise EvaluationError(f"{wrong}IPv4-mapped IPv6 address {shown} is not allowed")
    return _Network(ip, int(bits))


def _is_network(text: str) -> bool:
    try:
        _network(text)
    except EvaluationError:
        return False
    return True


def _contains_ip_text(network: _Network, text: str) -> bool:
    try:
        return network.covers(_address(text).ip)
    except EvaluationError:
        # The API server also drops the reason why the text is invalid.
        raise no_overload() from None


def _contains_network(one: _Network, other: _Network) -> bool:
    return one.bits <= other.bits and one.covers(other.ip)


def _contains_network_text(network: _Network, text: str) -> bool:
    return _contains_network(network, _network(text))


def _masked(network: _Network) -> _Network:
    return _Network(type(network.ip)(network.start), network.bits)
