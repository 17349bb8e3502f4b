"""Services."""

from __future__ import annotations

from typing import Any

from kubewright.api.codec import from_tree
from kubewright.k8s.core.v1 import Service

__all__ = ("service", "service_tree")


def service_tree(name: str = "web", namespace: str = "", **spec: Any) -> dict[str, Any]:
    """A Service `web` with the port 80 and no selector."""
    where = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, **where},
        "spec": {"ports": [{"port": 80}], **spec},
    }


def service(name: str = "web", namespace: str = "shop", **spec: Any) -> Service:
    """The same in the namespace `shop`."""
    return from_tree(Service, service_tree(name, namespace, **spec))
