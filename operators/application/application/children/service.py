"""The Service of an Application that listens on a port. Its address is the API server's to choose."""

from kubewright import ObjectMeta
from kubewright.k8s.core.v1 import Service, ServicePort, ServiceSpec

from application.api.v1alpha1.application import Application
from application.names import identity_of, labels_of

__all__ = ("desired_service",)


def desired_service(application: Application, port: int) -> Service:
    """The port is the same outside and inside."""
    return Service(
        metadata=ObjectMeta(
            name=application.metadata.name, namespace=application.metadata.namespace, labels=labels_of(application)
        ),
        spec=ServiceSpec(
            selector=identity_of(application), ports=[ServicePort(port=port, target_port=port, protocol="TCP")]
        ),
    )
