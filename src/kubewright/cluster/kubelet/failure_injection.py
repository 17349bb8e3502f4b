"""Simulated nodes that are told to fail, by an annotation.

`simulation.kubewright.io/silent: "true"` on a Node, and its kubelet is gone: the lease is not renewed, nothing is said
of the node, and its pods stay as they are, those that are being deleted as well. Without the annotation it is back.
`kubelet` notes what nodes say, `node_objects` asks before it renews and looks once more before it reports.
"""

from __future__ import annotations

import asyncio
from typing import Final, final

from kubewright.cache.changes import Change
from kubewright.k8s.core.v1 import Node

__all__ = ("FailureInjection", "is_silent")

_SILENT: Final = "simulation.kubewright.io/silent"


def is_silent(node: Node) -> bool:
    """Whether a node is told to be."""
    return node.metadata.annotations.get(_SILENT) == "true"


@final
class FailureInjection:
    """Which nodes are silent."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        """A node is back, since whoever waits for this has cleared it."""
        self._names: set[str] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def note(self, change: Change[Node]) -> bool:
        """Read what a node says now; whether it is back."""
        name, node = change.key.name, change.new
        if node is not None and is_silent(node):
            self._names.add(name)
            return False
        if name not in self._names:
            return False
        self._names.discard(name)
        self.ended.set()
        return True
