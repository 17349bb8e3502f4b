"""What a SidecarSet says about its pods: counts and conditions, from a census and a plan. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from sidecarset.api.v1alpha1.sidecarset import SidecarSetSpec, SidecarSetStatus
from sidecarset.census import Census
from sidecarset.hashes import Revision
from sidecarset.rollout import Plan

__all__ = ("GAUGES", "Verdict", "conditions_of", "count")

GAUGES: Final = {
    f"sidecarset_{number}": attrgetter(f"status.{number}")
    for number in ("matched_pods", "updated_pods", "ready_pods", "updated_ready_pods", "uninjected_pods")
}
"""The same numbers as metrics."""


@dataclass(frozen=True)
class Verdict:
    """One condition."""

    type: str
    holds: bool
    reason: str
    message: str


def count(status: SidecarSetStatus, census: Census, revision: Revision) -> None:
    """Fill in the numbers."""
    members = census.members
    status.matched_pods = len(members)
    status.updated_pods = sum(1 for member in members if member.is_updated(revision))
    status.ready_pods = sum(1 for member in members if member.is_ready)
    status.updated_ready_pods = sum(1 for member in members if member.is_updated(revision) and member.is_ready)
    status.uninjected_pods = len(census.uninjected)
    status.latest_revision = revision.hash


def conditions_of(spec: SidecarSetSpec, status: SidecarSetStatus, plan: Plan) -> Iterator[Verdict]:
    """The conditions that go with the numbers."""
    done, matched = status.updated_ready_pods, status.matched_pods
    whole = done == matched
    message = f"{done} of {matched} pods are up to date and ready"
    yield Verdict("Ready", whole, "AllPodsReady" if whole else "PodsNotReady", message)
    yield _progressing(spec, status, plan)
    blocked = len(plan.blocked)
    if blocked and spec.update_strategy.type == "RollingUpdate":
        message = f"{_pods(blocked)} to be made anew: more than images has changed"
        yield Verdict("UpdateBlocked", True, "ImmutableFieldsChanged", message)
    else:
        yield Verdict("UpdateBlocked", False, "OnlyImagesChange", "no pod has to be made anew")
    yield _paused(spec)


def _progressing(spec: SidecarSetSpec, status: SidecarSetStatus, plan: Plan) -> Verdict:
    away = status.updated_pods - status.updated_ready_pods
    waiting = len(plan.now) + len(plan.later)
    if waiting or away:
        message = f"{_pods(waiting)} to be updated, {away} updated and not ready yet"
        return Verdict("Progressing", True, "RollingUpdate", message)
    if spec.update_strategy.type == "NotUpdate" and status.updated_pods < status.matched_pods:
        return Verdict("Progressing", False, "NotUpdate", "pods stay as they were injected")
    if plan.held:
        reason = "Paused" if spec.update_strategy.paused else "Held"
        return Verdict(
            "Progressing", False, reason, f"pods that the update strategy keeps as they are: {len(plan.held)}"
        )
    if plan.blocked:
        return Verdict("Progressing", False, "UpdateBlocked", "the rest cannot be updated in place")
    return Verdict("Progressing", False, "UpToDate", "there is nothing to update")


def _paused(spec: SidecarSetSpec) -> Verdict:
    injection, update = spec.injection_strategy.paused, spec.update_strategy.paused
    if injection and update:
        return Verdict("Paused", True, "AllPaused", "new pods are not injected, and no pod is updated")
    if injection:
        return Verdict("Paused", True, "InjectionPaused", "new pods are not injected")
    if update:
        return Verdict("Paused", True, "UpdatePaused", "no pod is updated")
    return Verdict("Paused", False, "NotPaused", "")


def _pods(number: int) -> str:
    return f"{number} pod has" if number == 1 else f"{number} pods have"
