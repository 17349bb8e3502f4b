"""Failure injection: an annotation stops the kubelet of a simulated node.

With `simulation.kubewright.io/silent: "true"` on a Node its kubelet renews no lease, posts no status and leaves its
pods as they are, also terminating ones. Without the annotation it recovers. `kubelet` reports changes of nodes to it;
`node_objects` asks it before each heartbeat.
"""

from __future__ import annotations

import asyncio
from typing import Final, final

from kubewright.cache.changes import Change
from kubewright.k8s.core.v1 import Node

__all__ = ("FailureInjection", "is_silent")

_SILENT: Final = "simulation.kubewright.io/silent"


def is_silent(node: Node) -> bool:
    """Whether the annotation stops the kubelet of the node."""
    return node.metadata.annotations.get(_SILENT) == "true"


@final
class FailureInjection:
    """The nodes whose kubelet is stopped."""

    def __init__(self) -> None:
        self.recovered = asyncio.Event()
        """Set when a node recovers; the task that waits for it clears it."""
        self._silent_nodes: set[str] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._silent_nodes

    def node_changed(self, change: Change[Node]) -> bool:
        """Read the annotation of a node; whether the node has recovered."""
        name, node = change.key.name, change.new
        if node is not None and is_silent(node):
            self._silent_nodes.add(name)
            return False
        if name not in self._silent_nodes:
            return False
        self._silent_nodes.discard(name)
        self.recovered.set()
        return True
