"""Ranges of sizes and costs, for estimates of values not seen yet (cel-go: checker.SizeEstimate, CostEstimate).

Numbers are capped at 2**64 - 1, which means "no bound". `cost.estimator` and `cost.call_estimates` use them.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

__all__ = ("MAX_UINT64", "UNKNOWN", "ZERO", "Range", "exactly")

MAX_UINT64: Final = 2**64 - 1
_TOO_LARGE: Final = 2.0**64


def _cap(value: int) -> int:
    return MAX_UINT64 if value > MAX_UINT64 else value


def _scale(value: int, factor: float) -> int:
    result = math.ceil(float(value) * factor)
    return MAX_UINT64 if result >= _TOO_LARGE else result


class Range(NamedTuple):
    """From `low` to `high`, both included."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        """The sum of both."""
        return Range(_cap(self.low + other.low), _cap(self.high + other.high))

    def times(self, other: Range) -> Range:
        """The product of both."""
        return Range(_cap(self.low * other.low), _cap(self.high * other.high))

    def scaled(self, factor: float) -> Range:
        """A multiple, rounded up."""
        return Range(_scale(self.low, factor), _scale(self.high, factor))

    def union(self, other: Range) -> Range:
        """The smallest range that contains both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def exactly(value: int) -> Range:
    """The range of one number."""
    return Range(value, value)


ZERO: Final = Range(0, 0)
UNKNOWN: Final = Range(0, MAX_UINT64)
