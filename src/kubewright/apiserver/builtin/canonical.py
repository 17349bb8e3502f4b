"""The form in which the API server stores and shows an object of a built-in kind.

Two clients may say the same in different words: an empty list or no list, `hostNetwork: false` or nothing. The server
shows one form, by the declaration of its types: what is empty and optional is left out, what is never left out is there
(`resources: {}`, `status: {}`, `rules: null`). `defaults` and `strategies` end with it, so that what follows (managed
fields, validation, the comparison with the stored object) sees one form only.

Quantities and times are made canonical earlier, when the body is checked (`validation.shape`). Fields no type knows
are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.golang.types import GoField, fields_of, kind_type, named_type
from kubewright.apiserver.builtin.trees import Tree

__all__ = ("canonicalize",)

# Types that are structs to the server and single values on the wire, and how they look when nobody set them.
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
# Written by the server itself, in this form already.
_FINISHED: Final = "ManagedFieldsEntry"


def canonicalize(gvk: GroupVersionKind, obj: Tree) -> None:  # hot
    """Bring the object into the form the server shows; changes it in place. Other kinds are left alone."""
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
    """How the fields of one struct are treated; made once, when first met."""

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
        """What stands for a part that nobody set but that is always written."""
        tree: Tree = {}
        self.walk(tree)
        return tree

    def _compile(self) -> None:
        fields = [field for field in fields_of(self._struct) or () if field.json]
        self._rules = {field.json: _rule(field) for field in fields}
        self._always = tuple((field.json, self._rules[field.json].zero) for field in fields if _is_always_there(field))
        self._ready = True


@final
class _Rule:
    """How one field is treated."""

    __slots__ = ("drops_empty", "inside", "zero")

    def __init__(self, *, drops_empty: bool, zero: Any = None, inside: Callable[[Any], None] | None = None) -> None:
        self.drops_empty = drops_empty
        self.zero = zero
        self.inside = inside


def _rule(field: GoField) -> _Rule:
    kind = _resolved(field.type)
    if kind.startswith("*"):
        # An empty part or a zero somebody wrote stays: it says something, such as `emptyDir: {}` or `replicas: 0`.
        part = _part(kind[1:])
        return _Rule(drops_empty=False, inside=part.walk if part else None)
    if kind == "[]byte":
        return _Rule(drops_empty=field.omits_empty)
    if kind.startswith("[]"):
        # An empty list is stored as none, so one that is always written is shown as null.
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


def _is_always_there(field: GoField) -> bool:
    if not field.omits_empty:
        return not field.omits_zero
    # To leave out what is empty has no effect on structs held by value.
    kind = _resolved(field.type)
    by_value = _part(kind) is not None or kind.rpartition(".")[2] in _VALUES
    return by_value and not kind.startswith(("*", "[", "map[")) and not field.omits_zero


def _resolved(kind: str) -> str:
    """The type behind a named one, such as the map behind `ResourceList`."""
    target = named_type(kind)
    return kind if target is None else _resolved(target)


def _part(kind: str) -> _Walker | None:
    """The walker of a struct; None for anything that is a single value on the wire."""
    kind = _resolved(kind)
    if kind.rpartition(".")[2] in (*_VALUES, _FINISHED):
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
