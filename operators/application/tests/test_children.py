"""What the children look like: only what the operator has an opinion about."""

from typing import Any

from kubewright.api import KubeObject, to_tree
from kubewright.k8s.core.v1 import EnvVar

from application.api.v1alpha1.application import Application, ApplicationSpec, ConfigReference
from application.children.deployment import desired_deployment
from application.children.service import desired_service

LABELS = {
    "app.kubernetes.io/name": "web",
    "app.kubernetes.io/instance": "web",
    "app.kubernetes.io/managed-by": "application-operator",
    "apps.example.io/application": "web",
}
FULL = Application.named(
    "web",
    "shop",
    spec=ApplicationSpec(
        image="nginx:1.29",
        port=8080,
        env=[EnvVar(name="A", value="1")],
        replicas=3,
        config_ref=ConfigReference(name="settings"),
    ),
)


def asked_for(child: KubeObject) -> dict[str, Any]:
    """What an apply sends besides the kind; a status is never part of it."""
    tree = to_tree(child)
    return {"metadata": tree["metadata"], "spec": tree["spec"]}


def test_everything_that_is_asked_for_is_in_the_deployment() -> None:
    assert asked_for(desired_deployment(FULL, "abc")) == {
        "metadata": {"name": "web", "namespace": "shop", "labels": LABELS},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"apps.example.io/application": "web"}},
            "template": {
                "metadata": {"labels": LABELS, "annotations": {"apps.example.io/config-hash": "abc"}},
                "spec": {
                    "containers": [
                        {
                            "name": "application",
                            "image": "nginx:1.29",
                            "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                            "env": [{"name": "A", "value": "1"}],
                            "envFrom": [{"configMapRef": {"name": "settings"}}],
                        }
                    ]
                },
            },
        },
    }


def test_what_is_not_asked_for_is_left_to_others() -> None:
    bare = Application.named("web", "shop", spec=ApplicationSpec(image="nginx"))

    template = asked_for(desired_deployment(bare, ""))["spec"]["template"]

    assert template == {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "application", "image": "nginx"}]},
    }


def test_the_service_selects_by_the_one_label_that_never_changes() -> None:
    assert asked_for(desired_service(FULL, 8080)) == {
        "metadata": {"name": "web", "namespace": "shop", "labels": LABELS},
        "spec": {
            "selector": {"apps.example.io/application": "web"},
            "ports": [{"port": 8080, "targetPort": 8080, "protocol": "TCP"}],
        },
    }
