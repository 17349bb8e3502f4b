"""Application in v1beta1: what concerns the container stands together in `spec.container`.

Served, and converted to and from v1alpha1 on the way. Nothing but `application.webhooks.conversion` and tests needs
this class.
"""

from kubewright import Column, Model, Resource, Spec

from application.api.fields import (
    OBJECT_NAMES,
    ApplicationStatus,
    ConfigReference,
    DeletionPolicy,
    DrainSeconds,
    Environment,
    Image,
    Port,
    Replicas,
)

__all__ = ("Application", "ApplicationSpec", "ApplicationStatus", "ConfigReference", "Container")


class Container(Model):
    """What runs in each pod."""

    image: Image
    """The container image."""
    port: Port | None = None
    """The port it listens on. If there is one, a Service of the Application's name is kept for it."""
    env: Environment = []
    """Environment variables; they win over those from the configuration."""


class ApplicationSpec(Spec):
    """What the user wants."""

    container: Container
    """What runs in each pod."""
    replicas: Replicas = 1
    """How many pods."""
    config_ref: ConfigReference | None = None
    """A ConfigMap whose entries become environment variables; the pods are replaced when they change."""
    paused: bool = False
    """Leave the Deployment and the Service as they are; the status is still kept up to date."""
    deletion_policy: DeletionPolicy = "Delete"
    """What becomes of the Deployment and the Service when the Application is deleted."""
    drain_seconds: DrainSeconds = 0
    """How long to wait, once it is being deleted, for its pods to end before everything else goes."""


class Application(
    Resource[ApplicationSpec, ApplicationStatus],
    group="apps.example.io",
    version="v1beta1",
    storage=False,  # v1alpha1 is the one that is stored
    scale=("spec.replicas", "status.replicas", "status.selector"),
    object_names=OBJECT_NAMES,
    columns={
        "Image": ".spec.container.image",
        "Desired": ".spec.replicas",
        "Ready": ".status.readyReplicas",
        "Status": Column(path='.status.conditions[?(@.type=="Ready")].reason', type="string"),
        "Age": ".metadata.creationTimestamp",
    },
):
    """A container image, kept running in a number of pods, with an optional Service and configuration."""
