"""CacheReader: get and list from the informers' stores.

    reader.get(Pod, "web-0", namespace="shop")
    reader.list(Pod, namespace="shop", labels={"app": "web"})
    reader.list(Pod, index=("config", "limits"))

Every object is a private copy, yours to change; the cache cannot be corrupted through it. Reads never wait and never
start a watch: a kind has to be in use (`Cache.use`), and in sync for the answer to be complete. They are never older
than this process's own writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar, final

from kubewright.api.metadata import ListMeta
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject, definition_of
from kubewright.api.selectors import FieldSelector, Requirement, Selector
from kubewright.cache.informer import Informer
from kubewright.cache.store import Store
from kubewright.client.lists import ObjectList
from kubewright.client.routes import ALL_NAMESPACES
from kubewright.errors import ConfigError, DecodeError, NotFound

__all__ = ("CacheReader",)

K = TypeVar("K", bound=KubeObject)
Labels = str | Mapping[str, str] | Selector
Fields = str | Mapping[str, str] | FieldSelector


@final
class CacheReader:
    """Reads from informers."""

    def __init__(self, informers_of: Callable[[type[Any]], tuple[Informer[Any], ...]]) -> None:
        """`informers_of` returns those of a kind that are in use: one or, of different namespaces, several."""
        self._informers_of = informers_of

    def watches(self, kind: type[KubeObject]) -> bool:  # hot
        """Whether a kind is watched and in sync, so that it can be read."""
        informers = self._informers_of(kind)
        for informer in informers:
            if not informer.synced:
                return False
        return bool(informers)

    def informer_for(self, kind: type[K], namespace: str) -> Informer[K] | None:
        """The informer that watches a namespace, if any does."""
        for informer in self._informers_of(kind):
            if _watches(informer, namespace):
                return informer
        return None

    def get(self, kind: type[K], name: str | ObjectKey, *, namespace: str | None = None) -> K:  # hot
        """One object; NotFound if there is none."""
        key = name if isinstance(name, ObjectKey) else ObjectKey(namespace or "", name)
        if not key.namespace and namespace:
            key = ObjectKey(namespace, key.name)
        informer: Informer[K] = self._one(kind, key.namespace)
        obj = informer.store.get(key)
        if obj is None:
            raise _not_found(informer, key)
        return obj

    def has(self, kind: type[KubeObject], key: ObjectKey) -> bool:
        """Whether there is such an object."""
        return any(informer.store.entry(key) is not None for informer in self._all(kind))

    def list(
        self,
        kind: type[K],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        index: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> ObjectList[K]:
        """All objects that match, in order of namespace and name.

        Of every namespace unless one is named; `namespace="*"` is all as well. `fields` supports `metadata.name`,
        `metadata.namespace` and the names of indexes. An object that does not fit its class is left out; the informer
        has reported it.
        """
        namespace = None if namespace in ("", ALL_NAMESPACES) else namespace
        informers = (self._one(kind, namespace),) if namespace else self._all(kind)
        labels_wanted = _label_selector(labels)
        fields_wanted = _field_selector(fields)
        found: list[tuple[ObjectKey, Store[K]]] = []
        for informer in informers:
            keys = _matching(informer.store, namespace, labels_wanted, fields_wanted, index)
            found += [(key, informer.store) for key in keys]
        found.sort(key=_key_of)
        version = informers[0].resource_version if len(informers) == 1 else ""
        return ObjectList(_objects(found, limit), ListMeta(resource_version=version))

    def keys(
        self, kind: type[KubeObject], *, namespace: str | None = None, index: tuple[str, str] | None = None
    ) -> tuple[ObjectKey, ...]:
        """The keys of all objects, or of those in a namespace or under a value of an index; none is decoded."""
        found: list[ObjectKey] = []
        for informer in self._all(kind):
            keys = informer.store.keys() if index is None else _index_keys(informer.store, *index)
            found += [key for key in keys if not namespace or key.namespace == namespace]
        return tuple(sorted(found))

    def _all(self, kind: type[K]) -> tuple[Informer[K], ...]:
        informers = self._informers_of(kind)
        if not informers:
            raise ConfigError(f"{kind.__name__} is not watched; enter cache.use({kind.__name__}), or read it live")
        return informers

    def _one(self, kind: type[K], namespace: str) -> Informer[K]:  # hot
        informers = self._all(kind)
        for informer in informers:
            if _watches(informer, namespace):
                return informer
        watched = ", ".join(name for informer in informers for name in informer.scope.namespaces)
        raise ConfigError(
            f"the cache of {kind.__name__} watches only the namespaces {watched}, not {namespace}; "
            "name one of those, add it to the scope, or read it live"
        )


def _matching(
    store: Store[K], namespace: str | None, labels: Selector, fields: FieldSelector, index: tuple[str, str] | None
) -> list[ObjectKey]:
    conditions = [
        *_label_conditions(store, labels),
        *_field_conditions(store, fields),
        *([_index_keys(store, *index)] if index is not None else []),
    ]
    keys = _candidates(store, namespace, conditions)
    if not fields.selects_everything:
        keys = [key for key in keys if _matches_fields(store, key, fields)]
    if _needs_label_check(store, labels):
        keys = [key for key in keys if labels.matches(store.labels(key))]
    return keys


def _key_of(found: tuple[ObjectKey, Store[Any]]) -> ObjectKey:
    return found[0]


def _watches(informer: Informer[Any], namespace: str) -> bool:  # hot
    watched = informer.scope.namespaces
    return not watched or not namespace or namespace in watched or not informer.namespaced


def _objects(keys: Iterable[tuple[ObjectKey, Store[K]]], limit: int | None) -> list[K]:
    found: list[K] = []
    for key, store in keys:
        if limit is not None and len(found) >= limit:
            break
        try:
            obj = store.get(key)
        except DecodeError:  # reported by the store
            continue
        if obj is not None:
            found.append(obj)
    return found


def _candidates(store: Store[Any], namespace: str | None, conditions: list[AbstractSet[ObjectKey]]) -> list[ObjectKey]:
    """The keys that are in the namespace and in every set, starting from the smallest set."""
    smallest = min(conditions, key=len, default=None)
    if smallest is None or (namespace is not None and store.count(namespace) < len(smallest)):
        return [key for key in store.keys(namespace) if all(key in keys for keys in conditions)]
    others = [keys for keys in conditions if keys is not smallest]
    return [
        key
        for key in smallest
        if (namespace is None or key.namespace == namespace) and all(key in keys for keys in others)
    ]


def _label_conditions(store: Store[Any], selector: Selector) -> list[AbstractSet[ObjectKey]]:
    """For each requirement that an index of the label can answer, the keys that meet it."""
    if selector.selects_nothing:
        return [frozenset()]
    found: list[AbstractSet[ObjectKey]] = []
    for requirement in selector.requirements:
        index = store.label_index(requirement.key) if _can_be_indexed(requirement) else None
        if index is None:
            continue
        if requirement.operator == "exists":
            found.append(index.indexed())
        elif len(requirement.values) == 1:
            found.append(index.keys(requirement.values[0]))
        else:
            found.append({key for value in requirement.values for key in index.keys(value)})
    return found


def _can_be_indexed(requirement: Requirement) -> bool:
    return requirement.operator in ("=", "==", "in", "exists")


def _needs_label_check(store: Store[Any], selector: Selector) -> bool:
    """Whether some requirement has to be checked object by object."""
    return any(
        not _can_be_indexed(requirement) or store.label_index(requirement.key) is None
        for requirement in selector.requirements
    )


def _field_conditions(store: Store[Any], selector: FieldSelector) -> list[AbstractSet[ObjectKey]]:
    return [
        _index_keys(store, term.field, term.value)
        for term in selector.terms
        if term.operator == "=" and not term.field.startswith("metadata.n")
    ]


def _index_keys(store: Store[Any], name: str, value: str) -> AbstractSet[ObjectKey]:
    index = store.index(name)
    if index is None:
        known = ", ".join(store.index_names) or "none"
        raise ConfigError(
            f"the cache of {store.kind.__name__} has no index {name!r} (there is: {known}); declare it with indexes= "
            "of @controller, Owned or Watch, or add_index of the informer, or read it live"
        )
    return index.keys(value)


def _matches_fields(store: Store[Any], key: ObjectKey, selector: FieldSelector) -> bool:
    for term in selector.terms:
        if term.field in ("metadata.name", "metadata.namespace"):
            equal = (key.name if term.field == "metadata.name" else key.namespace) == term.value
        elif term.operator == "=":
            continue  # matches already: the candidates came from this index
        else:
            equal = key in _index_keys(store, term.field, term.value)
        if equal != (term.operator == "="):
            return False
    return True


def _label_selector(labels: Labels | None) -> Selector:
    if labels is None:
        return Selector.everything()
    if isinstance(labels, Selector):
        return labels
    return Selector.parse(labels) if isinstance(labels, str) else Selector.of(labels)


def _field_selector(fields: Fields | None) -> FieldSelector:
    if fields is None:
        return FieldSelector()
    if isinstance(fields, FieldSelector):
        return fields
    return FieldSelector.parse(fields) if isinstance(fields, str) else FieldSelector.of(fields)


def _not_found(informer: Informer[Any], key: ObjectKey) -> NotFound:
    definition = definition_of(informer.kind)
    note = "" if informer.synced else " (the cache is not in sync yet)"
    resource = f"{definition.plural}.{definition.gvk.group}" if definition.gvk.group else definition.plural
    return NotFound(
        f'{resource} "{key}" not found in the cache{note}',
        code=404,
        reason="NotFound",
        details={"name": key.name, "group": definition.gvk.group, "kind": definition.plural},
    )
