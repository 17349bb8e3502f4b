"""Correlation: which part of an old object corresponds to a part of the new one (apiserver: CorrelatedObject).

Fields correlate by name, items of a `map` list by their keys, everything else not at all (apiserver:
pkg/cel/common/equality.go). `check.error_finder` uses it for ratcheting, the CEL rules of CRDs for `oldSelf`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from kubewright.schema.check.equality import deep_equal

__all__ = ("Correlation",)


@final
class Correlation:
    """A new value, the old value, and the schema of both."""

    __slots__ = ("_children", "_equal", "_items", "new", "old", "schema")

    def __init__(self, new: Any, old: Any, schema: Mapping[str, Any]) -> None:
        self.new = new
        self.old = old
        self.schema = schema
        self._children: dict[str | int, Correlation | None] = {}
        self._items: dict[Any, Any] | None = None
        self._equal: bool | None = None

    def key(self, name: str) -> Correlation | None:
        """The field of this name, if both have it and the schema knows it."""
        if name not in self._children:
            self._children[name] = self._field(name)
        return self._children[name]

    def index(self, position: int) -> Correlation | None:
        """The item at this index of the new list, if the old list has an item with the same keys."""
        if position not in self._children:
            self._children[position] = self._item(position)
        return self._children[position]

    def unchanged(self) -> bool:
        """Whether old and new are equal; a map list may have its items in another order."""
        if self._equal is None:
            self._equal = self._compare()
        return self._equal

    def _field(self, name: str) -> Correlation | None:
        if not isinstance(self.old, dict) or not isinstance(self.new, dict):
            return None
        if name not in self.old or name not in self.new:
            return None
        schema = (self.schema.get("properties") or {}).get(name)
        if schema is None:
            schema = self.schema.get("additionalProperties")
        return Correlation(self.new[name], self.old[name], schema) if isinstance(schema, Mapping) else None

    def _item(self, position: int) -> Correlation | None:
        if not isinstance(self.old, list) or not isinstance(self.new, list) or position >= len(self.new):
            return None
        schema = self.schema.get("items")
        if self.schema.get("x-kubernetes-list-type") != "map" or not isinstance(schema, Mapping):
            return None
        keys = self.schema.get("x-kubernetes-list-map-keys") or ()
        if self._items is None:
            self._items = {}
            for item in self.old:
                if (key := _key_of(item, keys)) is not None:
                    self._items.setdefault(key, item)
        key = _key_of(self.new[position], keys)
        old = self._items.get(key) if key is not None else None
        return Correlation(self.new[position], old, schema) if old is not None else None

    def _compare(self) -> bool:
        new, old = self.new, self.old
        if isinstance(new, list) and isinstance(old, list):
            if len(new) != len(old):
                return False
            if self.schema.get("x-kubernetes-list-type") != "map":
                return deep_equal(new, old)
            items = [self.index(position) for position in range(len(new))]
            return all(item is not None and item.unchanged() for item in items)
        if isinstance(new, dict) and isinstance(old, dict):
            if len(new) != len(old):
                return False
            fields = [self.key(name) for name in new]
            return all(field is not None and field.unchanged() for field in fields)
        return deep_equal(new, old)


def _key_of(item: Any, keys: Any) -> tuple[tuple[type, Any], ...] | None:
    if not isinstance(item, dict) or not keys:
        return None
    found = tuple((type(item.get(key)), item.get(key)) for key in keys)
    return found if all(kind in (str, int, float, bool) for kind, _ in found) else None
