"""Pods and their containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubewright.api.codec import from_tree
from kubewright.k8s.core.v1 import Pod

__all__ = ("container_tree", "pod", "pod_tree")

Tree = dict[str, Any]


def container_tree(
    name: str = "main",
    *,
    image: str = "nginx",
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    **fields: Any,
) -> Tree:
    """A container `main` of the image `nginx`. As on a server, its requests are its limits unless given."""
    amounts = {"requests": requests or limits, "limits": limits}
    resources = {key: dict(value) for key, value in amounts.items() if value}
    return {"name": name, "image": image, **({"resources": resources} if resources else {}), **fields}


def pod_tree(
    name: str = "web",
    namespace: str = "",
    *,
    app: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    container: Mapping[str, Any] | None = None,
    containers: Sequence[Mapping[str, Any]] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Tree:
    """A pod `web` with one container (`container_tree`), in the namespace of the request.

    Its label `app` is its name, unless another is given, or "" for none. `container` is arguments of `container_tree`,
    `metadata` whatever else the metadata has.
    """
    app = name if app is None else app
    optional = {
        "namespace": namespace,
        "labels": {**({"app": app} if app else {}), **(labels or {})},
        "annotations": dict(annotations or {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **{key: value for key, value in optional.items() if value}, **(metadata or {})},
        "spec": {
            "containers": [container_tree(**(container or {}))] if containers is None else list(containers),
            **spec,
        },
        **({"status": dict(status)} if status is not None else {}),
    }


def pod(name: str = "web", namespace: str = "shop", *, uid: str | None = None, **options: Any) -> Pod:
    """A pod `web` in the namespace `shop` with its name as uid; `options` are those of `pod_tree`.

    A server on which it is created gives it a uid of its own.
    """
    tree = pod_tree(name, namespace, **options)
    tree["metadata"].setdefault("uid", name if uid is None else uid)
    return from_tree(Pod, tree)
