"""Finds the references in an OpenAPI document. `builtin` and `merge` call it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ("references",)


def references(tree: Any) -> Iterator[str]:
    """Every `$ref` in a tree, at any depth."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            if name == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from references(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from references(item)
