"""Looks for the ConfigMaps and Secrets that pods refer to.

What was found is believed for a moment, because the replicas of a workload all ask for the same; what was not found is
asked for each time. Used by `kubelet`, on behalf of `needs`.
"""

from __future__ import annotations

from typing import Final, final

from kubewright._base.clock import Clock
from kubewright.cache.cached_client import CachedClient
from kubewright.cluster.kubelet.pods.references import Kind
from kubewright.errors import NotFound
from kubewright.k8s.core.v1 import ConfigMap, Secret

__all__ = ("ReferenceLookup",)

_BELIEVED: Final = 1.0
_MOST: Final = 1000


@final
class ReferenceLookup:
    """The keys of ConfigMaps and Secrets, as found on the server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._found: dict[tuple[str, Kind, str], tuple[float, frozenset[str]]] = {}

    async def find(self, kind: Kind, name: str, client: CachedClient) -> frozenset[str] | None:
        """The keys of an object in the client's namespace; None if there is no such object."""
        now = self._clock.monotonic()
        known = self._found.get((client.namespace, kind, name))
        if known is not None and now - known[0] < _BELIEVED:
            return known[1]
        try:
            keys = await self._read(kind, name, client)
        except NotFound:
            return None
        if len(self._found) >= _MOST:
            self._found.clear()
        self._found[(client.namespace, kind, name)] = (now, keys)
        return keys

    @staticmethod
    async def _read(kind: Kind, name: str, client: CachedClient) -> frozenset[str]:
        if kind == "configmap":
            plain = await client.get(ConfigMap, name)
            return frozenset({*(plain.data or {}), *(plain.binary_data or {})})
        return frozenset((await client.get(Secret, name)).data or {})
