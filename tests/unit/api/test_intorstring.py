"""What numbers or percentages mean."""

from __future__ import annotations

import msgspec
import pytest

from kubewright.api.intorstring import IntOrString, is_percent, scaled_value
from kubewright.errors import DecodeError


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [(5, 10, 5, 5), (-1, 10, -1, -1), ("25%", 10, 3, 2), ("0%", 10, 0, 0), ("100%", 7, 7, 7), ("150%", 3, 5, 4)],
)
def test_scaled_value(value: IntOrString, total: int, up: int, down: int) -> None:
    assert up == scaled_value(value, total, round_up=True)
    assert down == scaled_value(value, total, round_up=False)


@pytest.mark.parametrize("value", ["5", "", "%", "x%", "1.5%", "5 %", "1_0%"])
def test_a_word_that_is_no_percentage_has_no_scaled_value(value: str) -> None:
    assert not is_percent(value)
    with pytest.raises(DecodeError, match="is neither a whole number nor a percentage"):
        scaled_value(value, 10, round_up=True)


def test_percentages_are_recognised() -> None:
    assert is_percent("25%")
    assert not is_percent(25)


def test_both_forms_go_through_json() -> None:
    class Update(msgspec.Struct):
        surge: IntOrString

    for data in (b'{"surge":1}', b'{"surge":"25%"}'):
        assert data == msgspec.json.encode(msgspec.json.decode(data, type=Update))
