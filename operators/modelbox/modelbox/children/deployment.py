"""The Deployment of a ModelBox. Pure: from the object to what is to be applied.

Only what the operator has an opinion about is in it; everything else belongs to whoever sets it.
"""

from kubewright import ObjectMeta
from kubewright.k8s.apps.v1 import Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment
from kubewright.k8s.core.v1 import Container, PodSpec, PodTemplateSpec
from kubewright.k8s.meta.v1 import LabelSelector

from modelbox.api.v1.modelbox import ModelBox
from modelbox.children.container_ports import container_ports
from modelbox.children.labels import labels_of, metadata_of_child, selector_of
from modelbox.children.probes import liveness_of, readiness_of
from modelbox.defaults import container_name_of
from modelbox.sizes import resources_of

__all__ = ("REPLICAS_ANNOTATION", "deployment_for", "is_scaled_by_others")

REPLICAS_ANNOTATION = "model.github.com/replicas-managed-by"
_DEADLINE = 600
"""Kubernetes' own progressDeadlineSeconds, which must be above minReadySeconds."""


def is_scaled_by_others(modelbox: ModelBox) -> bool:
    """Whether the Deployment's replicas are somebody else's business, such as an autoscaler's."""
    return modelbox.metadata.annotations.get(REPLICAS_ANNOTATION) == "external"


def deployment_for(modelbox: ModelBox) -> Deployment:
    """What the Deployment is to look like."""
    spec = modelbox.spec
    return Deployment(
        metadata=metadata_of_child(modelbox),
        spec=DeploymentSpec(
            replicas=None if is_scaled_by_others(modelbox) else spec.replicas,
            min_ready_seconds=spec.min_ready_seconds,
            progress_deadline_seconds=_deadline(spec.min_ready_seconds),
            strategy=DeploymentStrategy(
                type="RollingUpdate",
                rolling_update=RollingUpdateDeployment(
                    max_surge=spec.rolling_update, max_unavailable=spec.rolling_update
                ),
            ),
            selector=LabelSelector(match_labels=selector_of(modelbox)),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels_of(modelbox)),
                spec=PodSpec(
                    containers=[_main_container(modelbox), *spec.containers],
                    init_containers=spec.init_containers or None,
                    volumes=spec.volumes or None,
                ),
            ),
        ),
    )


def _main_container(modelbox: ModelBox) -> Container:
    spec = modelbox.spec
    return Container(
        name=container_name_of(modelbox),
        image=spec.image,
        ports=container_ports(spec) or None,
        resources=resources_of(spec),
        env=spec.envs or None,
        volume_mounts=spec.volume_mounts or None,
        liveness_probe=liveness_of(spec),
        readiness_probe=readiness_of(spec),
    )


def _deadline(min_ready_seconds: int) -> int | None:
    return None if min_ready_seconds < _DEADLINE else min_ready_seconds + _DEADLINE
