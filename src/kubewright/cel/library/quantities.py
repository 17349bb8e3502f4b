"""`quantity('1.5Gi')`: quantities of Kubernetes resources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, final

from kubewright.api.quantity import Quantity
from kubewright.cel.celtypes import BOOL, DOUBLE, INT, STRING, object_type
from kubewright.cel.declarations import Declaration, function, member
from kubewright.cel.errors import EvaluationError
from kubewright.cel.values import OpaqueValue
from kubewright.errors import DecodeError

__all__ = ("QUANTITY", "declarations")

QUANTITY: Final = object_type("kubernetes.Quantity")
_LIMIT: Final = 2**63
_SYNTAX: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SUFFIX: Final = "unable to parse quantity's suffix"
_SYNTAX_ERROR: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@final
class _Amount(OpaqueValue):
    """A quantity as a CEL value.

    The API server keeps small ones as an integer times a power of ten, and all others to the billionth (apimachinery:
    pkg/api/resource, int64Amount and infDecAmount). Only the former count as integers, and the conversion to a float
    depends on it, too.
    """

    __slots__ = ("digits", "power", "quantity", "small")
    cel_type = QUANTITY

    def __init__(self, quantity: Quantity, digits: int, power: int, *, small: bool) -> None:
        self.quantity = quantity
        self.digits = digits
        self.power = power
        self.small = small

    def plus(self, other: _Amount, sign: int) -> _Amount:
        """The sum, or with a negative sign the difference."""
        power = min(self.power, other.power)
        digits = self.digits * 10 ** (self.power - power) + sign * other.digits * 10 ** (other.power - power)
        quantity = self.quantity + other.quantity if sign > 0 else self.quantity - other.quantity
        small = self.small and other.small and -_LIMIT <= digits < _LIMIT
        return _Amount(quantity, digits, power, small=small)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Amount) and self.quantity == other.quantity

    def __hash__(self) -> int:
        return hash(self.quantity)


def declarations() -> Iterator[Declaration]:
    """All functions of this module."""
    yield function("quantity", "string_to_quantity", (STRING,), QUANTITY, _quantity)
    yield function("isQuantity", "is_quantity_string", (STRING,), BOOL, _is_quantity)
    yield function("sign", "quantity_sign", (QUANTITY,), INT, _sign)
    yield member("isGreaterThan", "quantity_is_greater_than", (QUANTITY, QUANTITY), BOOL, _greater)
    yield member("isLessThan", "quantity_is_less_than", (QUANTITY, QUANTITY), BOOL, _less)
    yield member("compareTo", "quantity_compare_to", (QUANTITY, QUANTITY), INT, _compare)
    yield member("asApproximateFloat", "quantity_get_float", (QUANTITY,), DOUBLE, _float)
    yield member("asInteger", "quantity_get_int", (QUANTITY,), INT, _integer)
    yield member("isInteger", "quantity_is_integer", (QUANTITY,), BOOL, _is_integer)
    yield member("add", "quantity_add", (QUANTITY, QUANTITY), QUANTITY, _add)
    yield member("add", "quantity_add_int", (QUANTITY, INT), QUANTITY, _add_int)
    yield member("sub", "quantity_sub", (QUANTITY, QUANTITY), QUANTITY, _sub)
    yield member("sub", "quantity_sub_int", (QUANTITY, INT), QUANTITY, _sub_int)


def _quantity(text: str) -> _Amount:
    try:
        quantity = Quantity.parse(text)
    except DecodeError:
        raise EvaluationError(_SUFFIX if text and _SYNTAX.fullmatch(text) else _SYNTAX_ERROR) from None
    match = _SYNTAX.fullmatch(text)
    assert match is not None
    sign, whole, fraction, suffix = match.groups("")
    whole = whole.lstrip("0")
    if suffix in _BINARY:
        shift = _BINARY[suffix]
        small = not fraction and 14 - len(whole) - shift * 3 // 10 >= 0
        digits, power = int(whole or "0") << shift, 0
    else:
        power = (_DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])) - len(fraction)
        small = len(whole) + len(fraction) <= 18 and power >= -9
        digits = int(f"{whole}{fraction}" or "0")
    if not small:
        digits, power = abs(int(quantity.to_fraction() * 10**9)), -9
    return _Amount(quantity, -digits if sign == "-" else digits, power, small=small)


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except DecodeError:
        return False
    return True


def _sign(amount: _Amount) -> int:
    return (amount.quantity > 0) - (amount.quantity < 0)


def _compare(one: _Amount, other: _Amount) -> int:
    return (one.quantity > other.quantity) - (one.quantity < other.quantity)


def _greater(one: _Amount, other: _Amount) -> bool:
    return one.quantity > other.quantity


def _less(one: _Amount, other: _Amount) -> bool:
    return one.quantity < other.quantity


def _float(amount: _Amount) -> float:
    return float(amount.digits) * 10.0**amount.power if amount.power else float(amount.digits)


def _whole(amount: _Amount) -> int | None:
    exact = amount.quantity.to_fraction()
    if not amount.small or exact.denominator != 1 or not -_LIMIT <= exact.numerator < _LIMIT:
        return None
    return exact.numerator


def _integer(amount: _Amount) -> int:
    whole = _whole(amount)
    if whole is None:
        raise EvaluationError("cannot convert value to integer")
    return whole


def _is_integer(amount: _Amount) -> bool:
    return _whole(amount) is not None


def _of(number: int) -> _Amount:
    return _Amount(Quantity(number), number, 0, small=True)


def _add(one: _Amount, other: _Amount) -> _Amount:
    return one.plus(other, 1)


def _add_int(one: _Amount, other: int) -> _Amount:
    return one.plus(_of(other), 1)


def _sub(one: _Amount, other: _Amount) -> _Amount:
    return one.plus(other, -1)


def _sub_int(one: _Amount, other: int) -> _Amount:
    return one.plus(_of(other), -1)
