"""Scheme: from a kind to its class and back (apimachinery: runtime.Scheme).

Explicit, no global state: a scheme knows a class that was added, or that one of its finders (the built-in kinds have
one) can import. Used where only `apiVersion` and `kind` tell what an object is: manifests, admission reviews, owner
references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kubewright.api.codec import decode, decode_tree, encode_tree
from kubewright.api.dynamic import Dynamic
from kubewright.api.kinds import GroupVersion, GroupVersionKind
from kubewright.api.resource import KubeObject, definition_of
from kubewright.errors import ConfigError, DecodeError

__all__ = ("Finder", "Scheme")

Finder = Callable[[GroupVersionKind], type[KubeObject] | None]
"""Finds the class of a kind, importing it if necessary."""


class Scheme:
    """A registry of kinds."""

    def __init__(self, kinds: Iterable[type[KubeObject]] = (), *, finders: Iterable[Finder] = ()) -> None:
        self._classes: dict[GroupVersionKind, type[KubeObject]] = {}
        self._finders = tuple(finders)
        for kind in kinds:
            self.add(kind)

    def add(self, kind: type[KubeObject]) -> type[KubeObject]:
        """Register a class; usable as a decorator. A second class for the same kind is a ConfigError."""
        gvk = definition_of(kind).gvk
        present = self._classes.get(gvk)
        if present is not None and present is not kind:
            raise ConfigError(f"{gvk} is registered as {present.__qualname__} already; remove one of the two classes")
        self._classes[gvk] = kind
        return kind

    def find(self, gvk: GroupVersionKind) -> type[KubeObject] | None:
        """The class of a kind, or None."""
        known = self._classes.get(gvk)
        if known is not None:
            return known
        for finder in self._finders:
            found = finder(gvk)
            if found is not None:
                self._classes[gvk] = found
                return found
        return None

    def class_for(self, gvk: GroupVersionKind) -> type[KubeObject]:
        """The class of a kind; a `Dynamic` one if there is none."""
        return self.find(gvk) or Dynamic(gvk.api_version, gvk.kind)

    def kind_of(self, obj: KubeObject | type[KubeObject]) -> GroupVersionKind:
        """The kind of an object or class."""
        return definition_of(obj if isinstance(obj, type) else type(obj)).gvk

    def decode(self, data: bytes) -> KubeObject:
        """An object from its JSON, by its apiVersion and kind."""
        return self.from_tree(decode_tree(data))

    def from_tree(self, tree: Any) -> KubeObject:
        """An object from plain data, such as one document of a YAML file."""
        if not isinstance(tree, dict):
            raise DecodeError(f"expected an object with apiVersion and kind, got {type(tree).__name__}")
        api_version, kind = tree.get("apiVersion"), tree.get("kind")
        if not isinstance(api_version, str) or not api_version:
            raise DecodeError("apiVersion is missing: every object has apiVersion and kind")
        if not isinstance(kind, str) or not kind:
            raise DecodeError(f"kind is missing in an object of {api_version}: every object has apiVersion and kind")
        version = GroupVersion.parse(api_version)
        return decode(self.class_for(GroupVersionKind(version.group, version.version, kind)), encode_tree(tree))

    def __iter__(self) -> Iterator[type[KubeObject]]:
        return iter(self._classes.values())

    def __len__(self) -> int:
        return len(self._classes)

    def __contains__(self, gvk: object) -> bool:
        return isinstance(gvk, GroupVersionKind) and self.find(gvk) is not None
