"""Which pods go first when a set shrinks: those that will be missed least.

| deleted first | because |
| --- | --- |
| not scheduled | it never ran |
| Pending, then Unknown, then Running | it is furthest from doing work |
| not ready | it does no work |
| the lower `controller.kubernetes.io/pod-deletion-cost` | somebody said so |
| more ready pods of the set on its node | the others stay spread |
| ready for a shorter time | less is lost |
| more container restarts | it is the shakier one |
| newer | it is the less proven one |
| the name, in alphabetical order | so that there is always an answer, and always the same |

The first line in which two pods differ decides. Pure: a key to sort by, so the order is total and transitive.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from kubewright.k8s.core.v1 import Pod

from podset.pods import is_ready, ready_condition

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"

_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST: Final = re.compile(r"0|-?[1-9][0-9]{0,9}")
_COSTS: Final = range(-(2**31), 2**31)

Rank = tuple[bool, int, bool, int, int, float, int, float, str]


def deletion_order(pods: Iterable[Pod]) -> list[Pod]:
    """The pods, the one to delete first at the front."""
    given = list(pods)
    crowd = Counter(pod.spec.node_name for pod in given if is_ready(pod))
    return sorted(given, key=lambda pod: rank(pod, crowd))


def rank(pod: Pod, crowd: Mapping[str | None, int]) -> Rank:
    """The lower, the sooner it is deleted. `crowd` says how many ready pods of the set each node has."""
    ready = is_ready(pod)
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase or "Pending", 0),
        ready,
        deletion_cost(pod),
        -crowd.get(pod.spec.node_name, 0),
        -_ready_since(pod) if ready else 0.0,
        -_restarts(pod),
        -_seconds(pod.metadata.creation_timestamp),
        pod.metadata.name,
    )


def deletion_cost(pod: Pod) -> int:
    """What the pod's annotation says, 0 if it says nothing that can be read."""
    text = pod.metadata.annotations.get(DELETION_COST, "")
    cost = int(text) if _COST.fullmatch(text) else 0
    return cost if cost in _COSTS else 0


def _ready_since(pod: Pod) -> float:
    condition = ready_condition(pod)
    return _seconds(None if condition is None else condition.last_transition_time)


def _restarts(pod: Pod) -> int:
    return sum(status.restart_count for status in pod.status.container_statuses or ())


def _seconds(moment: datetime | None) -> float:
    # A time that is not known counts as this very moment: nothing is proven yet.
    return float("inf") if moment is None else moment.timestamp()
