"""The DefaultStorageClass and DefaultIngressClass plugins: new objects without a class get the default one.

kube-apiserver: plugin/pkg/admission/storage/storageclass/setdefault and
plugin/pkg/admission/network/defaultingressclass.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.apiserver.builtin.trees import peek, section, text
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.storage.store import Store, Table
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("DefaultIngressClass", "DefaultStorageClass")

_STORAGE_MARKS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_INGRESS_MARKS: Final = ("ingressclass.kubernetes.io/is-default-class",)


@final
class DefaultStorageClass:
    """Mutates new volume claims."""

    def __init__(self, store: Store) -> None:
        self._classes = store.table("storage.k8s.io/storageclasses")

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.resource.table == "/persistentvolumeclaims"
            and attributes.operation == "CREATE"
            and not attributes.subresource
        )

    async def mutate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        claim = attributes.object
        annotated = peek(claim, "metadata", "annotations", "volume.beta.kubernetes.io/storage-class")
        if section(claim, "spec").get("storageClassName") is None and annotated is None:
            name = _default_of(self._classes, _STORAGE_MARKS)
            if name:
                claim["spec"]["storageClassName"] = name


@final
class DefaultIngressClass:
    """Mutates new ingresses."""

    def __init__(self, store: Store) -> None:
        self._classes = store.table("networking.k8s.io/ingressclasses")

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.resource.table == "networking.k8s.io/ingresses"
            and attributes.operation == "CREATE"
            and not attributes.subresource
        )

    async def mutate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        ingress = attributes.object
        annotated = peek(ingress, "metadata", "annotations", "kubernetes.io/ingress.class")
        if section(ingress, "spec").get("ingressClassName") is None and annotated is None:
            name = _default_of(self._classes, _INGRESS_MARKS)
            if name:
                ingress["spec"]["ingressClassName"] = name


def _default_of(classes: Table, annotations: tuple[str, ...]) -> str:
    """The newest of the classes marked as default; of two of the same age the first by name; empty without any."""
    trees = (decode_json(entry.value) for entry in classes.entries())
    marked = [c for c in trees if any(peek(c, "metadata", "annotations", name) == "true" for name in annotations)]
    marked.sort(key=lambda found: text(found, "metadata", "name"))
    marked.sort(key=lambda found: text(found, "metadata", "creationTimestamp"), reverse=True)
    return text(marked[0], "metadata", "name") if marked else ""
