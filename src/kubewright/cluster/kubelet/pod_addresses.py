"""Addresses of simulated pods: 10.244.x.y, each in use once, given back when its pod is gone.

Nothing listens there. A pod that has an address in its status keeps it, also over a restart of this process. Used by
`kubelet`.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.errors import KubewrightError
from kubewright.k8s.core.v1 import Pod

__all__ = ("PodAddresses",)

_BASE: Final = (10 << 24) | (244 << 16)
_ROOM: Final = 1 << 16


@final
class PodAddresses:
    """Which pod has which address, by uid."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next = 1

    def of(self, pod: Pod) -> str:
        """The address of a pod, a new one if it has none."""
        uid = pod.metadata.uid
        known = self._of.get(uid)
        if known is None:
            told = pod.status.pod_ip
            known = told if told and told not in self._taken else self._free()
            self._of[uid] = known
            self._taken.add(known)
        return known

    def release(self, uid: str) -> None:
        """The pod is gone."""
        address = self._of.pop(uid, None)
        if address is not None:
            self._taken.discard(address)

    def _free(self) -> str:
        # Round and round rather than the lowest: an address is not used again at once, as in a real network.
        for _ in range(_ROOM):
            number, self._next = self._next, (self._next + 1) % _ROOM
            if number & 0xFF in (0, 0xFF):
                continue
            whole = _BASE | number
            address = ".".join(str(whole >> shift & 0xFF) for shift in (24, 16, 8, 0))
            if address not in self._taken:
                return address
        raise KubewrightError("the simulated network has no address left; there are more than 65 000 pods")
