"""Local Kubernetes control planes, embedded and real, for development and tests; see `Cluster`.

The names are imported when they are used: an operator in production never imports this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright._base.lazy import lazy

if TYPE_CHECKING:
    from kubewright.cluster.install import install_crds
    from kubewright.cluster.kubelet.pods.timing import Timing
    from kubewright.cluster.planes.cluster import Cluster
    from kubewright.cluster.planes.embedded import EmbeddedCluster
    from kubewright.cluster.planes.real import RealCluster
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "kubewright.cluster.install": ("install_crds",),
            "kubewright.cluster.kubelet.pods.timing": ("Timing",),
            "kubewright.cluster.planes.cluster": ("Cluster",),
            "kubewright.cluster.planes.embedded": ("EmbeddedCluster",),
            "kubewright.cluster.planes.real": ("RealCluster",),
        },
    )

__all__ = ("Cluster", "EmbeddedCluster", "RealCluster", "Timing", "install_crds")
