"""Mappers: from a changed object to the keys to enqueue. The object itself, its owner, or what a function returns.

A mapper sees the whole change, old and new: when an object moves from one owner to another, both are enqueued. Pure;
called by `sources`. `by_index` and `to_all` read the cache, which `controller` gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, final

import msgspec

from kubewright.api.kinds import GroupVersion
from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.changes import Change
from kubewright.cache.reader import CacheReader
from kubewright.controllers.option_checks import check_functions
from kubewright.errors import ConfigError

__all__ = ("ByIndex", "Mapper", "ToAll", "by_index", "for_each", "to_all", "to_owner", "to_self")

K = TypeVar("K", bound=KubeObject)
Mapper = Callable[[Change[Any]], Iterable[ObjectKey]]
"""Returns the keys to enqueue for a change. Called on the event loop: look things up in the cache, do not wait."""


def to_self(change: Change[Any]) -> Iterable[ObjectKey]:
    """The object that changed."""
    return (change.key,)


def to_owner(kind: type[KubeObject], *, controller_only: bool = True) -> Mapper:
    """The owners of that kind, in any version; before and after the change."""
    definition = definition_of(kind)
    group, name, namespaced = definition.gvk.group, definition.kind, definition.namespaced

    def owners(metadata: ObjectMeta | None) -> Iterable[ObjectKey]:
        if metadata is None:
            return
        for reference in metadata.owner_references:
            if reference.kind != name or (controller_only and not reference.controller):
                continue
            if GroupVersion.parse(reference.api_version).group == group:
                yield ObjectKey(metadata.namespace if namespaced else "", reference.name)

    def mapper(change: Change[Any]) -> Iterable[ObjectKey]:
        return {*owners(change.old_metadata), *owners(change.new_metadata)}

    return mapper


def for_each(function: Callable[[Any], Iterable[ObjectKey]]) -> Mapper:
    """A mapper from a function of one object: called with the old and with the new state."""
    if not callable(function):
        raise ConfigError(
            f"for_each({function!r}): give a function that gets an object and returns the keys to reconcile"
        )

    def mapper(change: Change[Any]) -> Iterable[ObjectKey]:
        return {key for state in (change.old, change.new) if state is not None for key in function(state)}

    return mapper


@final
class ByIndex(msgspec.Struct, frozen=True):
    """A mapper through an index of the controller's own kind; see `by_index`."""

    index: str
    values: Callable[[Any], Iterable[str]]
    everywhere: bool = False

    def bind(self, reader: CacheReader, kind: type[KubeObject]) -> Mapper:
        """The mapper, bound to the cache that has the index."""
        same_namespace = definition_of(kind).namespaced and not self.everywhere

        def users(obj: KubeObject) -> Iterable[ObjectKey]:
            namespace = obj.metadata.namespace if same_namespace else ""
            for value in self.values(obj):
                keys = reader.keys(kind, index=(self.index, value))
                yield from (key for key in keys if not namespace or key.namespace == namespace)

        return for_each(users)


@final
class ToAll(msgspec.Struct, frozen=True):
    """A mapper to all objects of the controller's own kind; see `to_all`."""

    same_namespace: bool = False

    def bind(self, reader: CacheReader, kind: type[KubeObject]) -> Mapper:
        """The mapper, bound to the cache that has the objects."""

        def mapper(change: Change[Any]) -> Iterable[ObjectKey]:
            return reader.keys(kind, namespace=change.key.namespace if self.same_namespace else None)

        return mapper


def _name(obj: KubeObject) -> Iterable[str]:
    return (obj.metadata.name,)


def by_index(index: str, values: Callable[[Any], Iterable[str]] = _name, *, everywhere: bool = False) -> ByIndex:
    """A mapper to the objects that an index of the controller's own kind has under the changed object's name.

        @controller(Web, indexes={"config": config_names}, watches=[(ConfigMap, by_index("config"))])

    `values` returns other values to look up. Only objects in the changed object's namespace are enqueued, unless
    `everywhere` is set: then the values must tell namespaces apart, as `str(config.key)` does.
    """
    check_functions("by_index", "it", {index: values})
    return ByIndex(index, values, everywhere)


def to_all(*, same_namespace: bool = False) -> ToAll:
    """A mapper to all objects of the controller's own kind, such as for settings that all of them use.

        settings = Scope(namespaces=("shop-system",), fields="metadata.name=settings")

        @controller(Shop, watches=[Watch(ConfigMap, to_all(), scope=settings)])

    With `same_namespace`, to all in the namespace of the object that changed. They are reconciled with low priority, as
    after a resync: an edit made meanwhile does not wait for them. For those that name the changed object, see
    `by_index`.
    """
    return ToAll(same_namespace)
