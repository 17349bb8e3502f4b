"""Whether a node is still heard of, and what its conditions say when it is not.

Pure: the time and what was heard are given. A kubelet is heard when it posts its status or renews its lease; the times
and words are those of the node lifecycle controller. Called by `node_life`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, final

import msgspec

from kubewright.errors import ConfigError
from kubewright.k8s.core.v1 import Node, NodeCondition

__all__ = ("Heartbeat", "NodeTimes", "listen", "ready_of", "silent_after", "unheard")

_REPORTED: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""What a kubelet says of its node; the network is somebody else's."""


@final
class NodeTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, by default those of kube-controller-manager."""

    grace: float = 50.0
    """How long a node may be silent."""
    startup_grace: float = 60.0
    """How long a new node may take to say something at all."""
    eviction_interval: float = 10.0
    """Between the nodes of a zone that are given up, so that a fault of the network does not empty all at once."""

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            if getattr(self, field) < 0:
                raise ConfigError(f"the node time {field} is {getattr(self, field):g} s; it cannot be below 0")


@final
class Heartbeat(msgspec.Struct, frozen=True):
    """The last sign of life of a node."""

    at: datetime
    heartbeat: datetime | None = None
    """What its Ready condition said then; a new one is a new sign of life."""
    uid: str = ""


def ready_of(node: Node) -> NodeCondition | None:
    """The condition that says whether it takes pods."""
    return next((item for item in node.status.conditions or () if item.type == "Ready"), None)


def listen(node: Node, before: Heartbeat | None, renewed: datetime | None, now: datetime) -> Heartbeat:
    """When the node was heard last, given what was known; `renewed` is when its lease was seen to be renewed."""
    ready = ready_of(node)
    if before is not None and before.uid != node.metadata.uid:
        before = None
    if ready is None:
        at = before.at if before is not None else node.metadata.creation_timestamp or now
        heartbeat = None
    else:
        heartbeat = ready.last_heartbeat_time
        same = before is not None and before.heartbeat == heartbeat
        at = before.at if before is not None and same else now
    if renewed is not None and renewed > at:
        at = renewed
    return Heartbeat(at, heartbeat, node.metadata.uid)


def silent_after(node: Node, heard: Heartbeat, times: NodeTimes) -> datetime:
    """From when on the node counts as lost, if nothing more is heard."""
    grace = times.startup_grace if ready_of(node) is None else times.grace
    return heard.at + timedelta(seconds=grace)


def unheard(node: Node, now: datetime) -> Sequence[NodeCondition] | None:
    """The conditions of a node that is silent, those that change; None if they say so already."""
    known = {item.type: item for item in node.status.conditions or ()}
    changed = []
    for kind in _REPORTED:
        before = known.get(kind)
        if before is None:
            reason, message = "NodeStatusNeverUpdated", "Kubelet never posted node status."
            heartbeat = node.metadata.creation_timestamp
        elif before.status != "Unknown":
            reason, message = "NodeStatusUnknown", "Kubelet stopped posting node status."
            heartbeat = before.last_heartbeat_time
        else:
            continue
        changed.append(
            NodeCondition(
                type=kind,
                status="Unknown",
                reason=reason,
                message=message,
                last_heartbeat_time=heartbeat,
                last_transition_time=now.replace(microsecond=0),
            )
        )
    # Only what is said about Ready is worth a write, as long as the rest can wait for it.
    return changed if any(item.type == "Ready" for item in changed) else None
