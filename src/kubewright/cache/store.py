"""Store: the objects of one kind in memory, as bytes, and the indexes over them; client-go's Indexer.

An object is kept as the bytes the server sent, less what the scope drops, and decoded when somebody reads it. That
takes a third of the memory of decoded objects, leaves the garbage collector nothing to walk, and makes every reader's
object a private copy: bytes cannot be changed. Names are in two levels of dictionaries, so that a namespace is listed
without an index.

One writer (`cache.overlay`), any number of readers, all on one event loop. No I/O.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar, final

import msgspec

from kubewright._base.deep_json import DeepDecoder
from kubewright.api.codec import decode, read
from kubewright.api.dynamic import PartialObjectMetadata
from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.cache.index import Index
from kubewright.cache.versions import Version
from kubewright.errors import ConfigError, DecodeError

__all__ = ("Entry", "Store", "metadata_in")

K = TypeVar("K", bound=KubeObject)

# Label indexes are built on demand. A program selects by a handful of label keys; one that makes up label keys as it
# goes gets scans instead of unbounded memory.
_MOST_LABEL_INDEXES = 16

_log = logging.getLogger("kubewright.cache")


@final
class Entry(msgspec.Struct, frozen=True, gc=False):
    """One object as it is kept."""

    version: Version
    uid: str
    data: bytes


class _Labels(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None


class _LabelsOnly(msgspec.Struct, gc=False):
    metadata: _Labels


_LABELS: DeepDecoder[_LabelsOnly] = DeepDecoder(_LabelsOnly)


def metadata_in(data: bytes) -> ObjectMeta:
    """The metadata of a kept object, without decoding the rest."""
    return decode(PartialObjectMetadata, data).metadata


@final
class Store(Generic[K]):
    """Keys to objects, with indexes."""

    def __init__(
        self,
        kind: type[K],
        *,
        partial: bool = False,
        on_malformed: Callable[[ObjectKey, DecodeError], None] | None = None,
    ) -> None:
        """`partial` says that only a part of each object is kept.

        `on_malformed` is called for every attempt to decode an object that does not fit its class.
        """
        self.kind = kind
        self._partial = partial
        self._on_malformed = on_malformed
        self._namespaces: dict[str, dict[str, Entry]] = {}
        self._count = 0
        self._bytes = 0
        self._functions: dict[str, Callable[[K], Iterable[str]]] = {}
        self._indexes: dict[str, Index] = {}
        self._label_indexes: dict[str, Index] = {}

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        """Bytes of all objects as they are kept."""
        return self._bytes

    # --- reading ---

    def get(self, key: ObjectKey) -> K | None:  # hot
        """A private copy of an object, or None."""
        entry = self.entry(key)
        return None if entry is None else self.decode(key, entry)

    def entry(self, key: ObjectKey) -> Entry | None:  # hot
        """An object as it is kept."""
        objects = self._namespaces.get(key.namespace)
        return None if objects is None else objects.get(key.name)

    def decode(self, key: ObjectKey, entry: Entry) -> K:  # hot
        """A kept object, decoded. What does not fit its class is a DecodeError that names it."""
        try:
            return read(self.kind, entry.data, partial=self._partial)
        except DecodeError as exc:
            if self._on_malformed is not None:
                self._on_malformed(key, exc)
            raise

    def labels(self, key: ObjectKey) -> dict[str, str]:
        """The labels of an object, alone."""
        entry = self.entry(key)
        return _labels_in(entry) if entry is not None else {}

    def keys(self, namespace: str | None = None) -> Iterator[ObjectKey]:
        """The keys of all objects, or of those in a namespace."""
        names = self._namespaces if namespace is None else (namespace,)
        for name in names:
            for object_name in self._namespaces.get(name, ()):
                yield ObjectKey(name, object_name)

    def items(self) -> Iterator[tuple[ObjectKey, Entry]]:
        """All objects as they are kept. The store is not to be changed meanwhile."""
        for namespace, objects in self._namespaces.items():
            for name, entry in objects.items():
                yield ObjectKey(namespace, name), entry

    def count(self, namespace: str | None = None) -> int:
        """How many objects there are, or are in a namespace."""
        return self._count if namespace is None else len(self._namespaces.get(namespace, ()))

    # --- writing ---

    def put(self, key: ObjectKey, entry: Entry) -> None:  # hot
        """Keep an object in the place of any that was there."""
        objects = self._namespaces.get(key.namespace)
        if objects is None:
            objects = self._namespaces[key.namespace] = {}
        old = objects.get(key.name)
        objects[key.name] = entry
        if old is None:
            self._count += 1
            self._bytes += len(entry.data)
        else:
            self._bytes += len(entry.data) - len(old.data)
        if self._indexes or self._label_indexes:
            self._index(key, entry)

    def remove(self, key: ObjectKey) -> Entry | None:
        """Remove an object; returns what was kept of it, if anything was."""
        objects = self._namespaces.get(key.namespace)
        entry = objects.pop(key.name, None) if objects is not None else None
        if entry is None:
            return None
        if not objects:
            del self._namespaces[key.namespace]
        self._count -= 1
        self._bytes -= len(entry.data)
        for index in (*self._indexes.values(), *self._label_indexes.values()):
            index.remove(key)
        return entry

    # --- indexes ---

    def add_index(self, name: str, function: Callable[[K], Iterable[str]]) -> None:
        """Index the objects, present and future, by the values a function returns for each."""
        if name in self._functions:
            if self._functions[name] is function:
                return
            raise ConfigError(
                f"{self.kind.__name__} has an index {name!r} already, by another function; give this one another name, "
                "or the same function in both places"
            )
        self._functions[name] = function
        index = self._indexes[name] = Index()
        for key, entry in self.items():
            index.put(key, self._values(name, key, self._decoded(key, entry)))

    def index(self, name: str) -> Index | None:
        """An index by its name."""
        return self._indexes.get(name)

    @property
    def index_names(self) -> tuple[str, ...]:
        """The names of all indexes that were added."""
        return tuple(self._indexes)

    def label_index(self, label: str) -> Index | None:
        """The index of a label's values, built when first used; None if there are too many already."""
        index = self._label_indexes.get(label)
        if index is None and len(self._label_indexes) < _MOST_LABEL_INDEXES:
            index = self._label_indexes[label] = Index()
            for key, entry in self.items():
                value = _labels_in(entry).get(label)
                if value is not None:
                    index.put(key, (value,))
        return index

    def _index(self, key: ObjectKey, entry: Entry) -> None:
        if self._indexes:
            obj = self._decoded(key, entry)  # once for all of them
            for name, index in self._indexes.items():
                index.put(key, self._values(name, key, obj))
        if self._label_indexes:
            labels = _labels_in(entry)
            for label, index in self._label_indexes.items():
                index.put(key, (labels[label],) if label in labels else ())

    def _decoded(self, key: ObjectKey, entry: Entry) -> K | None:
        try:
            return self.decode(key, entry)
        except DecodeError:  # reported already; an object that cannot be read has no values
            return None

    def _values(self, name: str, key: ObjectKey, obj: K | None) -> Iterable[str]:
        if obj is None:
            return ()
        try:
            return tuple(self._functions[name](obj))
        except Exception:
            # A user's function. Its mistake must not stop the watch that feeds everybody else.
            _log.exception("index %s of %s failed for %s; the object is not in it", name, self.kind.__name__, key)
            return ()


def _labels_in(entry: Entry) -> dict[str, str]:
    return _LABELS.decode(entry.data).metadata.labels or {}
