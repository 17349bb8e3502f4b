"""The status of a tool, from its pods and from what was refused.

Pure but for `ctx.condition`, which changes the object at hand.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from kubewright import Context
from kubewright.k8s.core.v1 import Pod

from podbuggertool.api.v1alpha1.podbuggertool import MOST_FAILURES, Failure, PodBuggerTool
from podbuggertool.container import container_name
from podbuggertool.pods import by_age, holds, image_in_the_way, is_running, lacks_image
from podbuggertool.refusals import FORBIDDEN, REFUSED, UNSUPPORTED, Refusal

GAUGES: Final = {
    f"podbuggertool_{number}": attrgetter(f"status.{number}")
    for number in ("matched_pods", "installed_pods", "running_pods", "failed_pods")
}
"""The counts as metrics."""

NAME_TAKEN: Final = "NameTaken"
PULL_FAILED: Final = "ImagePullFailed"

_BY_WEIGHT: Final = (UNSUPPORTED, FORBIDDEN, REFUSED, NAME_TAKEN, PULL_FAILED)


def report(
    tool: PodBuggerTool, wanted: PodBuggerTool, pods: Sequence[Pod], refusals: Sequence[Refusal], ctx: Context
) -> None:
    """Write down what is there: `pods` are all that match; `wanted` is the tool with its defaults."""
    status = tool.status
    failures = failures_of(wanted, pods, refusals)
    status.matched_pods = len(pods)
    status.installed_pods = sum(holds(pod, wanted) for pod in pods)
    status.running_pods = sum(is_running(pod, wanted) for pod in pods)
    status.failed_pods = len(failures)
    status.failures = failures[:MOST_FAILURES]
    status.observed_generation = tool.metadata.generation
    asked = min(len(pods), tool.spec.max_pods or len(pods))
    served = status.installed_pods >= asked
    told = f"{status.installed_pods} of {asked} pods have the container {container_name(wanted)}"
    ctx.condition("Ready", served, reason="PodsServed" if served else "PodsWaiting", message=told)
    worst = min(failures, key=lambda failure: _BY_WEIGHT.index(failure.reason), default=None)
    if worst is None:
        ctx.condition("Degraded", False, reason="AsExpected")
    else:
        ctx.condition("Degraded", True, reason=worst.reason, message=f"pod {worst.pod}: {worst.message}")
    suspended = tool.spec.suspend
    ctx.condition("Suspended", suspended, reason="Suspended" if suspended else "Active")


def failures_of(tool: PodBuggerTool, pods: Sequence[Pod], refusals: Sequence[Refusal]) -> list[Failure]:
    """What was refused, the newest first, then where the name is taken, then where the image cannot be pulled."""
    newest = sorted(pods, key=by_age, reverse=True)
    refused = {one.pod for one in refusals}
    return [
        *(Failure(pod=one.pod, reason=one.reason, message=one.message) for one in refusals),
        *(
            Failure(pod=pod.metadata.name, reason=NAME_TAKEN, message=_taken(tool, image))
            for pod in newest
            if pod.metadata.name not in refused and (image := image_in_the_way(pod, tool)) is not None
        ),
        *(
            # Not the kubelet's words: they go back and forth between the error and the wait.
            Failure(pod=pod.metadata.name, reason=PULL_FAILED, message=f"the image {tool.spec.image} cannot be pulled")
            for pod in newest
            if lacks_image(pod, tool)
        ),
    ]


def _taken(tool: PodBuggerTool, image: str) -> str:
    return (
        f"an ephemeral container {container_name(tool)} with the image {image} is there already and cannot be "
        "changed; choose another containerName, or leave it out"
    )


def report_invalid(tool: PodBuggerTool, message: str, ctx: Context) -> None:
    """Say that nothing is done, and why; what was counted before stays as it is."""
    tool.status.observed_generation = tool.metadata.generation
    ctx.condition("Ready", False, reason="InvalidSpec", message=message)
    ctx.condition("Degraded", True, reason="InvalidSpec", message=message)
