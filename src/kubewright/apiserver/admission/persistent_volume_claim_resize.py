"""The PersistentVolumeClaimResize plugin: a claim may grow if it is bound and its storage class allows it.

kube-apiserver: plugin/pkg/admission/storage/persistentvolume/resize/admission.go.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.api.quantity import Quantity
from kubewright.apiserver.builtin.trees import Tree, peek
from kubewright.apiserver.kinds.admission import Attributes, admission_forbidden
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("PersistentVolumeClaimResize",)

_NOT_BOUND: Final = "Only bound persistent volume claims can be expanded"
_NOT_RESIZABLE: Final = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


@final
class PersistentVolumeClaimResize:
    """Validates changes of volume claims."""

    def __init__(self, store: Store) -> None:
        self._classes = store.table("storage.k8s.io/storageclasses")

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.resource.table == "/persistentvolumeclaims"
            and attributes.operation == "UPDATE"
            and not attributes.subresource
        )

    async def validate(self, attributes: Attributes) -> None:
        new, old = attributes.object or {}, attributes.old or {}
        if _size(new) <= _size(old):
            return
        if peek(old, "status", "phase") != "Bound":
            raise admission_forbidden(attributes, _NOT_BOUND)
        name = _class_of(new)
        if name != _class_of(old) or not self._allows_expansion(name):
            raise admission_forbidden(attributes, _NOT_RESIZABLE)

    def _allows_expansion(self, name: str) -> bool:
        entry = self._classes.get(name)
        return entry is not None and bool(decode_json(entry.value).get("allowVolumeExpansion"))


def _size(claim: Tree) -> Quantity:
    return Quantity(str(peek(claim, "spec", "resources", "requests", "storage") or "0"))


def _class_of(claim: Tree) -> str:
    annotated = peek(claim, "metadata", "annotations", "volume.beta.kubernetes.io/storage-class")
    return str(annotated if annotated is not None else peek(claim, "spec", "storageClassName") or "")
