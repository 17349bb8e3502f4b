"""Laws of quantities: they calculate like fractions and print what they read.

Covers: kubewright.api
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from kubewright.api.quantity import Format, Quantity

SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2", "e+5"]
FACTORS = {
    **{suffix: Fraction(10) ** (3 * power) for power, suffix in enumerate(["n", "u", "m", ""], start=-3)},
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
    "e3": Fraction(10**3),
    "E-2": Fraction(1, 100),
    "e+5": Fraction(10**5),
}
NUMBERS = st.decimals(min_value=-(10**6), max_value=10**6, places=4)
AMOUNTS = st.integers(min_value=-(10**30), max_value=10**30).map(lambda nanos: Fraction(nanos, 10**9))
QUANTITIES = st.builds(lambda number, suffix: f"{number:f}{suffix}", NUMBERS, st.sampled_from(SUFFIXES))


def rounded(exact: Fraction) -> Fraction:
    """Away from zero, to a billionth."""
    nanos = abs(exact) * 10**9
    up = -(-nanos.numerator // nanos.denominator)
    return Fraction(up if exact >= 0 else -up, 10**9)


def capped(exact: Fraction) -> Fraction:
    limit = Fraction(2**63 - 1)
    return max(-limit, min(limit, exact))


@given(number=NUMBERS, suffix=st.sampled_from(SUFFIXES))
def test_the_amount_is_number_times_suffix(number: Decimal, suffix: str) -> None:
    exact = rounded(Fraction(number) * FACTORS[suffix])

    quantity = Quantity(f"{number:f}{suffix}")

    assert quantity.to_fraction() == (capped(exact) if suffix.endswith("i") else exact)


@given(text=QUANTITIES)
def test_the_canonical_form_means_the_same_and_is_a_fixed_point(text: str) -> None:
    quantity = Quantity.parse(text)

    again = Quantity.parse(quantity.canonical)

    assert again == quantity
    assert again.canonical == quantity.canonical
    assert hash(again) == hash(quantity)


@given(text=QUANTITIES)
def test_the_canonical_form_is_without_fraction(text: str) -> None:
    canonical = Quantity(text).canonical

    assert "." not in canonical
    assert not canonical.startswith(("+", "00"))


@given(one=AMOUNTS, two=AMOUNTS)
def test_calculation_agrees_with_fractions(one: Fraction, two: Fraction) -> None:
    left, right = Quantity(one), Quantity(two)

    assert (left + right).to_fraction() == one + two
    assert (left - right).to_fraction() == one - two
    assert (-left).to_fraction() == -one
    assert abs(left).to_fraction() == abs(one)
    assert (left < right, left <= right, left == right) == (one < two, one <= two, one == two)


@given(amount=AMOUNTS, factor=st.integers(-1000, 1000) | st.fractions(max_denominator=1000))
def test_multiplication_and_division_round_away_from_zero(amount: Fraction, factor: int | Fraction) -> None:
    quantity = Quantity(amount)

    assert (quantity * factor).to_fraction() == rounded(amount * factor)
    if factor:
        assert (quantity / factor).to_fraction() == rounded(amount / factor)


@given(amount=AMOUNTS)
def test_conversions_are_exact(amount: Fraction) -> None:
    quantity = Quantity(amount)

    assert Fraction(quantity.as_decimal) == amount
    assert quantity == amount
    assert hash(quantity) == hash(amount)
    assert quantity == Quantity.parse(str(quantity))
    assert abs(quantity.value) >= abs(amount) > abs(quantity.value) - 1
    assert quantity.format is Format.DECIMAL_SI


@given(text=st.text(alphabet="0123456789.+-eEinumkKMGTP x", max_size=8))
def test_any_text_is_a_quantity_or_refused_with_a_sentence(text: str) -> None:
    refusal, canonical = "", ""
    try:
        canonical = Quantity.parse(text).canonical
    except ValueError as error:
        refusal = str(error)

    assert "quantity" in refusal or Quantity.parse(canonical) == Quantity(text)
