"""The taints that follow from what is said of a node: no new pods, or no pods at all.

Pure. Conditions and `unschedulable` give taints that keep new pods away; Ready alone decides about those that drive
pods out, and whether these may be set is for `zones` to say. Taints of anybody else are left alone. Called by
`node_life`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from kubewright.cluster.controller_manager.nodes.health import ready_of
from kubewright.k8s.core.v1 import Node, Taint

__all__ = ("NOT_READY", "UNREACHABLE", "evicting", "expelled", "is_expelling", "kept_away")

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
_OURS: Final = frozenset({*_TAINTS.values(), _UNSCHEDULABLE})
_EVICTING: Final = (NOT_READY, UNREACHABLE)


def kept_away(node: Node, taints: Sequence[Taint], now: datetime) -> list[Taint]:
    """The taints with those that keep new pods away as the conditions want them."""
    wanted = [
        _TAINTS[item.type, item.status] for item in node.status.conditions or () if (item.type, item.status) in _TAINTS
    ]
    if node.spec.unschedulable:
        wanted.append(_UNSCHEDULABLE)
    return _swapped(taints, "NoSchedule", wanted, _OURS, now)


def evicting(node: Node) -> str | None:
    """Which taint should drive the pods out; None if the node is well, or never said anything."""
    ready = ready_of(node)
    return None if ready is None else _TAINTS.get(("Ready", ready.status))


def expelled(taints: Sequence[Taint], wanted: str | None, now: datetime) -> list[Taint]:
    """The taints with that one, and no other of its sort, that drives the pods out."""
    return _swapped(taints, "NoExecute", [] if wanted is None else [wanted], frozenset(_EVICTING), now)


def is_expelling(taints: Sequence[Taint]) -> bool:
    """Whether one of those that drive the pods out is there."""
    return any(taint.effect == "NoExecute" and taint.key in _EVICTING for taint in taints)


def _swapped(
    taints: Sequence[Taint], effect: str, wanted: Sequence[str], ours: frozenset[str], now: datetime
) -> list[Taint]:
    kept = [taint for taint in taints if taint.effect != effect or taint.key not in ours or taint.key in wanted]
    present = {taint.key for taint in kept if taint.effect == effect}
    added = [key for key in dict.fromkeys(wanted) if key not in present]
    return [*kept, *(Taint(key=key, effect=effect, time_added=now.replace(microsecond=0)) for key in added)]
