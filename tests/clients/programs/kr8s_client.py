"""kr8s: objects by its own classes and by discovery, waiting, labels, scale; says `done` at the end."""

# The packages these programs are about are untyped, or typed more narrowly than their documentation.
# mypy: ignore-errors

from __future__ import annotations

import sys

import kr8s
from kr8s.objects import ConfigMap, Deployment, new_class


def main(namespace: str) -> None:
    """Everything in one namespace."""
    api = kr8s.api(namespace=namespace)
    assert api.version()["major"] == "1"
    config = ConfigMap({"metadata": {"name": "k", "namespace": namespace}, "data": {"a": "1"}}, api=api)
    config.create()
    assert config.exists()
    config.patch({"data": {"a": "2"}})
    config.label(colour="blue")
    config.annotate(note="x")
    assert [item.data.a for item in kr8s.get("configmaps", namespace=namespace, label_selector="colour=blue")] == ["2"]
    deployment = Deployment(
        {
            "metadata": {"name": "k", "namespace": namespace},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": "k"}},
                "template": {
                    "metadata": {"labels": {"app": "k"}},
                    "spec": {"containers": [{"name": "c", "image": "nginx"}]},
                },
            },
        },
        api=api,
    )
    deployment.create()
    deployment.wait("condition=Available", timeout=60)
    deployment.scale(2)
    deployment.wait("jsonpath='{.status.readyReplicas}'=2", timeout=60)
    assert len(list(deployment.pods())) == 2
    Widget = new_class("Widget", version="clients.example.io/v1", namespaced=True)  # noqa: N806 - a class
    widget = Widget({"metadata": {"name": "kw", "namespace": namespace}, "spec": {"size": 1}}, api=api)
    widget.create()
    assert [item.name for item in kr8s.get("widgets.clients.example.io", namespace=namespace)] == ["kw"]
    widget.delete()
    deployment.delete(propagation_policy="Foreground")
    deployment.wait("delete", timeout=60)
    config.delete()
    print("done")


if __name__ == "__main__":
    main(sys.argv[1])
