"""What pods are asked: may this one be served, does it have the container, does that run?

Pure. A pod that cannot be served yet is left to its next event; nothing waits for it.
"""

from datetime import UTC, datetime
from typing import Final

from kubewright.k8s.core.v1 import ContainerState, EphemeralContainer, Pod

from podbuggertool.api.v1alpha1.podbuggertool import PodBuggerTool
from podbuggertool.container import container_name

DISABLED: Final = "apps.jicki.cn/debug"
"""An annotation of a pod; with the value `disabled` the pod is left alone."""

_MIRROR: Final = "kubernetes.io/config.mirror"
_PULL_ERRORS: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
)


def is_ready(pod: Pod) -> bool:
    """Whether the kubelet says that it can do its work."""
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions or ())


def by_age(pod: Pod) -> tuple[datetime, str]:
    """A key to sort by, the oldest pod first; those of one moment by name."""
    return pod.metadata.creation_timestamp or datetime.max.replace(tzinfo=UTC), pod.metadata.name


def is_wanted(pod: Pod) -> bool:
    """Whether it is to be served sooner or later: it is there to stay, and nothing speaks against it.

    A mirror pod is the picture of one that the kubelet runs by itself: the API takes no ephemeral containers for it.
    """
    return (
        pod.metadata.deletion_timestamp is None
        and pod.status.phase not in ("Succeeded", "Failed")
        and pod.metadata.annotations.get(DISABLED) != "disabled"
        and _MIRROR not in pod.metadata.annotations
    )


def is_eligible(pod: Pod, tool: PodBuggerTool) -> bool:
    """Whether it can be served now. A pod whose containers crash again and again is Running all the same."""
    running = bool(pod.spec.node_name) and pod.status.phase == "Running"
    return is_wanted(pod) and running and (tool.spec.wait_for == "Running" or is_ready(pod))


def holds(pod: Pod, tool: PodBuggerTool) -> bool:
    """Whether it has the tool's container."""
    return _namesake(pod, tool) is not None and image_in_the_way(pod, tool) is None


def image_in_the_way(pod: Pod, tool: PodBuggerTool) -> str | None:
    """The image of an ephemeral container that has the chosen name and is not the tool's; None if there is none.

    A name that was not chosen has a hash of the image in it, so whatever has it is the tool's.
    """
    present = _namesake(pod, tool)
    if present is None or not tool.spec.container_name or present.image == tool.spec.image:
        return None
    return present.image or ""


def is_running(pod: Pod, tool: PodBuggerTool) -> bool:
    """Whether the tool's container runs. One that has ended is never started again, by nobody."""
    state = _state(pod, tool)
    return state is not None and state.running is not None


def lacks_image(pod: Pod, tool: PodBuggerTool) -> bool:
    """Whether the tool's container waits for an image that cannot be had."""
    state = _state(pod, tool)
    return state is not None and state.waiting is not None and state.waiting.reason in _PULL_ERRORS


def _namesake(pod: Pod, tool: PodBuggerTool) -> EphemeralContainer | None:
    name = container_name(tool)
    return next((present for present in pod.spec.ephemeral_containers or () if present.name == name), None)


def _state(pod: Pod, tool: PodBuggerTool) -> ContainerState | None:
    if not holds(pod, tool):
        return None
    name, statuses = container_name(tool), pod.status.ephemeral_container_statuses or ()
    return next((status.state for status in statuses if status.name == name), None)
