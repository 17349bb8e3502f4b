"""What pods are asked: may this one be served, does it have the container, does that run?

Pure. A pod that cannot be served yet is left to its next event; nothing waits for it.
"""

from datetime import UTC, datetime
from typing import Final

from kubewright.k8s.core.v1 import ContainerState, Pod

from podbuggertool.api.v1alpha1.podbuggertool import PodBuggerTool

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


def holds(pod: Pod, container: str) -> bool:
    """Whether it has an ephemeral container of that name."""
    return any(present.name == container for present in pod.spec.ephemeral_containers or ())


def is_running(pod: Pod, container: str) -> bool:
    """Whether that container runs. One that has ended is never started again, by nobody."""
    state = _state(pod, container)
    return state is not None and state.running is not None


def lacks_image(pod: Pod, container: str) -> bool:
    """Whether that container waits for an image that cannot be had."""
    state = _state(pod, container)
    return state is not None and state.waiting is not None and state.waiting.reason in _PULL_ERRORS


def _state(pod: Pod, container: str) -> ContainerState | None:
    statuses = pod.status.ephemeral_container_statuses or ()
    return next((status.state for status in statuses if status.name == container), None)
