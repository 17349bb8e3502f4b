"""Defaults of a schema, put into objects that lack them.

    compile_defaults(schema).apply(tree)

As on the API server, a null where the schema allows none counts as absent: it gives way to the default if there is
one and is dropped otherwise. Items of lists cannot be dropped; a null among them takes the default of the items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, final

from kubewright.api.patches import Json

__all__ = ("Defaulter", "compile_defaults")

_Apply: TypeAlias = Callable[[Any], None]


@final
class _Nothing:
    """No default; null cannot be one."""


_NOTHING: Final = _Nothing()
_DEEP: Final = frozenset((dict, list))
_Rule: TypeAlias = tuple[bool, Any, "_Apply | None"]
"""Of a field: whether it may be null, its default, and how to go on below it."""
_EMPTY: Final[_Rule] = (True, _NOTHING, None)


@final
class Defaulter:
    """Puts the defaults of one schema into objects."""

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._apply = _made(schema or {})

    def apply(self, tree: Json) -> None:
        """Add defaults to a tree and drop nulls that may not be; the tree is changed."""
        self._apply(tree)


def compile_defaults(schema: Mapping[str, Any] | None) -> Defaulter:
    """A defaulter for a structural schema."""
    return Defaulter(schema)


def _rule(schema: Mapping[str, Any]) -> _Rule:
    default = schema.get("default")
    return bool(schema.get("nullable")), _NOTHING if default is None else default, _below(schema)


def _below(schema: Mapping[str, Any]) -> _Apply | None:
    """Scalars have nothing below them."""
    deep = any(schema.get(name) for name in ("properties", "items", "additionalProperties"))
    return _made(schema) if deep else None


def _made(schema: Mapping[str, Any]) -> _Apply:
    properties = schema.get("properties") or {}
    rules: dict[str, _Rule] = {name: _rule(child) for name, child in properties.items()}
    defaults = [(name, default) for name, (_, default, _) in rules.items() if default is not _NOTHING]
    others, items = schema.get("additionalProperties"), schema.get("items")
    rest = _rule(others) if isinstance(others, Mapping) else None
    item = _rule(items) if isinstance(items, Mapping) else None
    if item is not None and item[1] is _NOTHING and item[2] is None:
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
                value[name] = _copied(default)
        nulls = False
        for name, member in value.items():
            if type(member) in _DEEP:
                if (below := find(name, beyond)) is not None:
                    below(member)
            elif member is None:
                nulls = True
        if nulls:
            _replace_nulls(value, rules, rest)

    return apply


def _without_nulls(value: Any, rules: Mapping[str, _Rule], rest: _Rule | None) -> None:  # hot
    """All there is to do where the schema has scalars only."""
    if type(value) is dict and None in value.values():
        _replace_nulls(value, rules, rest)


def _replace_nulls(value: dict[str, Any], rules: Mapping[str, _Rule], rest: _Rule | None) -> None:
    for name in [name for name, member in value.items() if member is None]:
        rule = rules.get(name, rest)
        if rule is None or rule[0]:
            continue
        if rule[1] is _NOTHING:
            del value[name]
        else:
            value[name] = _defaulted(rule)


def _apply_items(value: list[Any], rule: _Rule) -> None:
    nullable, default, below = rule
    for i, item in enumerate(value):
        if item is None and not nullable and default is not _NOTHING:
            value[i] = _defaulted(rule)
        elif below is not None and type(item) in _DEEP:
            below(item)


def _defaulted(rule: _Rule) -> Any:
    value = _copied(rule[1])
    if rule[2] is not None:
        rule[2](value)
    return value


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {name: _copied(member) for name, member in value.items()}
    return [_copied(item) for item in value] if type(value) is list else value
