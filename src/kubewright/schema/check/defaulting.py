"""Defaulter: puts the defaults of a schema into objects.

    compile_defaults(schema).apply(tree)

As on the API server (apiextensions-apiserver: pkg/apiserver/schema/defaulting/algorithm.go), a null where the schema is
not nullable counts as absent: the default replaces it, and without a default it is dropped. Items of lists cannot be
dropped; a null among them becomes the default of the items. A default is copied for each object that lacks it, so a
few bytes of a body and a few of a schema can multiply: what defaults add to one tree is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, final

from kubewright.api.patches import Json

__all__ = ("Defaulter", "DefaultsTooLargeError", "compile_defaults")

_MAX_ADDED: Final = 3 * 1024 * 1024
"""Bytes of JSON that defaults may add: no API server takes a larger object."""
_VALUE: Final = 20
"""Bytes that a value counts for at least: an empty object takes two in JSON and many more in memory."""


class DefaultsTooLargeError(ValueError):
    """The defaults would make a tree much larger than any object may be."""

    def __init__(self) -> None:
        super().__init__(f"the defaults of the schema add more than {_MAX_ADDED} bytes to the object")


@final
class _Budget:
    """How many bytes defaults may still add to one tree."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _MAX_ADDED

    def spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise DefaultsTooLargeError


_Apply: TypeAlias = Callable[[Any, _Budget], None]


@final
class _NoDefault:
    """Marks a field without a default; null cannot be a default."""


_NO_DEFAULT: Final = _NoDefault()
_CONTAINERS: Final = frozenset((dict, list))
_Rule: TypeAlias = tuple[bool, Any, "_Apply | None", int]
"""For a field: whether it is nullable, its default, the function for the values below it, and the size of the default.
"""
_EMPTY: Final[_Rule] = (True, _NO_DEFAULT, None, 0)


@final
class Defaulter:
    """Applies the defaults of one schema."""

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._apply = _compile(schema or {})

    def apply(self, tree: Json) -> None:
        """Add defaults to a tree and drop nulls that are not allowed; changes the tree.

        Raises `DefaultsTooLargeError` when the defaults are very large together.
        """
        self._apply(tree, _Budget())


def compile_defaults(schema: Mapping[str, Any] | None) -> Defaulter:
    """A defaulter for a structural schema."""
    return Defaulter(schema)


def _rule(schema: Mapping[str, Any]) -> _Rule:
    default = schema.get("default")
    size = 0 if default is None else _size(default)
    return bool(schema.get("nullable")), _NO_DEFAULT if default is None else default, _below(schema), size


def _size(value: Any) -> int:
    """The bytes that a copy of a value is charged for."""
    if type(value) is dict:
        return _VALUE + sum(len(name) + _size(member) for name, member in value.items())
    if type(value) is list:
        return _VALUE + sum(map(_size, value))
    return max(_VALUE, len(value)) if type(value) is str else _VALUE


def _below(schema: Mapping[str, Any]) -> _Apply | None:
    """The function for the values inside; None for scalars."""
    deep = any(schema.get(name) for name in ("properties", "items", "additionalProperties"))
    return _compile(schema) if deep else None


def _compile(schema: Mapping[str, Any]) -> _Apply:
    properties = schema.get("properties") or {}
    rules: dict[str, _Rule] = {name: _rule(child) for name, child in properties.items()}
    defaults = [(name, rule[1], rule[3]) for name, rule in rules.items() if rule[1] is not _NO_DEFAULT]
    others, items = schema.get("additionalProperties"), schema.get("items")
    rest = _rule(others) if isinstance(others, Mapping) else None
    item = _rule(items) if isinstance(items, Mapping) else None
    if item is not None and item[1] is _NO_DEFAULT and item[2] is None:
        item = None
    if not defaults and item is None and not any(rule[2] for rule in (*rules.values(), rest or _EMPTY)):
        return lambda value, budget: _without_nulls(value, rules, rest, budget)
    beyond = rest[2] if rest is not None else None
    find = {name: rule[2] for name, rule in rules.items()}.get

    def apply(value: Any, budget: _Budget) -> None:  # hot
        if type(value) is not dict:
            if type(value) is list and item is not None:
                _apply_items(value, item, budget)
            return
        for name, default, size in defaults:
            if name not in value:
                budget.spend(size)
                value[name] = _copy(default)
        nulls = False
        for name, member in value.items():
            if type(member) in _CONTAINERS:
                if (below := find(name, beyond)) is not None:
                    below(member, budget)
            elif member is None:
                nulls = True
        if nulls:
            _replace_nulls(value, rules, rest, budget)

    return apply


def _without_nulls(value: Any, rules: Mapping[str, _Rule], rest: _Rule | None, budget: _Budget) -> None:  # hot
    """For schemas with nothing but scalars below."""
    if type(value) is dict and None in value.values():
        _replace_nulls(value, rules, rest, budget)


def _replace_nulls(value: dict[str, Any], rules: Mapping[str, _Rule], rest: _Rule | None, budget: _Budget) -> None:
    for name in [name for name, member in value.items() if member is None]:
        rule = rules.get(name, rest)
        if rule is None or rule[0]:
            continue
        if rule[1] is _NO_DEFAULT:
            del value[name]
        else:
            value[name] = _default_value(rule, budget)


def _apply_items(value: list[Any], rule: _Rule, budget: _Budget) -> None:
    nullable, default, below, _ = rule
    for i, item in enumerate(value):
        if item is None and not nullable and default is not _NO_DEFAULT:
            value[i] = _default_value(rule, budget)
        elif below is not None and type(item) in _CONTAINERS:
            below(item, budget)


def _default_value(rule: _Rule, budget: _Budget) -> Any:
    budget.spend(rule[3])
    value = _copy(rule[1])
    if rule[2] is not None:
        rule[2](value, budget)
    return value


def _copy(value: Any) -> Any:
    if type(value) is dict:
        return {name: _copy(member) for name, member in value.items()}
    return [_copy(item) for item in value] if type(value) is list else value
