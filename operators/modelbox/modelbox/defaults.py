"""What holds where a ModelBox says nothing, as far as the schema's own defaults cannot know it.

The defaulting webhook writes these into the object; the reconciler asks them directly, so that it works the same
without webhooks. Pure.
"""

from kubewright import IntOrString
from kubewright.api import dns1123_label_errors

from modelbox.api.v1.modelbox import ModelBox, ModelBoxSpec, ResourceType, ServiceType
from modelbox.api.v1.ports import ModelBoxPort

__all__ = (
    "container_name_of",
    "fill_defaults",
    "has_resources",
    "resource_type_of",
    "service_type_of",
    "target_port_of",
)


def fill_defaults(modelbox: ModelBox) -> None:
    """Write every default into the object; doing so twice changes nothing."""
    spec = modelbox.spec
    # A name that the server has yet to make is used later; one that no container can have is refused by itself.
    if not dns1123_label_errors(modelbox.metadata.name):
        spec.name = container_name_of(modelbox)
    spec.service_type = service_type_of(spec)
    spec.resource_type = resource_type_of(spec)
    for port in spec.ports:
        port.target_port = target_port_of(port)


def container_name_of(modelbox: ModelBox) -> str:
    """The name of the main container."""
    return modelbox.spec.name or modelbox.metadata.name


def target_port_of(port: ModelBoxPort) -> IntOrString:
    """Where a port of the Service leads to in the pod."""
    return port.port if port.target_port is None else port.target_port


def service_type_of(spec: ModelBoxSpec) -> ServiceType:
    """The kind of Service."""
    if spec.service_type is not None:
        return spec.service_type
    return "NodePort" if any(port.node_port is not None for port in spec.ports) else "ClusterIP"


def resource_type_of(spec: ModelBoxSpec) -> ResourceType:
    """The size."""
    if spec.resource_type is not None:
        return spec.resource_type
    return "custom" if has_resources(spec) else "small"


def has_resources(spec: ModelBoxSpec) -> bool:
    """Whether the spec asks for resources by itself; an empty `resources: {}` asks for nothing."""
    resources = spec.resources
    return resources is not None and bool(resources.requests or resources.limits or resources.claims)
