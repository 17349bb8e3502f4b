"""How many nodes of each zone are well, and how fast those that are not may be emptied.

If no node anywhere is well, the fault is most likely not the nodes': nobody is driven out. In a zone where most nodes
fail, nothing is emptied either, or slowly if the zone is large. Books kept by `node_life` from what it sees of nodes.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.k8s.core.v1 import Node

__all__ = ("Zones",)

_EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
_FAILING: Final = 0.55
_LARGE: Final = 50
_SLOWER: Final = 10.0


@final
class Zones:
    """The nodes of a cluster by zone."""

    def __init__(self, *, interval: float) -> None:
        """`interval` seconds between the nodes of one zone that are given up."""
        self._interval = interval
        self._wellness: dict[str, dict[str, bool]] = {}
        self._zone_of: dict[str, str] = {}
        self._last: dict[str, float] = {}

    def note(self, node: Node, *, well: bool) -> None:
        """What is known of a node now."""
        self.forget(node.metadata.name)
        if _EXCLUDED not in node.metadata.labels:
            zone = _zone(node)
            self._wellness.setdefault(zone, {})[node.metadata.name] = well
            self._zone_of[node.metadata.name] = zone

    def forget(self, name: str) -> None:
        """The node is gone."""
        zone = self._zone_of.pop(name, None)
        if zone is not None:
            del self._wellness[zone][name]

    @property
    def hopeless(self) -> bool:
        """Whether there are nodes and not one of them is well."""
        return bool(self._zone_of) and not any(any(zone.values()) for zone in self._wellness.values())

    def wait(self, node: Node, now: float) -> float | None:
        """Seconds until a node may be given up; None as long as that is out of the question."""
        interval = self._pace(_zone(node))
        if interval is None:
            return None
        last = self._last.get(_zone(node))
        return 0.0 if last is None else max(0.0, last + interval - now)

    def gave_up(self, node: Node, now: float) -> None:
        """A node was given up: the next of its zone has to wait."""
        self._last[_zone(node)] = now

    def _pace(self, zone: str) -> float | None:
        if self.hopeless:
            return None
        wellness = self._wellness.get(zone, {})
        ill = sum(not well for well in wellness.values())
        if ill > 2 and ill < len(wellness) and ill / len(wellness) >= _FAILING:
            return self._interval * _SLOWER if len(wellness) > _LARGE else None
        return self._interval


def _zone(node: Node) -> str:
    labels = node.metadata.labels
    region = labels.get("topology.kubernetes.io/region") or labels.get("failure-domain.beta.kubernetes.io/region", "")
    zone = labels.get("topology.kubernetes.io/zone") or labels.get("failure-domain.beta.kubernetes.io/zone", "")
    return f"{region}/{zone}"
