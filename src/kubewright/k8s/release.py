"""The Kubernetes release of this package: the one its built-in kinds were generated from.

The embedded API server reports it and behaves like it, and real control planes are of this release unless told
otherwise. `kubewright generate models` writes the version into `index`; nothing else states it.
"""

from __future__ import annotations

from typing import Final

from kubewright.k8s.index import SERVER_VERSION

__all__ = ("KUBERNETES_MINOR_VERSION", "KUBERNETES_VERSION")

KUBERNETES_VERSION: Final = SERVER_VERSION.removeprefix("v")
"""The full version, such as `1.35.4`."""

KUBERNETES_MINOR_VERSION: Final = KUBERNETES_VERSION.rpartition(".")[0]
"""The version without its patch, such as `1.35`."""
