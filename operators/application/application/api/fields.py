"""What both versions of Application say alike: the types and bounds of single fields, and the whole status.

A bound that stood in one version only could be got round through the other, and an object could be stored that one of
them cannot show. So each is said once, here, and both versions are made of the same pieces.
"""

from typing import Annotated, Literal

from kubewright import Field, Model, Status
from kubewright.k8s.core.v1 import EnvVar

Image = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^\S+$")]
Replicas = Annotated[int, Field(ge=0, le=100, format="int32")]
Port = Annotated[int, Field(ge=1, le=65535, format="int32")]
Environment = Annotated[list[EnvVar], Field(list_type="map", list_map_keys=("name",))]
DrainSeconds = Annotated[int, Field(ge=0, le=600, format="int32")]
DeletionPolicy = Literal["Delete", "Retain"]
Count = Annotated[int, Field(format="int32")]

_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

OBJECT_NAMES = Field(max_length=52, pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$")
"""A Service has the name, also one whose port comes later, and Services are named more strictly than most objects. Pods
are named after the Application, with up to eleven characters more; 63 is the most a label holds.
"""


class ConfigReference(Model):
    """A ConfigMap in the same namespace. It is read, never owned: others may use it too."""

    name: Annotated[str, Field(min_length=1, max_length=253, pattern=_SUBDOMAIN)]
    """Its name."""


class ApplicationStatus(Status):
    """What is there; brings observedGeneration and conditions."""

    replicas: Count = 0
    """How many pods there are."""
    ready_replicas: Count = 0
    """How many of them are ready."""
    selector: str = ""
    """Which pods they are, as `kubectl scale` and autoscalers want to know it."""
    config_hash: str = ""
    """Of the configuration that the pods were made with; empty without one."""
