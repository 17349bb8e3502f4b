"""The Service of a ModelBox. Pure: from the object to what is to be applied.

What the cluster allocates, the cluster IP and node ports that nobody asked for, is never in it, and so stays.
"""

from kubewright.k8s.core.v1 import Service, ServicePort, ServiceSpec

from modelbox.api.v1.modelbox import ModelBox
from modelbox.api.v1.ports import ModelBoxPort
from modelbox.children.labels import metadata_of_child, selector_of
from modelbox.defaults import service_type_of, target_port_of

__all__ = ("service_for",)


def service_for(modelbox: ModelBox) -> Service:
    """What the Service is to look like."""
    wanted = service_type_of(modelbox.spec)
    return Service(
        metadata=metadata_of_child(modelbox),
        spec=ServiceSpec(
            # To Kubernetes, headless is no type but a ClusterIP without an IP.
            type="ClusterIP" if wanted == "Headless" else wanted,
            cluster_ip="None" if wanted == "Headless" else None,
            selector=selector_of(modelbox),
            ports=[_port(port) for port in modelbox.spec.ports],
        ),
    )


def _port(port: ModelBoxPort) -> ServicePort:
    return ServicePort(
        name=port.name,
        port=port.port,
        protocol=port.protocol,
        target_port=target_port_of(port),
        node_port=port.node_port,
        app_protocol=port.app_protocol,
    )
