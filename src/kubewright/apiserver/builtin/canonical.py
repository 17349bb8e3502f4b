"""Brings an object of a built-in kind into the encoding that Go's types give it.

kube-apiserver decodes objects into structs and encodes them again, so an empty list and no list, or `hostNetwork:
false` and nothing, become the same: a field with omitempty is left out if empty, one without is always there
(`resources: {}`, `status: {}`, `rules: null`). `defaults` end with `encode`, the encoding of an object that was decoded
from JSON, which the field manager sees. `preparation` ends with `canonicalize`, the encoding of an object that was
stored, which all that comes later sees (validation, the comparison with the stored object): protobuf has no empty list,
so `rules: []` is null.

`golang.decoder` has made quantities and times canonical before. Unknown fields are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.golang.types import GoField, fields_of, kind_type, named_type
from kubewright.apiserver.builtin.trees import Tree

__all__ = ("canonicalize", "encode")

# Structs that are one value in JSON, and the JSON of their zero value.
_VALUES: Final[dict[str, Any]] = {
    "Duration": "0s",
    "FieldsV1": None,
    "IntOrString": 0,
    "JSON": None,
    "MicroTime": None,
    "Quantity": "0",
    "RawExtension": None,
    "Time": None,
}
# Parts of a CRD's schema that are a schema, or a list or a boolean instead.
_ALTERNATIVES: Final = ("JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray")
_ZEROS: Final[dict[str, Any]] = {"bool": False, "string": ""}
# The field manager writes these entries, already in Go's encoding.
_OPAQUE: Final = "ManagedFieldsEntry"


def canonicalize(gvk: GroupVersionKind, obj: Tree) -> None:  # hot
    """Bring an object into Go's encoding of a stored one, in place. Kinds that are not built in are left alone."""
    walker = _walker_of_kind(gvk, stored=True)
    if walker is not None:
        walker.walk(obj)


def encode(gvk: GroupVersionKind, obj: Tree) -> None:  # hot
    """The same for an object that has just been decoded: a list that may not be left out can be empty."""
    walker = _walker_of_kind(gvk, stored=False)
    if walker is not None:
        walker.walk(obj)


@cache
def _walker_of_kind(gvk: GroupVersionKind, *, stored: bool) -> _Walker | None:
    struct = kind_type(gvk)
    return _walker(struct, stored) if struct is not None else None


@cache
def _walker(struct: str, stored: bool) -> _Walker:
    return _Walker(struct, stored)


@final
class _Walker:
    """The rules of the fields of one struct, compiled on first use."""

    __slots__ = ("_always", "_ready", "_rules", "_stored", "_struct")

    def __init__(self, struct: str, stored: bool) -> None:
        self._struct = struct
        self._stored = stored
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
        self._rules = {field.json: _rule(field, self._stored) for field in fields}
        self._always = tuple(
            (field.json, self._rules[field.json].zero) for field in fields if _is_always_encoded(field)
        )
        self._ready = True


@final
class _Alternatives:
    """The rules of a schema, where there may be something else."""

    __slots__ = ("_schema",)

    def __init__(self, schema: _Walker) -> None:
        self._schema = schema

    def walk(self, value: Any) -> None:
        if isinstance(value, dict):
            self._schema.walk(value)
        elif isinstance(value, list):
            for item in value:
                self.walk(item)

    def empty(self) -> None:
        """None: these are pointers in Go."""


@final
class _Rule:
    """The rule of one field: whether an empty value is dropped, its zero value in JSON, the walker of its content."""

    __slots__ = ("drops_empty", "inside", "zero")

    def __init__(self, *, drops_empty: bool, zero: Any = None, inside: Callable[[Any], None] | None = None) -> None:
        self.drops_empty = drops_empty
        self.zero = zero
        self.inside = inside


def _rule(field: GoField, stored: bool) -> _Rule:
    kind = _underlying_type(field.type)
    if kind.startswith("*"):
        # A pointer to an empty or zero value stays: `emptyDir: {}` and `replicas: 0` mean something.
        part = _part(kind[1:], stored)
        return _Rule(drops_empty=False, inside=part.walk if part else None)
    if kind == "[]byte":
        return _Rule(drops_empty=field.omits_empty)
    # Protobuf, in which kube-apiserver stores, has no empty list: without omitempty it reads back as null.
    drops_empty = stored or field.omits_empty
    if kind.startswith("[]"):
        return _Rule(drops_empty=drops_empty, inside=_each(_part(kind[2:], stored)))
    if kind.startswith("map["):
        return _Rule(drops_empty=drops_empty, inside=_each_value(_part(kind.partition("]")[2], stored)))
    part = _part(kind, stored)
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
    by_value = _part(kind, stored=True) is not None or kind.rpartition(".")[2] in _VALUES
    return by_value and not kind.startswith(("*", "[", "map[")) and not field.omits_zero


def _underlying_type(kind: str) -> str:
    """The underlying type of a named one, such as the map of a ResourceList."""
    target = named_type(kind)
    return kind if target is None else _underlying_type(target)


def _part(kind: str, stored: bool) -> _Walker | _Alternatives | None:
    """The walker of a struct; None for anything that is one value in JSON."""
    kind = _underlying_type(kind)
    if kind.rpartition(".")[2] in (*_VALUES, _OPAQUE):
        return None
    package, _, word = kind.rpartition(".")
    if word in _ALTERNATIVES:
        return _Alternatives(_walker(f"{package}.JSONSchemaProps", stored))
    return _walker(kind, stored) if fields_of(kind) is not None else None


def _each(part: _Walker | _Alternatives | None) -> Callable[[Any], None] | None:
    if part is None:
        return None
    walk = part.walk

    def walk_items(value: Any) -> None:
        for item in value:
            walk(item)

    return walk_items


def _each_value(part: _Walker | _Alternatives | None) -> Callable[[Any], None] | None:
    if part is None:
        return None
    walk = part.walk

    def walk_values(value: Any) -> None:
        for item in value.values():
            walk(item)

    return walk_values
