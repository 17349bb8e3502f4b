"""Index: from a value to the keys of the objects that have it.

The store calls the index function; this keeps both directions, so that an update removes the old values without
computing them again. A value without objects is not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import final

from kubewright.api.names import ObjectKey

__all__ = ("Index",)

_NONE: frozenset[ObjectKey] = frozenset()


@final
class Index:
    """One way to look objects up."""

    __slots__ = ("_keys", "_values")

    def __init__(self) -> None:
        self._keys: dict[str, set[ObjectKey]] = {}
        self._values: dict[ObjectKey, tuple[str, ...]] = {}

    def put(self, key: ObjectKey, values: Iterable[str]) -> None:
        """The object now has these values and no others."""
        new = tuple(dict.fromkeys(values))
        old = self._values.get(key, ())
        if new == old:
            return
        self._forget(key, old)
        if not new:
            self._values.pop(key, None)
            return
        self._values[key] = new
        for value in new:
            self._keys.setdefault(value, set()).add(key)

    def remove(self, key: ObjectKey) -> None:
        """The object is gone."""
        self._forget(key, self._values.pop(key, ()))

    def keys(self, value: str) -> Set[ObjectKey]:
        """The objects that have this value; not to be changed or kept."""
        return self._keys.get(value, _NONE)

    def has(self, key: ObjectKey, value: str) -> bool:
        """Whether the object has this value."""
        return value in self._values.get(key, ())

    def indexed(self) -> Set[ObjectKey]:
        """The objects that have any value."""
        return self._values.keys()

    def values(self) -> tuple[str, ...]:
        """Every value some object has."""
        return tuple(self._keys)

    def _forget(self, key: ObjectKey, values: tuple[str, ...]) -> None:
        for value in values:
            keys = self._keys[value]
            keys.discard(key)
            if not keys:
                del self._keys[value]
