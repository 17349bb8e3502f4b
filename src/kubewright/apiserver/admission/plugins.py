"""The admission every kube-apiserver has switched on: service accounts, priorities, tolerations, limits, classes.

What they do is in `builtin.admission`; this judge asks them at the right moment and looks up other objects for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.admission.object_plugins import admit, check
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.kinds.resources import Tree, key_of
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("Lookup", "ObjectPlugins")


@final
class Lookup:
    """Objects by kind, straight from the store."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> Tree | None:
        """The object, or None."""
        resource = self._catalog.of_kind(gvk)
        entry = None if resource is None else self._store.table(resource.table).get(key_of(namespace, name))
        return None if entry is None else decode_json(entry.value)

    def list(self, gvk: GroupVersionKind, namespace: str = "") -> Iterable[Tree]:
        """All objects of a kind."""
        resource = self._catalog.of_kind(gvk)
        if resource is not None:
            for entry in self._store.table(resource.table).entries(namespace or None):
                yield decode_json(entry.value)


@final
class ObjectPlugins:
    """The judge for built-in kinds."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def handles(self, attributes: Attributes) -> bool:
        return attributes.object is not None and not attributes.resource.custom and attributes.verb != "CONNECT"

    async def mutate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        admit(
            attributes.resource.kind,
            attributes.object,
            self._lookup,
            old=attributes.old,
            subresource=attributes.subresource,
        )

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        check(
            attributes.resource.kind,
            attributes.object,
            self._lookup,
            old=attributes.old,
            subresource=attributes.subresource,
        )
