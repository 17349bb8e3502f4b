"""What a ModelBox reports; `modelbox.status` fills it in from the Deployment and the Service."""

from typing import Annotated

from kubewright import Condition, Field, Model, Status
from kubewright.api import field

__all__ = ("LoadBalancerAddress", "ModelBoxStatus", "ObservedService", "ObservedServicePort")


class ObservedServicePort(Model):
    """A port as the cluster has it, with the node port it chose."""

    port: int
    protocol: str = "TCP"
    name: str | None = None
    node_port: int | None = None


class LoadBalancerAddress(Model):
    """Where a load balancer can be reached: an address or a host."""

    ip: str | None = None
    hostname: str | None = None


class ObservedService(Model):
    """The Service as it is in the cluster."""

    name: str
    type: str
    cluster_ip: str | None = field(default=None, name="clusterIP")
    ports: list[ObservedServicePort] = []
    load_balancer: list[LoadBalancerAddress] = []


class ModelBoxStatus(Status):
    """What is there. To be trusted where observedGeneration is the generation of the object."""

    replicas: int = 0
    """How many pods there are."""
    updated_replicas: int = 0
    """How many of them are as the spec wants them now."""
    ready_replicas: int = 0
    """How many answer their readiness probe."""
    available_replicas: int = 0
    """How many have done so for minReadySeconds."""
    unavailable_replicas: int = 0
    """How many are still missing."""
    selector: str = ""
    """The label selector of the pods, for the scale subresource."""
    resource_type: str | None = None
    """The size in effect."""
    service: ObservedService | None = None
    """The Service, if there is one."""
    conditions: Annotated[list[Condition], Field(list_type="map", list_map_keys=("type",))] = []
    """Available, Progressing, ServiceReady, Degraded, and Ready, which sums them up."""
