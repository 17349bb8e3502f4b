"""Quantity: the numbers of Kubernetes resources, `500m` of a CPU or `1Gi` of memory.

A quantity is exact. Kubernetes stores nothing finer than a billionth, so it is kept as a whole number of billionths
("nano") and the format of its suffix (apimachinery: pkg/api/resource/quantity.go). Finer values are rounded away from
zero, as the API server does, so that a request above zero never becomes zero.

Made for objects decoded by the thousand: `Quantity(text)` only keeps the text and parses it at the first comparison or
calculation. An invalid text fails there, not earlier; `Quantity.parse` parses at once. `api.codec` makes them, and
whoever compares or adds resources uses them. Not a unit converter: cores and bytes are the same to it.
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import total_ordering
from typing import Final, final

from kubewright.errors import DecodeError

__all__ = ("Format", "Quantity")

Number = int | float | Decimal | Fraction

_NANO: Final = 10**9
_MAX_BINARY: Final = (2**63 - 1) * _NANO
"""The server caps quantities with a binary suffix at this value, and only those."""
_MAX_DIGITS: Final = 4000
"""Digits of a quantity written out. Far beyond any use; it keeps `1e999999999` from filling the memory."""

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_SUFFIX: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

# The number may be empty: "m" is zero to the server, and stored objects may contain it.
_SYNTAX: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT: Final = re.compile(r"[eE]([-+]?[0-9]+)")


class Format(Enum):
    """The kind of suffix a quantity is printed with (Go: resource.Format)."""

    DECIMAL_SI = "DecimalSI"
    """`500m`, `2k`, `3G`"""
    BINARY_SI = "BinarySI"
    """`4Ki`, `1Gi`"""
    DECIMAL_EXPONENT = "DecimalExponent"
    """`12e6`"""


@final
@total_ordering
class Quantity:
    """An exact amount: `Quantity("500m") * 3 < Quantity("2")`.

    Equality is about the amount: `Quantity("1") == Quantity("1000m") == 1`. A plain string is compared as the
    quantity it spells, but hashes as a string: do not mix both as keys of one dict.
    """

    __slots__ = ("_format", "_nanos", "_text")

    # Only `_text` is set for text; the two others are filled in by `_read`, on demand.
    _text: str | None
    _nanos: int
    _format: Format

    def __init__(self, value: str | Number | Quantity) -> None:  # hot
        if type(value) is str:
            self._text = value
            return
        if isinstance(value, Quantity):
            self._text, self._nanos, self._format = value._text, value._amount(), value._format
        elif isinstance(value, str):
            self._text = str(value)
        elif isinstance(value, float | Decimal):
            # From its digits: 0.1 means a tenth, not the nearest binary fraction.
            self._text = None
            self._nanos, self._format = _read(str(value))[0], Format.DECIMAL_SI
        else:
            self._text = None
            self._nanos, self._format = _nanos_of(value), Format.DECIMAL_SI

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """A quantity from text; a DecodeError at once if it is invalid."""
        quantity = cls(text)
        quantity._amount()
        return quantity

    @classmethod
    def _make(cls, nanos: int, format_: Format) -> Quantity:
        made = cls.__new__(cls)
        made._text, made._nanos, made._format = None, nanos, format_
        return made

    def _amount(self) -> int:
        """The whole number of billionths; parses the text the first time."""
        try:
            return self._nanos
        except AttributeError:
            assert self._text is not None  # the two other slots are only unset when text was given
            self._nanos, self._format = _read(self._text)
            return self._nanos

    @property
    def text(self) -> str:
        """The text in JSON: as it was written, or the canonical form if it was calculated."""
        if self._text is None:
            self._text = self.canonical
        return self._text

    @property
    def format(self) -> Format:
        """The kind of suffix it was written with."""
        self._amount()
        return self._format

    @property
    def canonical(self) -> str:
        """As Kubernetes prints it: the same format, the largest suffix that needs no fraction.

        One difference on purpose: the server prints decimal amounts from 1000E on without any suffix, which changes
        their value; here they keep the `E`.
        """
        return _print(self._amount(), self._format)

    @property
    def value(self) -> int:
        """The next whole number away from zero: `Quantity("1500m").value == 2`."""
        return _divide_up(self._amount(), _NANO)

    @property
    def milli_value(self) -> int:
        """In thousandths, rounded away from zero: `Quantity("1.5").milli_value == 1500`."""
        return _divide_up(self._amount(), 10**6)

    @property
    def as_decimal(self) -> Decimal:
        """The exact amount."""
        nanos = self._amount()
        # By digits, not by division: the context's precision must not round.
        return Decimal((int(nanos < 0), tuple(map(int, str(abs(nanos)))), -9))

    def to_fraction(self) -> Fraction:
        """The exact amount."""
        return Fraction(self._amount(), _NANO)

    def __int__(self) -> int:
        nanos = self._amount()
        return nanos // _NANO if nanos >= 0 else -(-nanos // _NANO)

    def __float__(self) -> float:
        return self._amount() / _NANO

    def __bool__(self) -> bool:
        return self._amount() != 0

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Quantity({self.text!r})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Quantity) and self._text is not None and self._text == other._text:
            return True
        try:
            mine = self._amount()
            theirs = _exact_nanos(other)
        except DecodeError:
            return False  # comparing objects must not fail, so an invalid text equals only itself
        return NotImplemented if theirs is None else mine == theirs

    def __lt__(self, other: Quantity | Number | str) -> bool:
        theirs = _exact_nanos(other)
        return NotImplemented if theirs is None else self._amount() < theirs

    def __hash__(self) -> int:
        try:
            return hash(self.to_fraction())  # the same as the hash of an equal int, Decimal or float
        except DecodeError:
            return hash(self._text)

    def __add__(self, other: Quantity | Number | str) -> Quantity:
        term = _quantity(other)
        if term is None:
            return NotImplemented
        return Quantity._make(self._amount() + term._amount(), self.format if self else term.format)

    def __radd__(self, other: Number | str) -> Quantity:
        return self.__add__(other)  # for sum(); keeps the format of the quantities

    def __sub__(self, other: Quantity | Number | str) -> Quantity:
        term = _quantity(other)
        return NotImplemented if term is None else self.__add__(-term)

    def __rsub__(self, other: Number | str) -> Quantity:
        return (-self).__add__(other)

    def __mul__(self, factor: Number) -> Quantity:
        if not _is_number(factor):
            return NotImplemented
        return Quantity._make(_round_up(self._amount() * _fraction(factor)), self.format)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Number) -> Quantity:
        if not _is_number(divisor):
            return NotImplemented
        return Quantity._make(_round_up(Fraction(self._amount()) / _fraction(divisor)), self.format)

    def __neg__(self) -> Quantity:
        return Quantity._make(-self._amount(), self.format)

    def __pos__(self) -> Quantity:
        return self

    def __abs__(self) -> Quantity:
        return self if self._amount() >= 0 else -self

    def __copy__(self) -> Quantity:
        return self

    def __deepcopy__(self, memo: object) -> Quantity:
        return self

    def __reduce__(self) -> tuple[type[Quantity], tuple[str]]:
        return (Quantity, (self.text,))


def _read(text: str) -> tuple[int, Format]:
    """Billionths and format of a quantity's text."""
    match = _SYNTAX.fullmatch(text)
    if match is None or not text:
        raise DecodeError(
            f"{text!r} is not a quantity: write a number and at most one suffix, such as 2, 0.5, 500m or 1Gi"
        )
    sign, whole, fraction, suffix = match.groups("")
    if suffix in _BINARY:
        digits = _bounded(text, whole, fraction, power=0)
        nanos, format_ = _binary(digits, len(fraction), _BINARY[suffix])
    else:
        power, format_ = _power_of_ten(text, suffix)
        digits = _bounded(text, whole, fraction, power=power)
        nanos = _scale_rounding_up(digits, power - len(fraction) + 9)
    return (-nanos if sign == "-" else nanos), format_


def _power_of_ten(text: str, suffix: str) -> tuple[int, Format]:
    power = _DECIMAL.get(suffix)
    if power is not None:
        return power, Format.DECIMAL_SI
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise DecodeError(
            f"{text!r} is not a quantity: its suffix {suffix!r} is unknown; "
            "use one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3"
        )
    digits = exponent[1]
    # Cut before int(): a longer exponent is out of range in any case.
    return int(digits if len(digits) < 10 else digits[0] + "9" * 9), Format.DECIMAL_EXPONENT


def _bounded(text: str, whole: str, fraction: str, *, power: int) -> int:
    if len(whole) + len(fraction) + max(power, 0) > _MAX_DIGITS:
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise DecodeError(f"{shown!r} is not a usable quantity: it has more than {_MAX_DIGITS} digits")
    return int((whole + fraction) or "0")


def _binary(digits: int, places: int, power: int) -> tuple[int, Format]:
    nanos = min(_scale_rounding_up(digits << power, 9 - places), _MAX_BINARY)
    # The server also drops a binary suffix of an amount below one.
    return nanos, Format.DECIMAL_SI if 0 < nanos < _NANO else Format.BINARY_SI


def _scale_rounding_up(digits: int, power: int) -> int:
    """digits * 10**power, a fraction rounded up; digits is not negative."""
    if power >= 0:
        return digits * int(10**power)
    if -power > _MAX_DIGITS:  # less than any billionth, and 10**-power would be large
        return 1 if digits else 0
    return -(-digits // int(10**-power))


def _print(nanos: int, format_: Format) -> str:
    if nanos == 0:
        return "0"
    if format_ is Format.BINARY_SI and abs(nanos) >= 1024 * _NANO and nanos % _NANO == 0:
        amount, power = nanos // _NANO, 0
        while amount % 1024 == 0 and power < 6:
            amount, power = amount // 1024, power + 1
        return f"{amount}{_BINARY_SUFFIX[power]}"
    amount, power = nanos, -9
    while amount % 1000 == 0 and (power < 18 or format_ is Format.DECIMAL_EXPONENT):
        amount, power = amount // 1000, power + 3
    if format_ is Format.DECIMAL_EXPONENT:
        return f"{amount}e{power}" if power else str(amount)
    return f"{amount}{_DECIMAL_SUFFIX[power]}"


def _divide_up(amount: int, divisor: int) -> int:
    """Rounded away from zero."""
    return -(-amount // divisor) if amount >= 0 else amount // divisor


def _round_up(amount: Fraction) -> int:
    return _divide_up(amount.numerator, amount.denominator)


def _is_number(value: object) -> bool:
    return isinstance(value, Number) and not isinstance(value, bool)


def _fraction(value: Number) -> Fraction:
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def _nanos_of(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise TypeError(f"a quantity is made from text or a number, not from {type(value).__name__}")
    return _round_up(Fraction(value) * _NANO)


def _exact_nanos(other: object) -> int | Fraction | None:
    """What to compare with, not rounded; None for a type that has no amount."""
    if isinstance(other, Quantity):
        return other._amount()
    if isinstance(other, str):
        return _read(other)[0]
    if isinstance(other, bool) or not isinstance(other, Number):
        return None
    try:
        return _fraction(other) * _NANO
    except (ValueError, OverflowError):  # NaN and infinity
        return None


def _quantity(other: object) -> Quantity | None:
    if isinstance(other, Quantity):
        return other
    if isinstance(other, str) or _is_number(other):
        return Quantity(other)  # type: ignore[arg-type]  # narrowed by _is_number, which mypy cannot see
    return None
