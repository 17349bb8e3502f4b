"""The status of a PodSet, from the pods that are there.

Pure but for `ctx.condition`, which changes the object at hand. Counted after acting, from what can be seen; an event
that comes later corrects it.
"""

from collections.abc import Iterable
from operator import attrgetter
from typing import Final, NamedTuple

from kubewright import Context
from kubewright.errors import ApiError, Forbidden, Invalid, KubewrightError
from kubewright.k8s.core.v1 import Pod

from podset.api.v1alpha1.podset import PodSet
from podset.pods import LABEL, is_active, is_ready

GAUGES: Final = {f"podset_{number}": attrgetter(f"status.{number}") for number in ("replicas", "ready_replicas")}
"""The counts as metrics."""


class Failure(NamedTuple):
    """Why there are too few pods, for the condition `Degraded`."""

    reason: str
    message: str
    error: KubewrightError

    @property
    def is_lasting(self) -> bool:
        """Whether trying again soon cannot help."""
        return isinstance(self.error, Invalid)


def failure_of(error: KubewrightError) -> Failure:
    """What a refused creation says about the set."""
    if not isinstance(error, ApiError):
        return Failure("PodCreateFailed", str(error), error)
    # The server begins with the name it had made for this very pod; without it, the same refusal is the same text.
    message = error.message.partition(" is forbidden: ")[2] or error.message
    reason = "QuotaExceeded" if isinstance(error, Forbidden) and "exceeded quota" in message else "PodCreateFailed"
    return Failure(reason, message, error)


def namespace_ends(error: KubewrightError) -> bool:
    """Whether nothing can be created because the namespace is being deleted, which is no failure."""
    return isinstance(error, ApiError) and any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def report(podset: PodSet, pods: Iterable[Pod], failure: Failure | None, ctx: Context) -> None:
    """Write down what is there."""
    active = [pod for pod in pods if is_active(pod)]
    size, ready = podset.spec.size, sum(map(is_ready, active))
    status = podset.status
    status.nodes = sorted(pod.metadata.name for pod in active)
    status.replicas = len(active)
    status.ready_replicas = ready
    status.selector = f"{LABEL}={podset.metadata.name}"
    status.observed_generation = podset.metadata.generation
    told = f"{ready} of {size} pods are ready"
    ctx.condition("Ready", ready == size, reason="PodsReady" if ready == size else "PodsNotReady", message=told)
    if len(active) != size:
        ctx.condition("Progressing", True, reason="Scaling", message=f"there are {len(active)} of {size} pods")
    else:
        starting = ready != size
        ctx.condition("Progressing", starting, reason="PodsStarting" if starting else "Settled", message=told)
    if failure is None:
        ctx.condition("Degraded", False, reason="AsExpected")
    else:
        ctx.condition("Degraded", True, reason=failure.reason, message=failure.message)


def report_invalid(podset: PodSet, message: str, ctx: Context) -> None:
    """Say that nothing is done, and why; what was counted before stays as it is."""
    podset.status.observed_generation = podset.metadata.generation
    for kind, status in (("Ready", False), ("Progressing", False), ("Degraded", True)):
        ctx.condition(kind, status, reason="InvalidSpec", message=message)
