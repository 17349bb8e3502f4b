"""An operator on kopf as its documentation teaches it: a child, a status, events, a finalizer, a daemon's timer.

Run by `kopf run`; nothing in it knows what kind of server it talks to.
"""

# The packages these programs are about are untyped, or typed more narrowly than their documentation.
# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import kopf
import kubernetes

WIDGETS = ("clients.example.io", "v1", "widgets")


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Progress and differences in annotations of a prefix of our own."""
    kubernetes.config.load_kube_config()
    settings.persistence.finalizer = "clients.example.io/kopf"


@kopf.on.create(*WIDGETS)
def create(
    spec: Mapping[str, Any], name: str, namespace: str, body: kopf.Body, patch: kopf.Patch, **_: Any
) -> Mapping[str, str]:
    """Make the child."""
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"size": str(spec.get("size", 0))},
    }
    kopf.adopt(child)
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, child)
    kopf.info(body, reason="Made", message=f"made the child of {name}")
    patch.status["ready"] = spec.get("size", 0)
    return {"child": name}


@kopf.on.update(*WIDGETS, field="spec.size")
def resize(new: int, name: str, namespace: str, patch: kopf.Patch, **_: Any) -> None:
    """Bring the child up to date."""
    kubernetes.client.CoreV1Api().patch_namespaced_config_map(name, namespace, {"data": {"size": str(new)}})
    patch.status["ready"] = new


@kopf.on.delete(*WIDGETS)
def delete(name: str, namespace: str, **_: Any) -> None:
    """Leave a trace that says the finalizer did its work."""
    trace = {"metadata": {"name": f"gone-{name}"}}
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, trace)
