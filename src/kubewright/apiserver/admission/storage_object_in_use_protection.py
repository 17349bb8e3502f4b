"""The StorageObjectInUseProtection plugin: volumes, claims and attributes classes get the finalizer that protects them.

kube-apiserver: plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go. The protection controllers of
`cluster.controller_manager` remove the finalizers of what nobody uses any more.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.apiserver.builtin.trees import section
from kubewright.apiserver.kinds.admission import Attributes

__all__ = ("StorageObjectInUseProtection",)

_FINALIZERS: Final = {
    "/persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "/persistentvolumes": "kubernetes.io/pv-protection",
    "storage.k8s.io/volumeattributesclasses": "kubernetes.io/vac-protection",
}


@final
class StorageObjectInUseProtection:
    """Mutates new objects of these three kinds."""

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.resource.table in _FINALIZERS and attributes.operation == "CREATE" and not attributes.subresource
        )

    async def mutate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        metadata = section(attributes.object, "metadata")
        finalizer = _FINALIZERS[attributes.resource.table]
        finalizers = metadata.get("finalizers") or []
        if finalizer not in finalizers:
            metadata["finalizers"] = [*finalizers, finalizer]
