"""ModelBox: the kind as a class. The CRD follows from it: `make generate` after a change.

What a single field may hold is said here and enforced by the API server. What two fields may hold together is in
`modelbox.validation`, and what holds where a field is left out in `modelbox.defaults`.
"""

from typing import Annotated, Literal

from kubewright import Column, Field, IntOrString, Resource, Rule, Spec
from kubewright.k8s.core.v1 import Container, EnvVar, Probe, ResourceRequirements, Volume, VolumeMount

from modelbox.api.v1.ports import DNS_LABEL, ModelBoxPort
from modelbox.api.v1.status import ModelBoxStatus

__all__ = ("ModelBox", "ModelBoxSpec", "ResourceType", "ServiceType")

_INT32 = 2147483647
_PERCENT = "^([1-9][0-9]?|100)%$"
_NAMES_BY_NAME = Field(list_type="map", list_map_keys=("name",), max_items=20)

ResourceType = Literal["small", "medium", "large", "custom"]
ServiceType = Literal["ClusterIP", "NodePort", "LoadBalancer", "Headless"]


class ModelBoxSpec(Spec):
    """What the user wants."""

    image: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^\S+$")]
    """The image of the main container."""
    ports: Annotated[
        list[ModelBoxPort], Field(list_type="map", list_map_keys=("port", "protocol"), min_items=1, max_items=100)
    ]
    """The ports of the Service."""
    name: Annotated[str, Field(min_length=1, max_length=63, pattern=DNS_LABEL)] | None = None
    """The name of the main container, and the label app.kubernetes.io/name; the object's name if not given."""
    replicas: Annotated[int, Field(ge=0, le=_INT32, format="int32")] = 1
    """How many pods are wanted."""
    rolling_update: Annotated[IntOrString, Field(ge=1, le=_INT32, pattern=_PERCENT)] = "25%"
    """How many pods may be too many, and how many too few, during a rollout: a number, or 1% to 100%."""
    min_ready_seconds: Annotated[int, Field(ge=0, le=3600, format="int32")] = 3
    """How long a pod must be ready before it counts as available."""
    service_type: ServiceType | None = None
    """NodePort if any port asks for a nodePort, else ClusterIP, if not given. Headless has no address of its own."""
    resource_type: ResourceType | None = None
    """How much the main container gets. custom if `resources` are given, else small, if not given."""
    resources: ResourceRequirements | None = None
    """What the main container gets with resourceType custom."""
    envs: Annotated[list[EnvVar], Field(list_type="map", list_map_keys=("name",))] = []
    """Environment variables of the main container."""
    containers: Annotated[list[Container], _NAMES_BY_NAME] = []
    """Containers beside the main one."""
    init_containers: Annotated[list[Container], _NAMES_BY_NAME] = []
    """Containers that run before the main one."""
    volumes: Annotated[list[Volume], Field(list_type="map", list_map_keys=("name",))] = []
    """Volumes that containers may mount."""
    volume_mounts: Annotated[list[VolumeMount], Field(list_type="map", list_map_keys=("mount_path",))] = []
    """What the main container mounts."""
    default_probes: bool = True
    """Whether a probe that is not given is made up from the first TCP port."""
    health_path: Annotated[str, Field(pattern="^/", max_length=2048)] | None = None
    """Where made-up probes ask over HTTP; they only connect if not given."""
    liveness_probe: Probe | None = None
    """When the main container is to be restarted."""
    readiness_probe: Probe | None = None
    """When the main container is to get requests."""


class ModelBox(
    Resource[ModelBoxSpec, ModelBoxStatus],
    group="model.github.com",
    version="v1",
    plural="modelboxes",
    short_names=("mb",),
    scale=("spec.replicas", "status.replicas", "status.selector"),
    columns={
        "Image": ".spec.image",
        "Size": ".status.resourceType",
        "Desired": ".spec.replicas",
        "Ready": ".status.readyReplicas",
        "Service": ".status.service.type",
        "Status": '.status.conditions[?(@.type=="Ready")].status',
        "Age": ".metadata.creationTimestamp",
        "Selector": Column(path=".status.selector", priority=1),
        "Cluster-IP": Column(path=".status.service.clusterIP", priority=1),
    },
    marker=Field(
        rules=[
            Rule(
                rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                message="the name must be a DNS-1035 label of at most 63 characters: it names a Service too",
            )
        ]
    ),
):
    """A model behind a Service: one Deployment and one Service of the same name, kept right and reported on."""
