"""Reach into the JSON tree of an object: sections that may be absent, lists that may be null.

Every module of this package changes trees in place, after `validation.shape` has made sure that a section is a dict
and a list is a list. What is absent, null or empty means the same here, as it does to the real server.
"""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ("Tree", "fill", "fill_empty", "items", "peek", "same", "section", "text")

Tree: TypeAlias = dict[str, Any]
"""An object, or a part of one, as a JSON decoder gives it."""


def section(tree: Tree, name: str) -> Tree:
    """The part of this name; an empty one is put there when there is none."""
    part: Tree | None = tree.get(name)
    if part is None:
        part = tree[name] = {}
    return part


def peek(tree: Tree | None, *path: str) -> Any:
    """What stands at the end of the path, or None; nothing is put there."""
    found: Any = tree
    for name in path:
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found


def items(tree: Tree | None, name: str) -> list[Tree]:
    """The list of this name, to be walked; empty when there is none."""
    return (tree.get(name) if tree else None) or []


def text(tree: Tree | None, *path: str) -> str:
    """The string at the end of the path; empty when there is none."""
    found = peek(tree, *path)
    return found if isinstance(found, str) else ""


def fill(tree: Tree, name: str, value: Any) -> None:
    """Set a field nobody set; a zero or an empty string was set by somebody."""
    if tree.get(name) is None:
        tree[name] = value


def fill_empty(tree: Tree, name: str, value: Any) -> None:
    """Set a field for which zero and empty mean that nobody set it."""
    if not tree.get(name):
        tree[name] = value


def same(one: Any, two: Any) -> bool:
    """Whether both say the same; null, absent and an empty list do. An empty part is there, and differs from none."""
    if one is two or one == two:
        return True
    if isinstance(one, dict) and isinstance(two, dict):
        return all(same(one.get(name), two.get(name)) for name in one.keys() | two.keys())
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        return all(map(same, one, two))
    return one in (None, []) and two in (None, [])
