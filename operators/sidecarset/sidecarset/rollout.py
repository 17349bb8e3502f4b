"""Which pods get new images now, and which have to wait.

Pods that are not ready are changed first, however many they are: they have nothing to lose. Ready ones follow as long
as fewer than `maxUnavailable` of those that were changed are still on their way back. The last `partition` pods in that
order keep what they have. Pure: the same pods give the same plan, so a controller that starts in the middle of a
rollout goes on where the last one stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kubewright import IntOrString, Selector
from kubewright.api import scaled_value

from sidecarset.api.v1alpha1.sidecarset import UpdateStrategy
from sidecarset.census import Member, is_ready
from sidecarset.hashes import Revision

__all__ = ("Plan", "plan_of")

_PHASES = ("Pending", "Unknown", "Running")


@dataclass(frozen=True)
class Plan:
    """What is to happen to the members of a set that are not up to date."""

    now: tuple[Member, ...] = ()
    """To be changed at once."""
    later: tuple[Member, ...] = ()
    """To be changed when others are ready again."""
    held: tuple[Member, ...] = ()
    """Kept by the strategy: paused, not selected, or in the partition."""
    blocked: tuple[Member, ...] = ()
    """Cannot be changed in place: only a pod made anew is up to date."""


def plan_of(members: Sequence[Member], revision: Revision, strategy: UpdateStrategy) -> Plan:
    """The plan for this moment."""
    outdated = [member for member in members if not member.is_updated(revision)]
    blocked = tuple(member for member in outdated if member.is_blocked(revision))
    waiting = sorted((member for member in outdated if not member.is_blocked(revision)), key=_turn)
    if strategy.type == "NotUpdate" or strategy.paused:
        return Plan(held=tuple(waiting), blocked=blocked)
    chosen = [member for member in waiting if _is_selected(member, strategy)]
    end = max(0, len(chosen) - partition_of(strategy.partition, len(members)))
    released = {member.pod.metadata.uid for member in chosen[:end]}
    held = [member for member in waiting if member.pod.metadata.uid not in released]
    now, later = _within_limit(chosen[:end], members, revision, strategy)
    return Plan(now=tuple(now), later=tuple(later), held=tuple(held), blocked=blocked)


def partition_of(partition: IntOrString, total: int) -> int:
    """How many pods keep their images. Below 100% there is always one to be changed, if there is more than one."""
    count = scaled_value(partition, total, round_up=True)
    if isinstance(partition, str) and partition != "100%" and total > 1:
        return min(count, total - 1)
    return count


def _within_limit(
    chosen: Sequence[Member], members: Sequence[Member], revision: Revision, strategy: UpdateStrategy
) -> tuple[list[Member], list[Member]]:
    """Those that are changed now, and those that wait until others are ready again."""
    limit = max(1, scaled_value(strategy.max_unavailable, len(members), round_up=True))
    # Also those whose last change, to whatever image, is not over.
    away = sum(1 for member in members if member.changing or (member.is_updated(revision) and not member.is_ready))
    now: list[Member] = []
    later: list[Member] = []
    for member in chosen:
        if member.changing and is_ready(member.pod):
            later.append(member)  # the kubelet is about to replace its containers; it is not asked for more meanwhile
        elif not member.is_ready:
            away += not member.changing
            now.append(member)
        elif away < limit:
            away += 1
            now.append(member)
        else:
            later.append(member)
    return now, later


def _is_selected(member: Member, strategy: UpdateStrategy) -> bool:
    if strategy.selector is None:
        return True
    return Selector.from_structured(strategy.selector).matches(member.pod.metadata.labels)


def _turn(member: Member) -> tuple[bool, int, bool, float, str]:
    """The order in which a ReplicaSet takes pods away: those that are missed least come first."""
    pod = member.pod
    phase = pod.status.phase if pod.status.phase in _PHASES else "Pending"
    born = pod.metadata.creation_timestamp
    age = -born.timestamp() if born is not None else 0.0
    return bool(pod.spec.node_name), _PHASES.index(phase or "Pending"), member.is_ready, age, str(pod.key)
