"""Scope: which objects of a kind are watched, and how much of each is kept.

The server filters by namespaces and selectors, so other objects cost neither network nor memory. The decoder cuts
managedFields and what is outside the projection before an object is stored. Locally the selectors are used only to
decide whether an object that this process wrote belongs into the cache (`in_scope`).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kubewright.api.codec import decode_tree
from kubewright.api.names import ObjectKey
from kubewright.api.selectors import FieldSelector, Selector
from kubewright.errors import ConfigError, DecodeError

__all__ = ("Scope", "in_scope")

_ALL: Final = ("*",)


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What to watch of a kind. The default is every object, whole but for its managedFields."""

    namespaces: tuple[str, ...] = ()
    """Only these, each with a watch of its own; none means those of the manager, and all if it names none; `("*",)`
    means all, whatever the manager says. Ignored for kinds that have no namespace."""
    labels: str = ""
    """A label selector, applied by the server."""
    fields: str = ""
    """A field selector, applied by the server."""
    projection: tuple[str, ...] | None = None
    """Dotted paths to keep, such as `spec.nodeName`; a list on the way is kept whole. Metadata is always kept."""
    keep_managed_fields: bool = False
    resync: float = 36000.0
    """Seconds between two local resyncs, give or take a tenth; 0 for none."""

    def __post_init__(self) -> None:
        for name in ("namespaces", "projection"):
            given: Any = getattr(self, name)
            if isinstance(given, str):
                raise ConfigError(f"a scope's {name} are several; write {name}=({given!r},)")
            if isinstance(given, list):
                msgspec.structs.force_setattr(self, name, tuple(given))  # it has to be hashable
        if "*" in self.namespaces and self.namespaces != _ALL:
            raise ConfigError("a scope's namespaces name some and all of them; leave out * or the others")
        for name in ("labels", "fields"):
            if not isinstance(getattr(self, name), str):
                raise ConfigError(f'a scope\'s {name} are text; write {name}="app=web,tier!=front"')
        try:
            Selector.parse(self.labels)
            FieldSelector.parse(self.fields)
        except DecodeError as exc:
            raise ConfigError(f"a scope's selector cannot be read: {exc}") from exc

    @property
    def is_selective(self) -> bool:
        """Whether it leaves out objects of the namespaces it sees."""
        return bool(self.labels or self.fields)

    def within(self, namespaces: tuple[str, ...], *, namespaced: bool = True) -> Scope:
        """The same with its namespaces resolved: of a kind that has any, those given if it names none itself."""
        resolved = (self.namespaces or namespaces) if namespaced else ()
        if resolved == _ALL:
            resolved = ()
        return self if resolved == self.namespaces else msgspec.structs.replace(self, namespaces=resolved)

    def __str__(self) -> str:
        parts = [f"namespaces {', '.join(self.namespaces)}" if self.namespaces else "all namespaces"]
        parts += [f"{name} {text}" for name, text in (("labels", self.labels), ("fields", self.fields)) if text]
        if self.projection is not None:
            parts.append(f"only {', '.join(self.projection)}" if self.projection else "only metadata")
        return ", ".join(parts)


def in_scope(scope: Scope, key: ObjectKey, data: bytes) -> bool:
    """Whether a watch of this scope shows this object."""
    if scope.namespaces and key.namespace and key.namespace not in scope.namespaces:
        return False
    if not scope.labels and not scope.fields:
        return True
    tree = decode_tree(data)
    labels = (tree.get("metadata") or {}).get("labels") or {}
    if scope.labels and not Selector.parse(scope.labels).matches(labels):
        return False
    return not scope.fields or FieldSelector.parse(scope.fields).matches(lambda path: _field(tree, path))


def _field(tree: Any, path: str) -> str | None:
    """A field as a field selector sees it: the text of the scalar at a path."""
    value = tree
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    if value is None or isinstance(value, dict | list):
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
