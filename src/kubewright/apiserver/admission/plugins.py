"""The admission every kube-apiserver has switched on: service accounts, priorities, tolerations, limits, classes.

What they do is in `builtin.admission`; this judge asks them at the right moment and looks up other objects for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.admission.object_plugins import admit, check
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.admission import Operation
from kubewright.apiserver.kinds.resources import Tree, key_of
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("Lookup", "Plugins")


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
class Plugins:
    """The judge for built-in kinds."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def concerns(self, operation: Operation) -> bool:
        return operation.object is not None and not operation.resource.custom and operation.verb != "CONNECT"

    async def mutate(self, operation: Operation) -> None:
        assert operation.object is not None
        admit(
            operation.resource.kind,
            operation.object,
            self._lookup,
            old=operation.old,
            subresource=operation.subresource,
        )

    async def validate(self, operation: Operation) -> None:
        assert operation.object is not None
        check(
            operation.resource.kind,
            operation.object,
            self._lookup,
            old=operation.old,
            subresource=operation.subresource,
        )
