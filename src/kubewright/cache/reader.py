"""CacheReader: get and list, answered from memory.

    reader.get(Pod, "web-0", namespace="shop")
    reader.list(Pod, namespace="shop", labels={"app": "web"})
    reader.list(Pod, index=("config", "limits"))

Every object is a private copy, yours to change; the cache cannot be corrupted through it. Reads never wait and never
start a watch: a kind has to be in use (`Cache.use`), and in sync for the answer to be complete. They show at least what
this process has written.
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
from kubewright.errors import ConfigError, DecodeError, NotFound

__all__ = ("CacheReader",)

K = TypeVar("K", bound=KubeObject)
Labels = str | Mapping[str, str] | Selector
Fields = str | Mapping[str, str] | FieldSelector


@final
class CacheReader:
    """Reads from informers."""

    def __init__(self, informer_of: Callable[[type[Any]], Informer[Any]]) -> None:
        self._informer_of = informer_of

    def get(self, kind: type[K], name: str | ObjectKey, *, namespace: str | None = None) -> K:  # hot
        """One object; NotFound if there is none."""
        informer: Informer[K] = self._informer_of(kind)
        key = name if isinstance(name, ObjectKey) else ObjectKey(namespace or "", name)
        if not key.namespace and namespace:
            key = ObjectKey(namespace, key.name)
        _check_namespace(informer, key.namespace)
        obj = informer.store.get(key)
        if obj is None:
            raise _not_found(informer, key)
        return obj

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
        """All objects that match, in order of namespace and name; of every namespace unless one is named.

        `fields` knows `metadata.name`, `metadata.namespace` and the names of indexes. An object that does not fit its
        class is left out; it has been reported.
        """
        informer: Informer[K] = self._informer_of(kind)
        _check_namespace(informer, namespace or "")
        store = informer.store
        labels_wanted = _label_selector(labels)
        fields_wanted = _field_selector(fields)
        conditions = [
            *_label_conditions(store, labels_wanted),
            *_field_conditions(store, fields_wanted),
            *([_index_keys(store, *index)] if index is not None else []),
        ]
        keys = _candidates(store, namespace, conditions)
        if not fields_wanted.selects_everything:
            keys = [key for key in keys if _meets_fields(store, key, fields_wanted)]
        if _needs_a_look(store, labels_wanted):
            keys = [key for key in keys if labels_wanted.matches(store.labels(key))]
        return ObjectList(_objects(store, sorted(keys), limit), ListMeta(resource_version=informer.resource_version))

    def keys(self, kind: type[KubeObject], *, index: tuple[str, str]) -> tuple[ObjectKey, ...]:
        """Which objects an index has under a value, without decoding any of them."""
        return tuple(sorted(_index_keys(self._informer_of(kind).store, *index)))


def _objects(store: Store[K], keys: Iterable[ObjectKey], limit: int | None) -> list[K]:
    found: list[K] = []
    for key in keys:
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
    """The keys that are in the namespace and in every set, found from the smallest of them."""
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
    """The keys that meet each requirement an index of the label can answer."""
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


def _needs_a_look(store: Store[Any], selector: Selector) -> bool:
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
            f"the cache of {store.kind.__name__} has no index {name!r} (there is: {known}); "
            "add it with add_index, or ask the server"
        )
    return index.keys(value)


def _meets_fields(store: Store[Any], key: ObjectKey, selector: FieldSelector) -> bool:
    for term in selector.terms:
        if term.field in ("metadata.name", "metadata.namespace"):
            held = (key.name if term.field == "metadata.name" else key.namespace) == term.value
        elif term.operator == "=":
            continue  # met already: the candidates came from this index
        else:
            held = key in _index_keys(store, term.field, term.value)
        if held != (term.operator == "="):
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


def _check_namespace(informer: Informer[Any], namespace: str) -> None:
    watched = informer.scope.namespaces
    if watched and namespace and namespace not in watched and definition_of(informer.kind).namespaced:
        raise ConfigError(
            f"the cache of {informer.kind.__name__} watches only the namespaces {', '.join(watched)}, not {namespace}; "
            "add it to the scope, or ask the server"
        )


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
