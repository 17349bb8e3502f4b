"""The taints that follow from the conditions of a node.

Pure. Conditions and `unschedulable` give NoSchedule taints; the condition Ready alone gives a NoExecute taint, and
`zones` limits how fast those are added. Taints of other owners are kept. Called by `lifecycle`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from kubewright.cluster.controller_manager.nodes.health import ready_condition
from kubewright.k8s.core.v1 import Node, Taint

__all__ = (
    "NOT_READY",
    "UNREACHABLE",
    "has_no_execute_taint",
    "no_execute_taint_key",
    "with_no_execute_taint",
    "with_no_schedule_taints",
)

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_TAINTS: Final = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_NO_SCHEDULE_KEYS: Final = frozenset({*_TAINTS.values(), _UNSCHEDULABLE})
_NO_EXECUTE_KEYS: Final = (NOT_READY, UNREACHABLE)


def with_no_schedule_taints(node: Node, taints: Sequence[Taint], now: datetime) -> list[Taint]:
    """The taints, with the NoSchedule taints of the node's conditions."""
    wanted_keys = [
        _TAINTS[item.type, item.status] for item in node.status.conditions or () if (item.type, item.status) in _TAINTS
    ]
    if node.spec.unschedulable:
        wanted_keys.append(_UNSCHEDULABLE)
    return _swap_taints(taints, "NoSchedule", wanted_keys, _NO_SCHEDULE_KEYS, now)


def no_execute_taint_key(node: Node) -> str | None:
    """The key of the NoExecute taint for the condition Ready; None if the node is ready or never posted a status."""
    ready = ready_condition(node)
    return None if ready is None else _TAINTS.get(("Ready", ready.status))


def with_no_execute_taint(taints: Sequence[Taint], wanted_keys: str | None, now: datetime) -> list[Taint]:
    """The taints, with this NoExecute taint in place of others of the controller."""
    return _swap_taints(
        taints, "NoExecute", [] if wanted_keys is None else [wanted_keys], frozenset(_NO_EXECUTE_KEYS), now
    )


def has_no_execute_taint(taints: Sequence[Taint]) -> bool:
    """Whether the controller's NoExecute taint is set."""
    return any(taint.effect == "NoExecute" and taint.key in _NO_EXECUTE_KEYS for taint in taints)


def _swap_taints(
    taints: Sequence[Taint], effect: str, wanted_keys: Sequence[str], managed_keys: frozenset[str], now: datetime
) -> list[Taint]:
    kept = [
        taint for taint in taints if taint.effect != effect or taint.key not in managed_keys or taint.key in wanted_keys
    ]
    present = {taint.key for taint in kept if taint.effect == effect}
    added = [key for key in dict.fromkeys(wanted_keys) if key not in present]
    return [*kept, *(Taint(key=key, effect=effect, time_added=now.replace(microsecond=0)) for key in added)]
