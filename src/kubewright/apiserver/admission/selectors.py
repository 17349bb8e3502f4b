"""The namespace and object selectors of webhooks and policies."""

from __future__ import annotations

from typing import Any, final

from kubewright.api.kinds import GroupResource
from kubewright.api.selectors import Selector
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.status_errors import not_found

__all__ = ("NamespaceLookup", "labels_match")

_TABLE = "/namespaces"


@final
class NamespaceLookup:
    """Finds the namespace of a write."""

    def __init__(self, store: Store) -> None:
        self._table = store.table(_TABLE)

    def selected(self, attributes: Attributes, selector: Selector | None) -> bool:
        """Whether a namespace selector matches a write; cluster-scoped objects always match."""
        if selector is None:
            return True
        if attributes.resource.table == _TABLE:
            if not attributes.subresource and attributes.object is not None:
                return selector.matches(_labels(attributes.object))
            name = attributes.name
        else:
            name = attributes.namespace
        if not name:
            return True
        found = self.find(name)
        if found is None:
            raise not_found(GroupResource("", "namespaces"), name)
        return selector.matches(_labels(found))

    def find(self, name: str) -> Tree | None:
        """A namespace by its name."""
        entry = self._table.get(name)
        return None if entry is None else decode_json(entry.value)


def labels_match(attributes: Attributes, selector: Selector | None) -> bool:
    """Whether an object selector matches the new or the old object of a write."""
    if selector is None:
        return True
    return any(tree is not None and selector.matches(_labels(tree)) for tree in (attributes.object, attributes.old))


def _labels(tree: Tree) -> dict[str, Any]:
    return (tree.get("metadata") or {}).get("labels") or {}
