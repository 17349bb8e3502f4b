"""The reconciler of Memcached: one Deployment for each, and its pods in the status."""

import os
from collections.abc import Iterable

from kubewright import Context, ObjectKey, ObjectMeta, Scope, Terminal, Watch, controller, for_each
from kubewright.k8s.apps.v1 import Deployment, DeploymentSpec
from kubewright.k8s.core.v1 import (
    Capabilities,
    Container,
    ContainerPort,
    Pod,
    PodSecurityContext,
    PodSpec,
    PodTemplateSpec,
    SeccompProfile,
    SecurityContext,
)
from kubewright.k8s.meta.v1 import LabelSelector

from memcached.api import Memcached

IMAGE = "MEMCACHED_IMAGE"
"""The environment variable that names the image: a release of the operator comes with the one it was tested with."""
NAME, INSTANCE = "app.kubernetes.io/name", "app.kubernetes.io/instance"


def instance_of(pod: Pod) -> Iterable[ObjectKey]:
    """Pods belong to a ReplicaSet, which belongs to the Deployment; the label leads straight to the Memcached."""
    yield ObjectKey(pod.metadata.namespace, pod.metadata.labels[INSTANCE])


@controller(
    Memcached,
    owns=[Deployment],
    watches=[Watch(Pod, for_each(instance_of), scope=Scope(labels=f"{NAME}=memcached,{INSTANCE}"))],
)
class Memcacheds:
    """Keeps a Deployment of the right size for each Memcached."""

    async def reconcile(self, memcached: Memcached, ctx: Context) -> None:
        """Make the cluster fit, and say in the status what is there."""
        image = os.environ.get(IMAGE)
        if not image:
            message = f"the operator was started without {IMAGE}"
            ctx.condition("Available", False, reason="NoImage", message=message)
            raise Terminal(message)
        await ctx.apply(deployment_for(memcached, image))
        pods = await ctx.client.list(Pod, labels=labels_of(memcached))
        memcached.status.nodes = sorted(pod.metadata.name for pod in pods if is_ready(pod))
        ready, size = len(memcached.status.nodes), memcached.spec.size
        ctx.condition(
            "Available", ready == size, reason="Ready" if ready == size else "Progressing", message=f"{ready} of {size}"
        )

    async def finalize(self, memcached: Memcached, ctx: Context) -> None:
        """The Deployment goes by itself, as it has an owner. This is the place for what is outside of the cluster."""
        ctx.event("Deleting", f"{memcached.metadata.name} is being deleted", type="Warning")


def deployment_for(memcached: Memcached, image: str) -> Deployment:
    """The Deployment that a Memcached is to have, fit for a namespace that enforces the restricted standard."""
    container = Container(
        name="memcached",
        image=image,
        command=["memcached", "--memory-limit=64", "-o", "modern", "-v", f"--port={memcached.spec.container_port}"],
        ports=[ContainerPort(name="memcached", container_port=memcached.spec.container_port)],
        security_context=SecurityContext(
            run_as_non_root=True,
            run_as_user=1001,
            allow_privilege_escalation=False,
            capabilities=Capabilities(drop=["ALL"]),
        ),
    )
    security = PodSecurityContext(run_as_non_root=True, seccomp_profile=SeccompProfile(type="RuntimeDefault"))
    labels = labels_of(memcached)
    return Deployment.named(
        memcached.metadata.name,
        spec=DeploymentSpec(
            replicas=memcached.spec.size,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container], security_context=security)
            ),
        ),
    )


def labels_of(memcached: Memcached) -> dict[str, str]:
    """What the Deployment finds its pods by. A selector cannot be changed: nothing here may follow the spec."""
    return {NAME: "memcached", INSTANCE: memcached.metadata.name}


def is_ready(pod: Pod) -> bool:
    """Whether a pod serves, and is not on its way out."""
    states = pod.status.conditions or []
    return pod.metadata.deletion_timestamp is None and any(
        state.type == "Ready" and state.status == "True" for state in states
    )
