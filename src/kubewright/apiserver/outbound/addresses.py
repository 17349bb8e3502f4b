"""Which addresses the proxy subresources may connect to: those that are global unicast, as kube-apiserver has it.

Loopback, link-local, multicast and unspecified addresses belong to the machine of the API server, and would let users
reach what listens there for local processes alone. Private networks (10.0.0.0/8) are fine: pods and nodes are there.
Called by `kubelets` and `proxy`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket

__all__ = ("is_global_unicast", "resolve")


def is_global_unicast(text: str) -> bool:
    """Whether this is an IP address that Go's `IP.IsGlobalUnicast` accepts; no name is."""
    if "%" in text:  # an address with a zone, which Go's net.ParseIP does not know
        return False
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped  # Go has one type for both: ::ffff:127.0.0.1 is loopback
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or address == ipaddress.IPv4Address("255.255.255.255")
    )


async def resolve(host: str) -> list[str]:
    """The addresses of a host name or an address; OSError if there are none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))
