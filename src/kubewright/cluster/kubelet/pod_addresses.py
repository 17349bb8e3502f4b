"""IP addresses of simulated pods: 10.244.x.y, unique among pods, released when the pod is deleted.

Nothing listens there. A pod that has an address in its status keeps it over a restart of this process. Used by
`kubelet`.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.errors import KubewrightError
from kubewright.k8s.core.v1 import Pod

__all__ = ("PodAddresses",)

_BASE: Final = (10 << 24) | (244 << 16)
_SIZE: Final = 1 << 16


@final
class PodAddresses:
    """The addresses of pods, by uid."""

    def __init__(self) -> None:
        self._by_uid: dict[str, str] = {}
        self._used: set[str] = set()
        self._next = 1

    def address_of(self, pod: Pod) -> str:
        """The address of a pod; allocates one if it has none."""
        uid = pod.metadata.uid
        address = self._by_uid.get(uid)
        if address is None:
            reported = pod.status.pod_ip
            address = reported if reported and reported not in self._used else self._next_free()
            self._by_uid[uid] = address
            self._used.add(address)
        return address

    def release(self, uid: str) -> None:
        """Release the address of a deleted pod."""
        address = self._by_uid.pop(uid, None)
        if address is not None:
            self._used.discard(address)

    def _next_free(self) -> str:
        # Round robin, not the lowest free one: like a CNI plugin, do not reuse an address at once.
        for _ in range(_SIZE):
            number, self._next = self._next, (self._next + 1) % _SIZE
            if number & 0xFF in (0, 0xFF):
                continue
            whole = _BASE | number
            address = ".".join(str(whole >> shift & 0xFF) for shift in (24, 16, 8, 0))
            if address not in self._used:
                return address
        raise KubewrightError("the simulated network has no address left; there are more than 65 000 pods")
