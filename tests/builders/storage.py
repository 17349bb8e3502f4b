"""Claims for volumes."""

from __future__ import annotations

from typing import Any

from kubewright.api.codec import from_tree
from kubewright.k8s.core.v1 import PersistentVolumeClaim

__all__ = ("volume_claim",)


def volume_claim(name: str = "data", namespace: str = "shop", **spec: Any) -> PersistentVolumeClaim:
    """A claim `data` for 1Gi that one node may write to. Without `storageClassName` the default class answers it."""
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return from_tree(PersistentVolumeClaim, {"metadata": {"name": name, "namespace": namespace}, "spec": wanted})
