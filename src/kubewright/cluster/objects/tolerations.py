"""Which taints a pod puts up with: asked by whoever places pods on nodes, and by whoever drives them away."""

from __future__ import annotations

from kubewright.k8s.core.v1 import Taint, Toleration

__all__ = ("tolerates",)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration is about a taint; one that leaves something out is about every value of it."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and (toleration.value or "") == (taint.value or "")
