"""SidecarSet: the kind as a class. The CRD follows from it: `make generate` after a change.

What a single field may hold is said here and enforced by the API server. What fields may hold together, or beside
those of other SidecarSets, is in `sidecarset.validation` and `sidecarset.clashes`.
"""

from typing import Annotated, Literal

from kubewright import Column, Condition, Field, IntOrString, Model, Resource, Spec, Status
from kubewright.k8s.core.v1 import Container, Volume
from kubewright.k8s.meta.v1 import LabelSelector

__all__ = (
    "InjectionStrategy",
    "PullSecret",
    "SidecarContainer",
    "SidecarSet",
    "SidecarSetSpec",
    "SidecarSetStatus",
    "UpdateStrategy",
)

_BY_NAME = Field(list_type="map", list_map_keys=("name",))
_COUNT = Field(ge=0, le=2147483647, format="int32")


class SidecarContainer(Container):
    """A container that is added to pods."""

    pod_inject_policy: Literal["BeforeAppContainer", "AfterAppContainer"] = "BeforeAppContainer"
    """Where it goes among the pod's own containers. The first container is the one that kubectl logs and exec take
    when they are told no name.
    """


class PullSecret(Model):
    """A secret in the namespace of each pod."""

    name: Annotated[str, Field(min_length=1)]


class InjectionStrategy(Model):
    """How new pods are treated."""

    paused: bool = False
    """New pods are left as they are."""


class UpdateStrategy(Model):
    """How pods that have the sidecars already follow a change of their images."""

    type: Literal["RollingUpdate", "NotUpdate"] = "RollingUpdate"
    """NotUpdate leaves pods as they were injected."""
    paused: bool = False
    """No further pod is changed until this is false again."""
    selector: LabelSelector | None = None
    """Only these pods are changed. Not together with a partition."""
    partition: Annotated[IntOrString, Field(ge=0, le=2147483647)] = 0
    """How many of the injected pods, or how many percent of them, keep their images."""
    max_unavailable: Annotated[IntOrString, Field(ge=0, le=2147483647)] = 1
    """How many ready pods, or how many percent of the injected ones, may be changed and not ready again at a time."""


class SidecarSetSpec(Spec):
    """Which pods get what."""

    selector: LabelSelector
    """The pods that get the containers, by their labels."""
    namespace_selector: LabelSelector | None = None
    """The namespaces in which they do, by their labels; every namespace if not given."""
    containers: Annotated[list[SidecarContainer], _BY_NAME] = []
    """What is added beside the pod's own containers."""
    init_containers: Annotated[list[Container], _BY_NAME] = []
    """What is added behind the pod's own init containers, in the order of their names."""
    volumes: Annotated[list[Volume], _BY_NAME] = []
    """Volumes that these containers mount; one that is mounted by none of them is not added."""
    image_pull_secrets: Annotated[list[PullSecret], _BY_NAME] = []
    """Secrets with which the images are pulled."""
    injection_strategy: InjectionStrategy = InjectionStrategy()
    update_strategy: UpdateStrategy = UpdateStrategy()


class SidecarSetStatus(Status):
    """The pods in scope, counted."""

    matched_pods: Annotated[int, _COUNT] = 0
    """Pods that were injected by this set."""
    updated_pods: Annotated[int, _COUNT] = 0
    """Matched pods that have the containers as they are in the spec now."""
    ready_pods: Annotated[int, _COUNT] = 0
    """Matched pods that are ready, and not in the middle of a change."""
    updated_ready_pods: Annotated[int, _COUNT] = 0
    """Matched pods that are both."""
    uninjected_pods: Annotated[int, _COUNT] = 0
    """Pods in scope that were not injected: older than the set, or made while injection was paused."""
    latest_revision: str = ""
    """A hash of the containers in the spec."""
    conditions: Annotated[list[Condition], Field(list_type="map", list_map_keys=("type",))] = []
    """Ready, Progressing, UpdateBlocked and Paused."""


class SidecarSet(
    Resource[SidecarSetSpec, SidecarSetStatus],
    group="apps.unisound.io",
    version="v1alpha1",
    scope="Cluster",
    columns={
        "MATCHED": Column(path=".status.matchedPods", description="Pods that were injected."),
        "UPDATED": Column(path=".status.updatedPods", description="Matched pods with the containers of the spec."),
        "READY": Column(path=".status.readyPods", description="Matched pods that are ready."),
        "AGE": Column(path=".metadata.creationTimestamp"),
    },
):
    """Containers that pods get when they are created, and whose images are replaced while the pods run."""
