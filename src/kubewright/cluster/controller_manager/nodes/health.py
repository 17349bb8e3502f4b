"""Node health: when a node was last heard of, and its conditions when its grace period is over.

Pure. A heartbeat is a new status or a renewed lease. Defaults and messages as in
pkg/controller/nodelifecycle/node_lifecycle_controller.go. Called by `lifecycle`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, final

import msgspec

from kubewright.errors import ConfigError
from kubewright.k8s.core.v1 import Node, NodeCondition

__all__ = (
    "NodeHealth",
    "NodeMonitorOptions",
    "grace_period_end",
    "probe_node",
    "ready_condition",
    "unknown_conditions",
)

_KUBELET_CONDITIONS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""The conditions that a kubelet posts; another component posts NetworkUnavailable."""


@final
class NodeMonitorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; the defaults are those of kube-controller-manager."""

    grace_period: float = 50.0
    """--node-monitor-grace-period: how long a node may be without heartbeats."""
    startup_grace_period: float = 60.0
    """--node-startup-grace-period: how long a new node may take to its first heartbeat."""
    eviction_interval: float = 10.0
    """Between two nodes of a zone that are tainted NoExecute, the inverse of --node-eviction-rate."""

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            if getattr(self, field) < 0:
                raise ConfigError(f"the node time {field} is {getattr(self, field):g} s; it cannot be below 0")


@final
class NodeHealth(msgspec.Struct, frozen=True):
    """nodeHealthData of upstream."""

    probe_time: datetime
    heartbeat: datetime | None = None
    """The lastHeartbeatTime of its Ready condition; a change is a heartbeat."""
    uid: str = ""


def ready_condition(node: Node) -> NodeCondition | None:
    """The condition Ready of a node."""
    return next((item for item in node.status.conditions or () if item.type == "Ready"), None)


def probe_node(node: Node, previous: NodeHealth | None, lease_renewed_at: datetime | None, now: datetime) -> NodeHealth:
    """The health of a node: its last heartbeat is a new status or a renewed lease, whichever is later.

    `previous` is the result of the last probe, `lease_renewed_at` when this process saw the lease renewed.
    """
    ready = ready_condition(node)
    if previous is not None and previous.uid != node.metadata.uid:
        previous = None
    if ready is None:
        probe_time = previous.probe_time if previous is not None else node.metadata.creation_timestamp or now
        heartbeat = None
    else:
        heartbeat = ready.last_heartbeat_time
        same = previous is not None and previous.heartbeat == heartbeat
        probe_time = previous.probe_time if previous is not None and same else now
    if lease_renewed_at is not None and lease_renewed_at > probe_time:
        probe_time = lease_renewed_at
    return NodeHealth(probe_time, heartbeat, node.metadata.uid)


def grace_period_end(node: Node, health: NodeHealth, options: NodeMonitorOptions) -> datetime:
    """When the node becomes Unknown without another heartbeat."""
    grace_period = options.startup_grace_period if ready_condition(node) is None else options.grace_period
    return health.probe_time + timedelta(seconds=grace_period)


def unknown_conditions(node: Node, now: datetime) -> Sequence[NodeCondition] | None:
    """The conditions to change to Unknown; None if Ready is Unknown already."""
    current = {item.type: item for item in node.status.conditions or ()}
    conditions = []
    for kind in _KUBELET_CONDITIONS:
        previous = current.get(kind)
        if previous is None:
            reason, message = "NodeStatusNeverUpdated", "Kubelet never posted node status."
            heartbeat = node.metadata.creation_timestamp
        elif previous.status != "Unknown":
            reason, message = "NodeStatusUnknown", "Kubelet stopped posting node status."
            heartbeat = previous.last_heartbeat_time
        else:
            continue
        conditions.append(
            NodeCondition(
                type=kind,
                status="Unknown",
                reason=reason,
                message=message,
                last_heartbeat_time=heartbeat,
                last_transition_time=now.replace(microsecond=0),
            )
        )
    # Write only when Ready changes; the other conditions change with it.
    return conditions if any(item.type == "Ready" for item in conditions) else None
