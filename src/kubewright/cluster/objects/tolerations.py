"""Whether a toleration matches a taint. Called by the scheduler, the taint eviction and the DaemonSet controller."""

from __future__ import annotations

from kubewright.k8s.core.v1 import Taint, Toleration

__all__ = ("tolerates",)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """ToleratesTaint of staging/src/k8s.io/api/core/v1/toleration.go: an empty field matches every value."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and (toleration.value or "") == (taint.value or "")
