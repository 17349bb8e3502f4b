"""Pools of things handed out once: addresses of a network, ports of the nodes.

The lower part of a pool is left to those who ask for a certain member, so that they seldom find it taken; everybody
else gets one from the upper part, at random, while there is any. Used by `services`.
"""

from __future__ import annotations

import random
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import final

__all__ = ("AddressPool", "Full", "PortPool", "Unavailable")


@final
class Full(Exception):
    """Nothing is left."""

    def __init__(self) -> None:
        super().__init__("range is full")


@final
class Unavailable(Exception):
    """The member asked for cannot be had; the text says why, in the words of the real server."""


class _Pool:
    """Members counted from 0; which number is which member only the subclass knows."""

    def __init__(self, size: int, reserved: int, chance: random.Random) -> None:
        self._size = size
        self._reserved = reserved
        self._chance = chance
        self._taken: set[int] = set()

    def _take_any(self) -> int:
        for first, last in ((self._reserved, self._size), (0, self._reserved)):
            count = last - first
            start = self._chance.randrange(count) if count > 0 else 0
            for step in range(count):
                index = first + (start + step) % count
                if index not in self._taken:
                    self._taken.add(index)
                    return index
        raise Full


@final
class PortPool(_Pool):
    """Ports of the nodes, both ends included."""

    def __init__(self, first: int, last: int, chance: random.Random) -> None:
        size = last - first + 1
        super().__init__(size, min(max(16, size // 32), 128) if size > 16 else 0, chance)
        self._first = first
        self._last = last

    def take(self, port: int) -> None:
        """This one."""
        if not self._first <= port <= self._last:
            ports = f"{self._first}-{self._last}"
            raise Unavailable(f"provided port is not in the valid range. The range of valid ports is {ports}")
        if port - self._first in self._taken:
            raise Unavailable("provided port is already allocated")
        self._taken.add(port - self._first)

    def take_any(self) -> int:
        """One that is free."""
        return self._first + self._take_any()

    def give_back(self, port: int) -> None:
        """It is free again."""
        self._taken.discard(port - self._first)


@final
class AddressPool(_Pool):
    """Addresses of one network, without that of the network itself and, for IPv4, that for broadcasts."""

    def __init__(self, network: IPv4Network | IPv6Network, chance: random.Random) -> None:
        last = 1 if network.version == 4 else 0
        size = min(network.num_addresses - 1 - last, 2**31)
        super().__init__(size, min(max(16, network.num_addresses // 16), 256) - 1 if size > 16 else 0, chance)
        self._network = network
        self._first = int(network.network_address) + 1

    @property
    def family(self) -> str:
        """As `spec.ipFamilies` names it."""
        return f"IPv{self._network.version}"

    @property
    def network(self) -> str:
        """In CIDR notation."""
        return str(self._network)

    def __contains__(self, address: str) -> bool:
        return ip_address(address) in self._network

    def take(self, address: str) -> None:
        """This one."""
        wanted = ip_address(address)
        index = int(wanted) - self._first
        if wanted not in self._network or not 0 <= index < self._size:
            raise Unavailable("the provided network does not match the current range")
        if index in self._taken:
            raise Unavailable("provided IP is already allocated")
        self._taken.add(index)

    def take_any(self) -> str:
        """One that is free."""
        return str(self._network.network_address + 1 + self._take_any())

    def give_back(self, address: str) -> None:
        """It is free again."""
        self._taken.discard(int(ip_address(address)) - self._first)
