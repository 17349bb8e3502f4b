"""The allocators of cluster IPs and node ports. `service_allocator` uses them.

The lower part of a range is reserved for static allocation: dynamic allocation takes a random member of the upper part
while there is one, so that a client which asks for a certain member seldom finds it allocated (KEP-3070; upstream
k8s.io/kubernetes/pkg/registry/core/service/ipallocator and portallocator).
"""

from __future__ import annotations

import random
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import final

__all__ = ("AddressPool", "AllocationError", "PoolFullError", "PortPool")


@final
class PoolFullError(Exception):
    """The whole range is allocated."""

    def __init__(self) -> None:
        super().__init__("range is full")


@final
class AllocationError(Exception):
    """The requested member cannot be allocated; the text is kube-apiserver's."""


class _Pool:
    """Allocates numbers from 0; a subclass maps them to its members."""

    def __init__(self, size: int, reserved: int, rng: random.Random) -> None:
        self._size = size
        self._reserved = reserved
        self._rng = rng
        self._allocated: set[int] = set()

    def _allocate_next(self) -> int:
        for first, last in ((self._reserved, self._size), (0, self._reserved)):
            count = last - first
            start = self._rng.randrange(count) if count > 0 else 0
            for step in range(count):
                index = first + (start + step) % count
                if index not in self._allocated:
                    self._allocated.add(index)
                    return index
        raise PoolFullError


@final
class PortPool(_Pool):
    """A range of node ports, both ends included."""

    def __init__(self, first: int, last: int, rng: random.Random) -> None:
        size = last - first + 1
        super().__init__(size, min(max(16, size // 32), 128) if size > 16 else 0, rng)
        self._first = first
        self._last = last

    def allocate(self, port: int) -> None:
        """Allocate a certain member."""
        if not self._first <= port <= self._last:
            ports = f"{self._first}-{self._last}"
            raise AllocationError(f"provided port is not in the valid range. The range of valid ports is {ports}")
        if port - self._first in self._allocated:
            raise AllocationError("provided port is already allocated")
        self._allocated.add(port - self._first)

    def allocate_next(self) -> int:
        """Allocate any member."""
        return self._first + self._allocate_next()

    def release(self, port: int) -> None:
        """Release a member."""
        self._allocated.discard(port - self._first)


@final
class AddressPool(_Pool):
    """The addresses of a network, without the network address and, for IPv4, the broadcast address."""

    def __init__(self, network: IPv4Network | IPv6Network, rng: random.Random) -> None:
        last = 1 if network.version == 4 else 0
        size = min(network.num_addresses - 1 - last, 2**31)
        super().__init__(size, min(max(16, network.num_addresses // 16), 256) - 1 if size > 16 else 0, rng)
        self._network = network
        self._first = int(network.network_address) + 1

    @property
    def family(self) -> str:
        """IPv4 or IPv6, as in spec.ipFamilies."""
        return f"IPv{self._network.version}"

    @property
    def network(self) -> str:
        """In CIDR notation."""
        return str(self._network)

    def __contains__(self, address: str) -> bool:
        return ip_address(address) in self._network

    def allocate(self, address: str) -> None:
        """Allocate a certain member."""
        wanted = ip_address(address)
        index = int(wanted) - self._first
        if wanted not in self._network or not 0 <= index < self._size:
            raise AllocationError("the provided network does not match the current range")
        if index in self._allocated:
            raise AllocationError("provided IP is already allocated")
        self._allocated.add(index)

    def allocate_next(self) -> str:
        """Allocate any member."""
        return str(self._network.network_address + 1 + self._allocate_next())

    def release(self, address: str) -> None:
        """Release a member."""
        self._allocated.discard(int(ip_address(address)) - self._first)
