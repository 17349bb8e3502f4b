"""Reads the ConfigMaps and Secrets that pods refer to, with a cache.

Found objects are cached for a second, because the replicas of a workload refer to the same ones; missing objects are
read each time. Used by `kubelet` for `pods.references`.
"""

from __future__ import annotations

from typing import Final, final

from kubewright._base.clock import Clock
from kubewright.cache.cached_client import CachedClient
from kubewright.cluster.kubelet.pods.references import ReferenceKind
from kubewright.errors import NotFound
from kubewright.k8s.core.v1 import ConfigMap, Secret

__all__ = ("ReferenceLookup",)

_MAX_AGE_SECONDS: Final = 1.0
_MAX_ENTRIES: Final = 1000


@final
class ReferenceLookup:
    """The keys of ConfigMaps and Secrets."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._cache: dict[tuple[str, ReferenceKind, str], tuple[float, frozenset[str]]] = {}

    async def find(self, kind: ReferenceKind, name: str, client: CachedClient) -> frozenset[str] | None:
        """The keys of an object in the client's namespace; None if there is no such object."""
        now = self._clock.monotonic()
        cached = self._cache.get((client.namespace, kind, name))
        if cached is not None and now - cached[0] < _MAX_AGE_SECONDS:
            return cached[1]
        try:
            keys = await self._read(kind, name, client)
        except NotFound:
            return None
        if len(self._cache) >= _MAX_ENTRIES:
            self._cache.clear()
        self._cache[(client.namespace, kind, name)] = (now, keys)
        return keys

    @staticmethod
    async def _read(kind: ReferenceKind, name: str, client: CachedClient) -> frozenset[str]:
        if kind == "configmap":
            config_map = await client.get(ConfigMap, name)
            return frozenset({*(config_map.data or {}), *(config_map.binary_data or {})})
        return frozenset((await client.get(Secret, name)).data or {})
