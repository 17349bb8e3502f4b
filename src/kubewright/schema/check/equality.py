"""Equality of JSON values as Go's reflect.DeepEqual defines it: an integer equals no float and no boolean."""

from __future__ import annotations

from typing import Any

__all__ = ("deep_equal",)


def deep_equal(one: Any, two: Any) -> bool:
    """Whether two trees are equal, types included."""
    if type(one) is not type(two):
        return False
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(deep_equal(value, two[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(two) and all(map(deep_equal, one, two))
    return bool(one == two)
