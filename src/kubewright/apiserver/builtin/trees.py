"""Accessors of the JSON tree of an object: sections that may be absent, lists that may be null.

`golang.decoder` has made sure that a section is a dict and a list is a list. Absent, null and empty are the same here,
as they are in Go's structs.
"""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ("Tree", "fill", "fill_empty", "items", "peek", "section", "semantic_equal", "text")

Tree: TypeAlias = dict[str, Any]
"""An object, or a part of one, as decoded from JSON."""


def section(tree: Tree, name: str) -> Tree:
    """The section of this name, which is added if it is absent."""
    part: Tree | None = tree.get(name)
    if part is None:
        part = tree[name] = {}
    return part


def peek(tree: Tree | None, *path: str) -> Any:
    """The value at a path; None if there is none."""
    found: Any = tree
    for name in path:
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found


def items(tree: Tree | None, name: str) -> list[Tree]:
    """The list of this name; empty if there is none."""
    return (tree.get(name) if tree else None) or []


def text(tree: Tree | None, *path: str) -> str:
    """The string at a path; empty if there is none."""
    found = peek(tree, *path)
    return found if isinstance(found, str) else ""


def fill(tree: Tree, name: str, value: Any) -> None:
    """Set an absent field: for a pointer in Go, whose zero value is set."""
    if tree.get(name) is None:
        tree[name] = value


def fill_empty(tree: Tree, name: str, value: Any) -> None:
    """Set an absent or zero field: for a value in Go, whose zero is not set."""
    if not tree.get(name):
        tree[name] = value


def semantic_equal(one: Any, two: Any) -> bool:
    """Whether both are equal as by equality.Semantic.DeepEqual: null, absent and an empty list are, {} is not."""
    if one is two or one == two:
        return True
    if isinstance(one, dict) and isinstance(two, dict):
        return all(semantic_equal(one.get(name), two.get(name)) for name in one.keys() | two.keys())
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        return all(map(semantic_equal, one, two))
    return one in (None, []) and two in (None, [])
