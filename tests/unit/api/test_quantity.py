"""What Quantity promises. The tables were printed by k8s.io/apimachinery 0.35."""

from __future__ import annotations

import copy
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from kubewright.api.quantity import Format, Quantity
from kubewright.errors import DecodeError

# fmt: off
CANONICAL = (
    ("0", "0"), ("1", "1"), ("-1", "-1"), ("+1", "1"), ("01", "1"), ("007", "7"), ("10", "10"),
    ("100", "100"), ("1000", "1k"), ("1500", "1500"), ("1024", "1024"), ("1e3", "1e3"), ("1E3", "1e3"),
    ("1e+3", "1e3"), ("1E-3", "1e-3"), ("100e3", "100e3"), ("12e6", "12e6"), ("1e0", "1"),
    ("1.5e3", "1500"), ("1e1", "10"), ("1e2", "100"), ("1e4", "10e3"), ("1.e3", "1e3"), ("0.5", "500m"),
    (".5", "500m"), ("5.", "5"), ("0.1", "100m"), ("1.1", "1100m"), ("-0.5", "-500m"), ("500m", "500m"),
    ("1000m", "1"), ("1500m", "1500m"), ("1m", "1m"), ("100n", "100n"), ("1u", "1u"), ("1n", "1n"),
    ("0.1n", "1n"), ("0.5n", "1n"), ("1.1n", "2n"), ("-0.1n", "-1n"), ("0.0000000001", "1n"),
    ("1.0000000001", "1000000001n"), ("1k", "1k"), ("1000k", "1M"), ("1M", "1M"), ("1000M", "1G"),
    ("1G", "1G"), ("1T", "1T"), ("1P", "1P"), ("1E", "1E"), ("1000P", "1E"), ("1.5k", "1500"),
    ("1.5M", "1500k"), ("0.5k", "500"), ("1.2345k", "1234500m"), ("12345678", "12345678"),
    ("123456789012345678", "123456789012345678"), ("1234567890123456789", "1234567890123456789"),
    ("9223372036854775807", "9223372036854775807"), ("9223372036854775808", "9223372036854775808"),
    ("99999999999999999999", "99999999999999999999"), ("1Ki", "1Ki"), ("1Mi", "1Mi"), ("1Gi", "1Gi"),
    ("1Ti", "1Ti"), ("1Pi", "1Pi"), ("1Ei", "1Ei"), ("8Ei", "9223372036854775807"), ("7Ei", "7Ei"),
    ("16Ei", "9223372036854775807"), ("-16Ei", "-9223372036854775807"), ("-1Gi", "-1Gi"),
    ("1024Ki", "1Mi"), ("1024Mi", "1Gi"), ("2048Mi", "2Gi"), ("1025Ki", "1025Ki"), ("1.5Gi", "1536Mi"),
    ("0.5Ki", "512"), ("0.5Mi", "512Ki"), ("1.5Ki", "1536"), ("0.1Ki", "102400m"), ("0.0005Ki", "512m"),
    ("-0.0005Ki", "-512m"), ("1.1Ki", "1126400m"), ("1.1Mi", "1153433600m"), ("2.5Gi", "2560Mi"),
    ("10.5Ki", "10752"), ("1023", "1023"), ("0Ki", "0"), ("0m", "0"), ("0e3", "0"), ("00", "0"),
    ("0.0", "0"), ("0.0Ki", "0"), ("-0", "0"), ("+0", "0"), ("100Mi", "100Mi"),
    ("128974848", "128974848"), ("129e6", "129e6"), ("129M", "129M"), ("123Mi", "123Mi"),
    ("1000Ki", "1000Ki"), ("512Mi", "512Mi"), ("256Mi", "256Mi"), ("0.000001", "1u"),
    ("0.001Ki", "1024m"), ("3.14159", "3141590u"), ("250m", "250m"), ("0.25", "250m"),
    ("2.50", "2500m"), ("1e-9", "1e-9"), ("1e-10", "1e-9"), ("5e-10", "1e-9"), ("1e9", "1e9"),
    ("1e10", "10e9"), ("1e18", "1e18"), ("1e19", "10e18"), ("1e21", "1e21"), ("1E21", "1e21"),
    ("1e30", "1e30"), ("123456789e12", "123456789e12"), ("1.23456789123", "1234567892n"),
    ("-1.5Gi", "-1536Mi"), ("-1500m", "-1500m"), ("-1.0000000001", "-1000000001n"), ("1.00Gi", "1Gi"),
    ("1000Mi", "1000Mi"), ("1000Gi", "1000Gi"), ("999Ei", "9223372036854775807"), ("-", "0"),
    ("+", "0"), (".", "0"), ("-.", "0"), ("m", "0"), ("Ki", "0"), ("e3", "0"), ("E3", "0"),
    ("1e3000", "1e3000"), ("1e-3000", "1e-9"), ("+500m", "500m"), ("+1Ki", "1Ki"), ("010Ki", "10Ki"),
    ("0010", "10"), ("0100m", "100m"), ("100000", "100k"), ("8Ki", "8Ki"), ("16Ki", "16Ki"),
    ("24Mi", "24Mi"), ("3Ki", "3Ki"),
)

REFUSED = (
    "1ki", "1K", "1mi", "1e", "1E+", "1ee3", "1Ee3", "1ekk", "1x", "1.2.3", "1..2", "abc", "", "1,5",
    "1_000", "0x10", "1e3.5", "1m5", "5mm", "\u0661", "1i", "1n5", " 1", "1 ", "1\n",
)

SUMS = (
    ("1", "+", "1m", "1001m"), ("1", "-", "1m", "999m"), ("0", "+", "1Ki", "1Ki"),
    ("0", "-", "1Ki", "-1Ki"), ("1Gi", "+", "512Mi", "1536Mi"), ("1Gi", "-", "512Mi", "512Mi"),
    ("1Gi", "+", "1", "1073741825"), ("1Gi", "-", "1", "1073741823"),
    ("1Gi", "+", "1m", "1073741824001m"), ("1Gi", "-", "1m", "1073741823999m"),
    ("500m", "+", "500m", "1"), ("500m", "-", "500m", "0"), ("1e3", "+", "1k", "2e3"),
    ("1e3", "-", "1k", "0"), ("1k", "+", "1Ki", "2024"), ("1k", "-", "1Ki", "-24"),
    ("0", "+", "1e3", "1e3"), ("0", "-", "1e3", "-1e3"), ("7Ei", "+", "1Ei", "8Ei"),
    ("7Ei", "-", "1Ei", "6Ei"), ("8Ei", "+", "8Ei", "18446744073709551614"), ("8Ei", "-", "8Ei", "0"),
    ("1Ki", "+", "0", "1Ki"), ("1Ki", "-", "0", "1Ki"), ("1Ki", "+", "-1Ki", "0"),
    ("1Ki", "-", "-1Ki", "2Ki"), ("0Ki", "+", "1k", "1k"), ("0Ki", "-", "1k", "-1k"),
)
# fmt: on


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_canonical_form_is_the_one_kubernetes_prints(text: str, canonical: str) -> None:
    assert canonical == Quantity.parse(text).canonical


@pytest.mark.parametrize("text", REFUSED)
def test_text_that_kubernetes_refuses_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="is not a quantity"):
        Quantity.parse(text)


@pytest.mark.parametrize(("one", "sign", "two", "expected"), SUMS)
def test_sums_and_differences_print_as_in_kubernetes(one: str, sign: str, two: str, expected: str) -> None:
    result = Quantity(one) + Quantity(two) if sign == "+" else Quantity(one) - Quantity(two)

    assert expected == str(result)


def test_text_from_the_wire_is_kept_as_written() -> None:
    quantity = Quantity("1024Mi")

    assert quantity == Quantity("1Gi")
    assert str(quantity) == quantity.text == "1024Mi"
    assert repr(quantity) == "Quantity('1024Mi')"


def test_wrong_text_is_found_at_first_use_not_before() -> None:
    quantity = Quantity("lots")

    assert quantity.text == "lots"
    with pytest.raises(DecodeError, match="'lots' is not a quantity: write a number"):
        _ = quantity.value


def test_wrong_text_equals_only_itself() -> None:
    assert Quantity("lots") == Quantity("lots")
    assert Quantity("lots") != Quantity("many")
    assert Quantity("1") != "lots"
    assert hash(Quantity("lots")) == hash(Quantity("lots"))


def test_unknown_suffix_is_named() -> None:
    with pytest.raises(ValueError, match="its suffix 'K' is unknown; use one of"):
        Quantity.parse("1K")


@pytest.mark.parametrize("same", [1, 1.0, Decimal("1.0"), Fraction(1), "1000m", "1e0", Quantity("1000m"), Quantity(1)])
def test_equality_is_about_the_amount(same: Any) -> None:
    assert Quantity("1") == same


@pytest.mark.parametrize("same", [1, 1.0, Decimal("1.0"), Fraction(1), Quantity("1000m"), Quantity("1e0")])
def test_equal_amounts_have_the_same_hash(same: Any) -> None:
    assert len({Quantity("1"), same}) == 1


@pytest.mark.parametrize("other", [None, True, b"1", [1], float("nan"), float("inf")])
def test_other_things_are_never_equal(other: Any) -> None:
    assert Quantity("1") != other


def test_order_is_by_amount() -> None:
    assert Quantity("999m") < Quantity("1") < Quantity("1Ki")
    assert Quantity("1k") < "1Ki"
    assert Quantity("2") >= 2
    assert Quantity("0.1") > Decimal("0.0999999999999")
    assert sorted([Quantity("1Gi"), Quantity("1G"), Quantity("5")])[0] == 5


def test_order_with_something_else_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        _ = Quantity("1") < None  # type: ignore[operator]  # the point of the test


def test_numbers_become_quantities() -> None:
    assert Quantity(3).text == "3"
    assert Quantity(1500).text == "1500"
    assert Quantity(0.1).text == "100m"
    assert Quantity(Decimal("0.25")).text == "250m"
    assert Quantity(Decimal("1E+3")).text == "1k"
    assert Quantity(Fraction(1, 3)).text == "333333334n"
    assert Quantity(Quantity("1024Mi")).text == "1024Mi"


def test_words_of_other_string_types_become_plain_text() -> None:
    class Word(str):
        __slots__ = ()

    assert type(Quantity(Word("1Gi")).text) is str


@pytest.mark.parametrize("value", [True, None, b"1", [1]])
def test_what_has_no_amount_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="a quantity is made from text or a number"):
        Quantity(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), Decimal("-Infinity")])
def test_numbers_that_are_not_finite_are_refused(value: Any) -> None:
    with pytest.raises(DecodeError, match="is not a quantity"):
        Quantity(value)


def test_arithmetic_with_numbers() -> None:
    assert str(Quantity("500m") * 3) == "1500m"
    assert str(3 * Quantity("512Mi")) == "1536Mi"
    assert str(Quantity("1Gi") * 0.5) == "512Mi"
    assert str(Quantity("1Gi") / 4) == "256Mi"
    assert str(Quantity("1") / 3) == "333333334n"
    assert str(-Quantity("1Gi")) == "-1Gi"
    assert str(abs(Quantity("-2k"))) == "2k"
    assert str(+Quantity("1024")) == "1024"
    assert str(1 - Quantity("100m")) == "900m"
    assert str(Quantity("1") + "500m") == "1500m"


def test_sum_of_quantities_keeps_their_family() -> None:
    assert str(sum([Quantity("512Mi"), Quantity("512Mi")], start=Quantity(0))) == "1Gi"
    assert str(sum([Quantity("512Mi"), Quantity("512Mi")])) == "1Gi"


def test_quantities_do_not_multiply_each_other() -> None:
    with pytest.raises(TypeError):
        _ = Quantity("1") * Quantity("2")  # type: ignore[operator]  # the point of the test
    with pytest.raises(TypeError):
        _ = Quantity("1") / "2"  # type: ignore[operator]  # the point of the test


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [("1500m", 2, 1500), ("-1500m", -2, -1500), ("1n", 1, 1), ("-1n", -1, -1), ("0", 0, 0), ("1Ki", 1024, 1024000)],
)
def test_whole_values_are_rounded_away_from_zero(text: str, value: int, milli: int) -> None:
    quantity = Quantity(text)

    assert (value, milli) == (quantity.value, quantity.milli_value)


def test_exact_conversions() -> None:
    quantity = Quantity("1500m")

    assert quantity.as_decimal == Decimal("1.5")
    assert Quantity("-1n").as_decimal == Decimal("-0.000000001")
    assert quantity.to_fraction() == Fraction(3, 2)
    assert int(quantity) == 1
    assert int(Quantity("-1500m")) == -1
    assert float(quantity) == 1.5
    assert quantity
    assert not Quantity("0Ki")


def test_format_tells_the_family() -> None:
    assert [Quantity(text).format for text in ("1k", "1Ki", "1e3")] == [
        Format.DECIMAL_SI,
        Format.BINARY_SI,
        Format.DECIMAL_EXPONENT,
    ]


def test_amounts_beyond_exa_keep_their_suffix() -> None:
    assert Quantity("1000E").canonical == "1000E"
    assert (Quantity("4Ei") * 1024).canonical == "4096Ei"


@pytest.mark.parametrize("text", ["1e999999999", "1e99999999999999999999", "9" * 5000, "1e4001"])
def test_absurd_sizes_are_refused_without_using_memory(text: str) -> None:
    with pytest.raises(DecodeError, match="more than 4000 digits"):
        Quantity.parse(text)


def test_absurdly_small_amounts_round_up_to_a_billionth() -> None:
    assert Quantity("1e-999999999").canonical == "1e-9"
    assert Quantity("0e-999999999").canonical == "0"


def test_quantities_are_immutable() -> None:
    quantity = Quantity("1")

    with pytest.raises(AttributeError):
        quantity.text = "2"  # type: ignore[misc]  # the point of the test
    with pytest.raises(AttributeError):
        quantity.unit = "cores"  # type: ignore[attr-defined]  # the point of the test


def test_copies_and_pickles_are_equal() -> None:
    quantity = Quantity("1024Mi")

    assert copy.copy(quantity) is quantity
    assert copy.deepcopy(quantity) is quantity
    assert pickle.loads(pickle.dumps(quantity)).text == "1024Mi"
