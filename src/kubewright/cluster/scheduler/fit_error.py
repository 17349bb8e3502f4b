"""The messages of kube-scheduler for a pod that fits no node: FitError of pkg/scheduler/framework/types.go.

Pure. Called by `scheduler` for the event FailedScheduling and the condition PodScheduled, and by `preemption`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

__all__ = ("fit_error", "nodes_message", "pre_filter_error")


def fit_error(rejections: Sequence[tuple[str, ...]]) -> str:
    """The message after the filters; `rejections` has the reasons of each node."""
    if not rejections:
        return "no nodes available to schedule pods"
    return nodes_message(Counter(reason for reasons in rejections for reason in reasons), len(rejections))


def nodes_message(reasons: Mapping[str, int], count: int) -> str:
    """That none of `count` nodes is available, with the number of nodes for each reason."""
    listed = ", ".join(sorted(f"{number} {reason}" for reason, number in reasons.items() if number))
    return f"0/{count} nodes are available: {listed}."


def pre_filter_error(reason: str, count: int, *, never_preempts: bool = False) -> str:
    """The message when a pre-filter rejects all `count` nodes; `never_preempts` if preemptionPolicy is Never."""
    if not count:
        return "no nodes available to schedule pods"
    preemption = "not eligible due to preemptionPolicy=Never."
    if not never_preempts:
        preemption = nodes_message({"Preemption is not helpful for scheduling": count}, count)
    return f"0/{count} nodes are available: {reason}. preemption: {preemption}"
