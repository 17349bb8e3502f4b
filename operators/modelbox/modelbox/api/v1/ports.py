"""The ports of a ModelBox: what its Service listens on, and where that leads."""

from typing import Annotated, Literal

from kubewright import Field, IntOrString, Model

__all__ = ("DNS_LABEL", "ModelBoxPort", "Protocol")

DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"

Number = Annotated[int, Field(ge=1, le=65535, format="int32")]
Protocol = Literal["TCP", "UDP", "SCTP"]


class ModelBoxPort(Model):
    """One port of the Service."""

    port: Number
    """Where the Service listens."""
    protocol: Protocol = "TCP"
    """What is spoken there."""
    name: Annotated[str, Field(min_length=1, max_length=63, pattern=DNS_LABEL)] | None = None
    """Needed, and to be unique, as soon as there is more than one port."""
    target_port: Annotated[IntOrString, Field(ge=1, le=65535, pattern=DNS_LABEL)] | None = None
    """A port of the pod, by number or by the name that a container gives it; the same as `port` if not given."""
    node_port: Number | None = None
    """The port on every node, for serviceType NodePort and LoadBalancer; the cluster chooses one if not given."""
    app_protocol: Annotated[str, Field(min_length=1, max_length=317)] | None = None
    """What is spoken on top of `protocol`, such as kubernetes.io/h2c."""
