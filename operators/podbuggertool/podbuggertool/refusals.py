"""Refusals: what the API said no to, and when it is worth asking again.

| answer | reason | asked again |
| --- | --- | --- |
| 422 | InjectionRefused | when the tool changes, or for another pod |
| 403 by a policy, such as PodSecurity | InjectionRefused | after five minutes: the policy may have changed |
| 403 for want of a right | Forbidden | after five minutes |
| 404 that names no pod: there is no such subresource | EphemeralContainersUnsupported | after five minutes |

Kept in memory: an operator that starts again asks once more for each pod, which does no harm.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple, final

from kubewright import NotFound, ObjectKey
from kubewright.errors import ApiError, Forbidden, Invalid
from kubewright.k8s.core.v1 import Pod

from podbuggertool.api.v1alpha1.podbuggertool import PodBuggerTool

UNSUPPORTED: Final = "EphemeralContainersUnsupported"
FORBIDDEN: Final = "Forbidden"
REFUSED: Final = "InjectionRefused"

_PATIENCE: Final = timedelta(minutes=5)


class Refusal(NamedTuple):
    """One pod that cannot be served."""

    pod: str
    reason: str
    message: str
    at: datetime
    retry_at: datetime | None
    """When to ask again; None for never."""


def refusal_of(error: ApiError, pod: Pod, now: datetime) -> Refusal | None:
    """What an answer says about a pod; None if it says nothing that lasts."""
    name = pod.metadata.name
    if isinstance(error, Invalid):
        return Refusal(name, REFUSED, error.message, now, None)
    if isinstance(error, Forbidden):
        # A policy complains about the pod, the authorizer about the user.
        reason = FORBIDDEN if 'cannot patch resource "pods/ephemeralcontainers"' in error.message else REFUSED
        return Refusal(name, reason, error.message, now, now + _PATIENCE)
    if isinstance(error, NotFound) and not error.details.get("name"):
        return Refusal(name, UNSUPPORTED, "this cluster has no ephemeral containers", now, now + _PATIENCE)
    return None


@final
class Refusals:
    """The refusals of all tools."""

    def __init__(self) -> None:
        self._known: dict[ObjectKey, dict[str, Refusal]] = {}
        self._generations: dict[ObjectKey, tuple[str, int]] = {}

    def forget_outdated(self, tool: PodBuggerTool, pods: Iterable[Pod], now: datetime) -> None:
        """Forget those of an earlier state of the tool, of pods that do not matter any more, and of long ago."""
        state = (tool.metadata.uid, tool.metadata.generation)
        known = self._known.get(tool.key, {}) if self._generations.get(tool.key) == state else {}
        there = {pod.metadata.uid for pod in pods}
        left = {uid: one for uid, one in known.items() if uid in there and not (one.retry_at and one.retry_at <= now)}
        if left:
            self._known[tool.key] = left
        else:
            self._known.pop(tool.key, None)
            self._generations.pop(tool.key, None)

    def add(self, tool: PodBuggerTool, pod: Pod, refusal: Refusal) -> None:
        """Remember a refusal."""
        self._known.setdefault(tool.key, {})[pod.metadata.uid] = refusal
        self._generations[tool.key] = (tool.metadata.uid, tool.metadata.generation)

    def stands(self, tool: PodBuggerTool, pod: Pod) -> bool:
        """Whether there is no use in asking for this pod."""
        return pod.metadata.uid in self._known.get(tool.key, {})

    def are_final(self, tool: PodBuggerTool) -> bool:
        """Whether there is no use in asking for any pod."""
        return any(one.reason == UNSUPPORTED for one in self._known.get(tool.key, {}).values())

    def of(self, tool: PodBuggerTool) -> list[Refusal]:
        """Those of one tool, the newest first."""
        known = sorted(self._known.get(tool.key, {}).values(), key=lambda one: one.pod)
        return sorted(known, key=lambda one: one.at, reverse=True)
