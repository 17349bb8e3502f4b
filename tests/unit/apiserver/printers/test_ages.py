"""How long ago something was, as people read it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kubewright.apiserver.printers.ages import human_duration, timestamp_since

NOW = datetime(2024, 5, 1, 10, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (timedelta(), "0s"),
        (timedelta(seconds=-1.9), "0s"),
        (timedelta(seconds=-2), "<invalid>"),
        (timedelta(seconds=1.9), "1s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(seconds=120), "2m"),
        (timedelta(seconds=123), "2m3s"),
        (timedelta(minutes=9, seconds=59), "9m59s"),
        (timedelta(minutes=10, seconds=5), "10m"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3), "3h"),
        (timedelta(hours=7, minutes=59), "7h59m"),
        (timedelta(hours=8, minutes=30), "8h"),
        (timedelta(hours=47), "47h"),
        (timedelta(hours=48), "2d"),
        (timedelta(days=7, hours=23), "7d23h"),
        (timedelta(days=8, hours=5), "8d"),
        (timedelta(days=729), "729d"),
        (timedelta(days=730), "2y"),
        (timedelta(days=2900), "7y345d"),
        (timedelta(days=8 * 365), "8y"),
        (timedelta(days=365 * 1000), "292y"),
    ],
    ids=str,
)
def test_a_duration_has_two_or_three_figures(duration: timedelta, expected: str) -> None:
    assert human_duration(duration) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "<unknown>"),
        ("", "<unknown>"),
        ("0001-01-01T00:00:00Z", "<unknown>"),
        ("2024-05-01T09:58:00Z", "2m"),
        ("2024-05-01T09:58:00.500000Z", "119s"),
    ],
)
def test_an_age_is_computed_from_a_field(text: str | None, expected: str) -> None:
    assert timestamp_since(text, NOW) == expected
