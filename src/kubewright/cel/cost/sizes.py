"""Ranges of sizes and costs, for reckoning with values not seen yet.

Numbers stop at 2**64 - 1 instead of growing further, which stands for "no bound". Used by `estimate` and its prices.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

__all__ = ("LARGEST", "NOTHING", "UNKNOWN", "Range", "exactly")

LARGEST: Final = 2**64 - 1
_TOO_LARGE: Final = 2.0**64


def _capped(value: int) -> int:
    return LARGEST if value > LARGEST else value


def _scaled(value: int, factor: float) -> int:
    result = math.ceil(float(value) * factor)
    return LARGEST if result >= _TOO_LARGE else result


class Range(NamedTuple):
    """From `least` to `most`."""

    least: int
    most: int

    def plus(self, other: Range) -> Range:
        """Both together."""
        return Range(_capped(self.least + other.least), _capped(self.most + other.most))

    def times(self, other: Range) -> Range:
        """One for each of the other."""
        return Range(_capped(self.least * other.least), _capped(self.most * other.most))

    def scaled(self, factor: float) -> Range:
        """A fraction or a multiple, rounded up."""
        return Range(_scaled(self.least, factor), _scaled(self.most, factor))

    def union(self, other: Range) -> Range:
        """Either of the two."""
        return Range(min(self.least, other.least), max(self.most, other.most))


def exactly(value: int) -> Range:
    """A range of one."""
    return Range(value, value)


NOTHING: Final = Range(0, 0)
UNKNOWN: Final = Range(0, LARGEST)
