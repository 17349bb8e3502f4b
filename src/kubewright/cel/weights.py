"""How large a value is with everything inside: what it takes to compare, convert or print the whole of it.

The costs of CEL count the entries of a list or map, not what is in them. `weight` counts all of it: one for each value,
and one for every eight characters of a text. A value can contain the same list many times, so that it is larger than
the memory it takes; the count stops at `HEAVIEST`, which no budget pays for. `cost.actual`, `calls` and `code` use it.
"""

from __future__ import annotations

from typing import Any, Final

from kubewright.cel.values import OptionalValue

__all__ = ("HEAVIEST", "inner_weight", "weight", "work_size")

HEAVIEST: Final = 5_000_000


def weight(value: Any) -> int:
    """The weight of a value."""
    total = 0
    left = [value]
    while left:
        each = left.pop()
        total += 1
        if isinstance(each, str | bytes):
            total += len(each) >> 3
        elif isinstance(each, list):
            left += each
        elif isinstance(each, dict):
            left += each
            left += each.values()
        elif isinstance(each, OptionalValue):
            left.append(each.value)
        if total + len(left) > HEAVIEST:
            return HEAVIEST
    return total


def inner_weight(value: Any) -> int:
    """The weight of what is in a list or map, less one for each entry; of a text, less what its length costs anyway."""
    if isinstance(value, list | dict):
        return weight(value) - len(value) - 1
    return 0


def work_size(value: Any) -> int:
    """How much a function may have to read of one argument: characters, items, or what an opaque value was made of."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    size: int = getattr(value, "work_size", 0)
    return size
