"""Which times a schedule means."""

from datetime import UTC, datetime

import pytest

from cronjob.api.v2 import CronSchedule
from cronjob.schedule import latest_until, next_after, numbers


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "following"),
    [
        (CronSchedule(), "2030-01-01 12:01"),
        (CronSchedule(minute="*/15"), "2030-01-01 12:15"),
        (CronSchedule(minute="0", hour="9-17/4"), "2030-01-01 13:00"),
        (CronSchedule(minute="0", hour="0", day_of_month="1"), "2030-02-01 00:00"),
        (CronSchedule(minute="0", hour="0", day_of_week="0"), "2030-01-06 00:00"),
        (CronSchedule(minute="0", hour="0", day_of_month="5", day_of_week="5"), "2030-01-04 00:00"),
        (CronSchedule(minute="0", hour="0", day_of_month="29", month="2"), "2032-02-29 00:00"),
    ],
)
def test_the_next_time(schedule: CronSchedule, following: str) -> None:
    assert next_after(schedule, at("2030-01-01 12:00")) == at(following)


def test_a_time_that_never_comes() -> None:
    assert next_after(CronSchedule(day_of_month="30", month="2"), at("2030-01-01")) is None


def test_of_the_times_that_were_missed_the_last() -> None:
    hourly = CronSchedule(minute="0")
    now = at("2030-01-01 12:30")

    assert latest_until(hourly, now, after=at("2029-12-24")) == at("2030-01-01 12:00")
    assert latest_until(hourly, now, after=at("2030-01-01 12:00")) is None


@pytest.mark.parametrize("text", ["60", "x", "5-1", "*/0", "", "1-2-3"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not"):
        numbers(CronSchedule(minute=text), "minute")
