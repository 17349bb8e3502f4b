"""Quantities in objects of built-in kinds: canonical texts and values.

The results are cached, since many objects have the same few quantities.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from kubewright.api.quantity import Quantity
from kubewright.errors import DecodeError

__all__ = ("amount", "canonical_quantity")

_SYNTAX: Final = re.compile(r"[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*")
_RULE: Final = r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_SUFFIXES: Final = frozenset(("n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))
_PARTS: Final = re.compile(r"[+-]?([0-9.]*)(.*)", re.DOTALL)
_EXPONENT: Final = re.compile(r"[eE][-+]?[0-9]+")


@lru_cache(maxsize=4096)
def canonical_quantity(text: str) -> str:
    """The canonical text: `500m` for `0.5`. Raises ValueError with the error of ParseQuantity."""
    try:
        return Quantity.parse(text).canonical
    except DecodeError:
        raise ValueError(_parse_error(text)) from None


def _parse_error(text: str) -> str:
    match = _PARTS.fullmatch(text)
    assert match is not None  # every part may be empty
    number, suffix = match.groups()
    known = suffix in _SUFFIXES or _EXPONENT.fullmatch(suffix) is not None
    if number and number.count(".") <= 1 and _SYNTAX.fullmatch(text) and not known:
        return "unable to parse quantity's suffix"
    return _RULE


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    return Quantity.parse(text)


def amount(value: Any) -> Quantity:
    """The value of a valid quantity."""
    return _parse(str(value))
