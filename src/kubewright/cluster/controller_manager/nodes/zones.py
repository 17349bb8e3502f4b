"""The disruption state of zones, which limits how fast nodes are tainted NoExecute.

If no node of the cluster is ready, the fault is most likely not the nodes': no pod is evicted. In a zone where most
nodes are not ready, none is evicted, or slowly if the zone is large. After the zone states of
pkg/controller/nodelifecycle/node_lifecycle_controller.go. Updated by `lifecycle`.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.k8s.core.v1 import Node

__all__ = ("Zones",)

_EXCLUDE_DISRUPTION: Final = "node.kubernetes.io/exclude-disruption"
_UNHEALTHY_THRESHOLD: Final = 0.55
_LARGE_ZONE: Final = 50
_SECONDARY_FACTOR: Final = 10.0


@final
class Zones:
    """The readiness of nodes by zone."""

    def __init__(self, *, interval: float) -> None:
        """`interval` is the seconds between two evictions in one zone."""
        self._interval = interval
        self._readiness: dict[str, dict[str, bool]] = {}
        self._zone_of: dict[str, str] = {}
        self._last_evictions: dict[str, float] = {}

    def set_node(self, node: Node, *, ready: bool) -> None:
        """Update the readiness of a node."""
        self.remove_node(node.metadata.name)
        if _EXCLUDE_DISRUPTION not in node.metadata.labels:
            zone = _zone_key(node)
            self._readiness.setdefault(zone, {})[node.metadata.name] = ready
            self._zone_of[node.metadata.name] = zone

    def remove_node(self, name: str) -> None:
        """Remove a deleted node."""
        zone = self._zone_of.pop(name, None)
        if zone is not None:
            del self._readiness[zone][name]

    @property
    def all_disrupted(self) -> bool:
        """Whether there are nodes and none is ready: full disruption of all zones."""
        return bool(self._zone_of) and not any(any(zone.values()) for zone in self._readiness.values())

    def eviction_delay(self, node: Node, now: float) -> float | None:
        """Seconds until a node may be evicted; None while evictions in its zone are stopped."""
        interval = self._zone_interval(_zone_key(node))
        if interval is None:
            return None
        last = self._last_evictions.get(_zone_key(node))
        return 0.0 if last is None else max(0.0, last + interval - now)

    def record_eviction(self, node: Node, now: float) -> None:
        """A node was evicted: the next of its zone must wait."""
        self._last_evictions[_zone_key(node)] = now

    def _zone_interval(self, zone: str) -> float | None:
        if self.all_disrupted:
            return None
        readiness = self._readiness.get(zone, {})
        not_ready = sum(not ready for ready in readiness.values())
        if not_ready > 2 and not_ready < len(readiness) and not_ready / len(readiness) >= _UNHEALTHY_THRESHOLD:
            return self._interval * _SECONDARY_FACTOR if len(readiness) > _LARGE_ZONE else None
        return self._interval


def _zone_key(node: Node) -> str:
    labels = node.metadata.labels
    region = labels.get("topology.kubernetes.io/region") or labels.get("failure-domain.beta.kubernetes.io/region", "")
    zone = labels.get("topology.kubernetes.io/zone") or labels.get("failure-domain.beta.kubernetes.io/zone", "")
    return f"{region}/{zone}"
