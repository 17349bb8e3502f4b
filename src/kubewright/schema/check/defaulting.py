"""Defaulter: puts the defaults of a schema into objects.

    compile_defaults(schema).apply(tree)

As on the API server (apiextensions-apiserver: pkg/apiserver/schema/defaulting/algorithm.go), a null where the schema is
not nullable counts as absent: the default replaces it, and without a default it is dropped. Items of lists cannot be
dropped; a null among them becomes the default of the items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, final

from kubewright.api.patches import Json

__all__ = ("Defaulter", "compile_defaults")

_Apply: TypeAlias = Callable[[Any], None]


@final
class _NoDefault:
    """Marks a field without a default; null cannot be a default."""


_NO_DEFAULT: Final = _NoDefault()
_CONTAINERS: Final = frozenset((dict, list))
_Rule: TypeAlias = tuple[bool, Any, "_Apply | None"]
"""For a field: whether it is nullable, its default, and the function for the values below it."""
_EMPTY: Final[_Rule] = (True, _NO_DEFAULT, None)


@final
class Defaulter:
    """Applies the defaults of one schema."""

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._apply = _compile(schema or {})

    def apply(self, tree: Json) -> None:
        """Add defaults to a tree and drop nulls that are not allowed; changes the tree."""
        self._apply(tree)


def compile_defaults(schema: Mapping[str, Any] | None) -> Defaulter:
    """A defaulter for a structural schema."""
    return Defaulter(schema)


def _rule(schema: Mapping[str, Any]) -> _Rule:
    default = schema.get("default")
    return bool(schema.get("nullable")), _NO_DEFAULT if default is None else default, _below(schema)


def _below(schema: Mapping[str, Any]) -> _Apply | None:
    """The function for the values inside; None for scalars."""
    deep = any(schema.get(name) for name in ("properties", "items", "additionalProperties"))
    return _compile(schema) if deep else None


def _compile(schema: Mapping[str, Any]) -> _Apply:
    properties = schema.get("properties") or {}
    rules: dict[str, _Rule] = {name: _rule(child) for name, child in properties.items()}
    defaults = [(name, default) for name, (_, default, _) in rules.items() if default is not _NO_DEFAULT]
    others, items = schema.get("additionalProperties"), schema.get("items")
    rest = _rule(others) if isinstance(others, Mapping) else None
    item = _rule(items) if isinstance(items, Mapping) else None
    if item is not None and item[1] is _NO_DEFAULT and item[2] is None:
        item = None
    if not defaults and item is None and not any(below for _, _, below in (*rules.values(), rest or _EMPTY)):
        return lambda value: _without_nulls(value, rules, rest)
    beyond = rest[2] if rest is not None else None
    find = {name: below for name, (_, _, below) in rules.items()}.get

    def apply(value: Any) -> None:  # hot
        if type(value) is not dict:
            if type(value) is list and item is not None:
                _apply_items(value, item)
            return
        for name, default in defaults:
            if name not in value:
                value[name] = _copy(default)
        nulls = False
        for name, member in value.items():
            if type(member) in _CONTAINERS:
                if (below := find(name, beyond)) is not None:
                    below(member)
            elif member is None:
                nulls = True
        if nulls:
            _replace_nulls(value, rules, rest)

    return apply


def _without_nulls(value: Any, rules: Mapping[str, _Rule], rest: _Rule | None) -> None:  # hot
    """For schemas with nothing but scalars below."""
    if type(value) is dict and None in value.values():
        _replace_nulls(value, rules, rest)


def _replace_nulls(value: dict[str, Any], rules: Mapping[str, _Rule], rest: _Rule | None) -> None:
    for name in [name for name, member in value.items() if member is None]:
        rule = rules.get(name, rest)
        if rule is None or rule[0]:
            continue
        if rule[1] is _NO_DEFAULT:
            del value[name]
        else:
            value[name] = _default_value(rule)


def _apply_items(value: list[Any], rule: _Rule) -> None:
    nullable, default, below = rule
    for i, item in enumerate(value):
        if item is None and not nullable and default is not _NO_DEFAULT:
            value[i] = _default_value(rule)
        elif below is not None and type(item) in _CONTAINERS:
            below(item)


def _default_value(rule: _Rule) -> Any:
    value = _copy(rule[1])
    if rule[2] is not None:
        rule[2](value)
    return value


def _copy(value: Any) -> Any:
    if type(value) is dict:
        return {name: _copy(member) for name, member in value.items()}
    return [_copy(item) for item in value] if type(value) is list else value
