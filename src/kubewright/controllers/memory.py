"""ControllerMemory: what one controller remembers of its writes between reconciles.

One object for each controller, shared by its sources, its reconcile handler and the contexts of its reconciles. It is
bounded, it is lost with the process, and nothing in it is needed for correctness: without it the controller sends more
requests and reconciles more often.
"""

from __future__ import annotations

from typing import final

from kubewright.api.codec import encode
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.controllers.applied_objects import AppliedObjects
from kubewright.controllers.foreign_objects import ForeignObjects
from kubewright.controllers.self_writes import SelfWrites
from kubewright.controllers.write_loops import LoopDetector

__all__ = ("ControllerMemory",)


@final
class ControllerMemory:
    """The memory of one controller."""

    __slots__ = ("_kind", "applied", "foreign", "self_writes", "write_loops")

    def __init__(self, kind: type[KubeObject]) -> None:
        """`kind` is the one the controller reconciles."""
        self._kind = kind
        self.self_writes = SelfWrites()
        """Which watch events are the controller's own writes."""
        self.applied = AppliedObjects()
        """Which applies would change nothing."""
        self.write_loops = LoopDetector(encode)
        """Which objects the controller writes in a loop."""
        self.foreign = ForeignObjects()
        """Which keys wait for an object that the controller does not own."""

    def forget(self, kind: type[KubeObject], key: ObjectKey) -> None:
        """The watch shows that an object is deleted: drop what is remembered of it."""
        self.self_writes.forget(kind, key)
        self.applied.forget(kind, key)
        # Not forgotten: if the controller creates the object again and again, somebody keeps deleting it.
        self.write_loops.record_deletion((kind, key))
        if kind is self._kind:
            self.foreign.forget(key)
