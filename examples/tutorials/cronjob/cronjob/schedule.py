"""Cron's notation: which times a schedule means. Plain functions, without a cluster."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

from cronjob.api.v2 import CronSchedule

BOUNDS = {"minute": (0, 59), "hour": (0, 23), "day_of_month": (1, 31), "month": (1, 12), "day_of_week": (0, 6)}
FIELDS = tuple(BOUNDS)
FAR = 8 * 366
"""Days after which a time that has not come never comes: leap days may be eight years apart."""


def numbers(schedule: CronSchedule, field: str) -> set[int]:
    """The numbers that a field stands for; ValueError says what is wrong with it."""
    low, high = BOUNDS[field]
    found: set[int] = set()
    for part in getattr(schedule, field).split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        try:
            start = low if span == "*" else int(first)
            end = int(last) if dash else high if span == "*" or step else start
            every = int(step) if step else 1
        except ValueError:
            raise ValueError(f"{part!r} is not a number, nor a range like 1-5, nor a step like */5") from None
        if not low <= start <= end <= high or every < 1:
            raise ValueError(f"{part!r} is not within {low}-{high}")
        found.update(range(start, end + 1, every))
    return found


def next_after(schedule: CronSchedule, now: datetime) -> datetime | None:
    """The first time after now; None if there is none, as for the 30th of February."""
    days = (now.date() + timedelta(days=number) for number in range(FAR))
    return next((at for day in days for at in times(schedule, day) if at > now), None)


def latest_until(schedule: CronSchedule, now: datetime, *, after: datetime) -> datetime | None:
    """The last time until now that is later than `after`; None if there is none."""
    days = (now.date() - timedelta(days=number) for number in range(min((now - after).days + 2, FAR)))
    found = next((at for day in days for at in reversed(list(times(schedule, day))) if at <= now), None)
    return found if found is not None and found > after else None


def times(schedule: CronSchedule, day: date) -> Iterator[datetime]:
    """The times on a day, in order."""
    if day.month not in numbers(schedule, "month") or not is_on(schedule, day):
        return
    for hour in sorted(numbers(schedule, "hour")):
        for minute in sorted(numbers(schedule, "minute")):
            yield datetime.combine(day, time(hour, minute), UTC)


def is_on(schedule: CronSchedule, day: date) -> bool:
    """Whether a day fits; if both kinds of days are restricted, either of them may fit, as cron has it."""
    by_month = day.day in numbers(schedule, "day_of_month")
    by_week = day.isoweekday() % 7 in numbers(schedule, "day_of_week")
    if "*" in (schedule.day_of_month, schedule.day_of_week):
        return by_month and by_week
    return by_month or by_week
