"""The Deployment of an Application. Only what the operator has an opinion about is in it; the rest is the server's."""

from kubewright import ObjectMeta
from kubewright.k8s.apps.v1 import Deployment, DeploymentSpec
from kubewright.k8s.core.v1 import ConfigMapEnvSource, Container, ContainerPort, EnvFromSource, PodSpec, PodTemplateSpec
from kubewright.k8s.meta.v1 import LabelSelector

from application.api.v1alpha1.application import Application
from application.names import CONFIG_HASH, identity_of, labels_of

__all__ = ("desired_deployment",)


def desired_deployment(application: Application, config_hash: str) -> Deployment:
    """`config_hash` is that of the referenced configuration, empty if none is referenced."""
    template = PodTemplateSpec(
        metadata=ObjectMeta(
            labels=labels_of(application), annotations={CONFIG_HASH: config_hash} if config_hash else {}
        ),
        spec=PodSpec(containers=[_container(application)]),
    )
    return Deployment(
        metadata=_metadata(application),
        spec=DeploymentSpec(
            replicas=application.spec.replicas,
            selector=LabelSelector(match_labels=identity_of(application)),
            template=template,
        ),
    )


def _metadata(application: Application) -> ObjectMeta:
    return ObjectMeta(
        name=application.metadata.name, namespace=application.metadata.namespace, labels=labels_of(application)
    )


def _container(application: Application) -> Container:
    wanted, config = application.spec, application.spec.config_ref
    return Container(
        name="application",
        image=wanted.image,
        ports=[ContainerPort(container_port=wanted.port, protocol="TCP")] if wanted.port else None,
        env=wanted.env or None,
        env_from=[EnvFromSource(config_map_ref=ConfigMapEnvSource(name=config.name))] if config else None,
    )
