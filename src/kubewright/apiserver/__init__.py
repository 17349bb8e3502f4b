"""Be a cluster: an embedded Kubernetes API server. `kubewright.cluster` runs it with controllers and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright._base.lazy import lazy

if TYPE_CHECKING:
    from kubewright.apiserver.server import ApiServer
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "kubewright.apiserver.server": ("ApiServer",),
        },
    )

__all__ = ("ApiServer",)
