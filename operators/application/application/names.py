"""Every name this operator gives to something in the cluster, and what is found by it."""

from application.api.v1alpha1.application import Application

__all__ = (
    "CONFIG_HASH",
    "DRAIN_UNTIL",
    "FIELD_MANAGER",
    "FINALIZER",
    "INSTANCE",
    "identity_of",
    "labels_of",
    "selector_of",
)

FINALIZER = "apps.example.io/cleanup"
FIELD_MANAGER = "application-controller"
INSTANCE = "apps.example.io/application"
"""The label of everything that belongs to an Application. Selectors use it alone: they can never change."""
CONFIG_HASH = "apps.example.io/config-hash"
"""An annotation of the pod template: another value means other pods."""
DRAIN_UNTIL = "apps.example.io/drain-until"
"""An annotation of a Deployment that is being drained."""


def identity_of(application: Application) -> dict[str, str]:
    """The label by which pods are selected, and retained children are found again."""
    return {INSTANCE: application.metadata.name}


def labels_of(application: Application) -> dict[str, str]:
    """All labels of a child."""
    return {
        "app.kubernetes.io/name": application.metadata.name,
        "app.kubernetes.io/instance": application.metadata.name,
        "app.kubernetes.io/managed-by": "application-operator",
        **identity_of(application),
    }


def selector_of(application: Application) -> str:
    """The same as text, for `kubectl scale`."""
    return f"{INSTANCE}={application.metadata.name}"
