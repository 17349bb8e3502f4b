"""PodSet: the kind as a class. The CRD follows from it: `make generate` after a change.

There is no webhook on purpose: the schema refuses everything that can be wrong with a PodSet.
"""

from typing import Annotated, Final

from kubewright import Field, Resource, Spec, Status

LARGEST_SIZE: Final = 2**31 - 1


class PodSetSpec(Spec):
    """What the user wants."""

    # Both bounds are said: a format alone does not bound anything, and the lowest int32 is no number of pods.
    size: Annotated[int, Field(ge=0, le=LARGEST_SIZE, format="int32")]
    """How many pods to keep."""


class PodSetStatus(Status):
    """What is there; brings observedGeneration and conditions."""

    nodes: Annotated[list[str], Field(required=True)] = []
    """The names of the pods that count, sorted."""
    replicas: Annotated[int, Field(format="int32")] = 0
    """How many pods count: those that have not ended and are not being deleted."""
    ready_replicas: Annotated[int, Field(format="int32")] = 0
    """How many of them are ready."""
    selector: str = ""
    """Which pods are counted, for the scale subresource and so for autoscalers."""


class PodSet(
    Resource[PodSetSpec, PodSetStatus],
    group="apps.jicki.cn",
    version="v1alpha1",
    scale=("spec.size", "status.replicas", "status.selector"),
    object_names=Field(max_length=63),  # the name is the value of a label of each pod
    columns={
        "Desired": ".spec.size",
        "Current": ".status.replicas",
        "Ready": ".status.readyReplicas",
        "Age": ".metadata.creationTimestamp",
    },
):
    """A number of identical sleeping pods."""
