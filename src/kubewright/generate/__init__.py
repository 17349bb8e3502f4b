"""Generators: from classes to manifests, and from OpenAPI documents and CRDs to classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright._base.lazy import lazy

if TYPE_CHECKING:
    from kubewright.generate.crds.manifests import crd_for
    from kubewright.generate.project import operator_crds, project_files
    from kubewright.generate.rbac.roles import rbac_files
    from kubewright.generate.webhooks import webhook_files
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "kubewright.generate.crds.manifests": ("crd_for",),
            "kubewright.generate.project": ("operator_crds", "project_files"),
            "kubewright.generate.rbac.roles": ("rbac_files",),
            "kubewright.generate.webhooks": ("webhook_files",),
        },
    )

__all__ = ("crd_for", "operator_crds", "project_files", "rbac_files", "webhook_files")
