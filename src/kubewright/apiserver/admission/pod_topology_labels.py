"""The PodTopologyLabels plugin: a pod is labelled with the zone and the region of the node it is bound to.

kube-apiserver: plugin/pkg/admission/podtopologylabels/admission.go. The labels of a Binding are copied to the pod when
it is bound (`verbs.subresources`).
"""

from __future__ import annotations

from typing import Final, final

from kubewright.apiserver.builtin.trees import Tree, peek, section, text
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("PodTopologyLabels",)

_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


@final
class PodTopologyLabels:
    """Mutates Bindings, and new pods that name their node."""

    def __init__(self, store: Store) -> None:
        self._nodes = store.table("/nodes")

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.resource.table == "/pods"
            and attributes.operation == "CREATE"
            and attributes.subresource in ("", "binding")
        )

    async def mutate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        tree = attributes.object
        if not attributes.subresource:
            self._label(tree, text(tree, "spec", "nodeName"))
        elif peek(tree, "target", "kind") == "Node":
            self._label(tree, text(tree, "target", "name"))

    def _label(self, tree: Tree, node: str) -> None:
        entry = self._nodes.get(node) if node else None
        if entry is None:
            return
        labels = peek(decode_json(entry.value), "metadata", "labels") or {}
        found = {name: labels[name] for name in _LABELS if name in labels}
        if found:
            metadata = section(tree, "metadata")
            metadata["labels"] = {**(metadata.get("labels") or {}), **found}
