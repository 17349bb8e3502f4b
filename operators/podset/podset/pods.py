"""The pods of a PodSet: what one looks like when it is made, and what one is asked later.

Pure. Whether a pod belongs to a set is said in `podset.membership`, which of several goes first in `podset.ranking`.
"""

import os
from typing import Final

from kubewright import ObjectMeta, Quantity
from kubewright.k8s.core.v1 import Container, Pod, PodCondition, PodSpec, ResourceRequirements

from podset.api.v1alpha1.podset import PodSet

LABEL: Final = "apps.jicki.cn/podset"
"""The name of the set, on each of its pods."""
MANAGED_BY: Final = "podset-operator"
IMAGE_VARIABLE: Final = "PODSET_IMAGE"
"""The environment variable that names another image, for clusters that cannot reach the usual registry."""


def new_pod(podset: PodSet) -> Pod:
    """A pod that sleeps. Its name is made by the server, its owner is set when it is created."""
    container = Container(
        name="busybox",
        image=os.environ.get(IMAGE_VARIABLE, "busybox"),
        command=["sleep", "3600"],
        resources=ResourceRequirements(requests={"cpu": Quantity("10m"), "memory": Quantity("16Mi")}),
    )
    return Pod(
        metadata=ObjectMeta(
            generate_name=f"{podset.metadata.name}-",
            namespace=podset.metadata.namespace,
            labels={LABEL: podset.metadata.name, "app.kubernetes.io/managed-by": MANAGED_BY},
        ),
        spec=PodSpec(
            containers=[container],
            # The sleep ends after an hour and is begun again; the pod stays, so the set is not made anew each hour.
            restart_policy="Always",
            # As process 1, `sleep` does not hear SIGTERM: the usual 30 seconds would only make deletions slow.
            termination_grace_period_seconds=5,
        ),
    )


def is_deleting(pod: Pod) -> bool:
    """Whether its deletion has been asked for."""
    return pod.metadata.deletion_timestamp is not None


def is_finished(pod: Pod) -> bool:
    """Whether its containers have ended for good, by themselves or by eviction."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_active(pod: Pod) -> bool:
    """Whether it counts."""
    return not is_deleting(pod) and not is_finished(pod)


def ready_condition(pod: Pod) -> PodCondition | None:
    """What the kubelet says about its readiness."""
    return next((condition for condition in pod.status.conditions or () if condition.type == "Ready"), None)


def is_ready(pod: Pod) -> bool:
    """Whether it can do its work."""
    condition = ready_condition(pod)
    return condition is not None and condition.status == "True"
