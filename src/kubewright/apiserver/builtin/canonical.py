"""Brings an object of a built-in kind into the encoding that Go's types give it.

kube-apiserver decodes objects into structs and encodes them again, so an empty list and no list, or `hostNetwork:
false` and nothing, become the same: a field with omitempty is left out if empty, one without is always there
(`resources: {}`, `status: {}`, `rules: null`). `defaults` and `preparation` end with it, so that everything after them
(managedFields, validation, the comparison with the stored object) sees one encoding.

`golang.decoder` has made quantities and times canonical before. Unknown fields are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.golang.types import GoField, fields_of, kind_type, named_type
from kubewright.apiserver.builtin.trees import Tree

__all__ = ("canonicalize",)

# Structs that are one value in JSON, and the JSON of their zero value.
_VALUES: Final[dict[str, Any]] = {
    "Duration": "0s",
    "FieldsV1": None,
    "IntOrString": 0,
    "MicroTime": None,
    "Quantity": "0",
    "RawExtension": None,
    "Time": None,
}
_ZEROS: Final[dict[str, Any]] = {"bool": False, "string": ""}
# The field manager writes these entries, already in Go's encoding.
_OPAQUE: Final = "ManagedFieldsEntry"


def canonicalize(gvk: GroupVersionKind, obj: Tree) -> None:  # hot
    """Bring an object into Go's encoding, in place. Kinds that are not built in are left alone."""
    walker = _walker_of_kind(gvk)
    if walker is not None:
        walker.walk(obj)


@cache
def _walker_of_kind(gvk: GroupVersionKind) -> _Walker | None:
    struct = kind_type(gvk)
    return _walker(struct) if struct is not None else None


@cache
def _walker(struct: str) -> _Walker:
    return _Walker(struct)


@final
class _Walker:
    """The rules of the fields of one struct, compiled on first use."""

    __slots__ = ("_always", "_ready", "_rules", "_struct")

    def __init__(self, struct: str) -> None:
        self._struct = struct
        self._ready = False
        self._always: tuple[tuple[str, Any], ...] = ()
        self._rules: dict[str, _Rule] = {}

    def walk(self, tree: Tree) -> None:  # hot
        if not self._ready:
            self._compile()
        rules = self._rules
        dropped: list[str] | None = None
        for name, value in tree.items():
            rule = rules.get(name)
            if rule is None:
                continue
            if value is None or (not value and rule.drops_empty):
                if dropped is None:
                    dropped = [name]
                else:
                    dropped.append(name)
            elif rule.inside is not None:
                rule.inside(value)
        if dropped is not None:
            for name in dropped:
                del tree[name]
        for name, zero in self._always:
            if name not in tree:
                tree[name] = zero() if callable(zero) else zero

    def empty(self) -> Tree:
        """The JSON of the zero value of the struct."""
        tree: Tree = {}
        self.walk(tree)
        return tree

    def _compile(self) -> None:
        fields = [field for field in fields_of(self._struct) or () if field.json]
        self._rules = {field.json: _rule(field) for field in fields}
        self._always = tuple(
            (field.json, self._rules[field.json].zero) for field in fields if _is_always_encoded(field)
        )
        self._ready = True


@final
class _Rule:
    """The rule of one field: whether an empty value is dropped, its zero value in JSON, the walker of its content."""

    __slots__ = ("drops_empty", "inside", "zero")

    def __init__(self, *, drops_empty: bool, zero: Any = None, inside: Callable[[Any], None] | None = None) -> None:
        self.drops_empty = drops_empty
        self.zero = zero
        self.inside = inside


def _rule(field: GoField) -> _Rule:
    kind = _underlying_type(field.type)
    if kind.startswith("*"):
        # A pointer to an empty or zero value stays: `emptyDir: {}` and `replicas: 0` mean something.
        part = _part(kind[1:])
        return _Rule(drops_empty=False, inside=part.walk if part else None)
    if kind == "[]byte":
        return _Rule(drops_empty=field.omits_empty)
    if kind.startswith("[]"):
        # Protobuf, in which kube-apiserver stores, has no empty list: without omitempty it reads back as null.
        return _Rule(drops_empty=True, inside=_each(_part(kind[2:])))
    if kind.startswith("map["):
        return _Rule(drops_empty=True, inside=_each_value(_part(kind.partition("]")[2])))
    part = _part(kind)
    if part is not None:
        return _Rule(drops_empty=False, zero=part.empty, inside=part.walk)
    word = kind.rpartition(".")[2]
    if word in _VALUES:
        return _Rule(drops_empty=False, zero=_VALUES[word])
    return _Rule(drops_empty=field.omits_empty, zero=_ZEROS.get(kind, 0))


def _is_always_encoded(field: GoField) -> bool:
    if not field.omits_empty:
        return not field.omits_zero
    # omitempty has no effect on a struct by value.
    kind = _underlying_type(field.type)
    by_value = _part(kind) is not None or kind.rpartition(".")[2] in _VALUES
    return by_value and not kind.startswith(("*", "[", "map[")) and not field.omits_zero


def _underlying_type(kind: str) -> str:
    """The underlying type of a named one, such as the map of a ResourceList."""
    target = named_type(kind)
    return kind if target is None else _underlying_type(target)


def _part(kind: str) -> _Walker | None:
    """The walker of a struct; None for anything that is one value in JSON."""
    kind = _underlying_type(kind)
    if kind.rpartition(".")[2] in (*_VALUES, _OPAQUE):
        return None
    return _walker(kind) if fields_of(kind) is not None else None


def _each(part: _Walker | None) -> Callable[[Any], None] | None:
    if part is None:
        return None
    walk = part.walk

    def walk_items(value: Any) -> None:
        for item in value:
            walk(item)

    return walk_items


def _each_value(part: _Walker | None) -> Callable[[Any], None] | None:
    if part is None:
        return None
    walk = part.walk

    def walk_values(value: Any) -> None:
        for item in value.values():
            walk(item)

    return walk_values
