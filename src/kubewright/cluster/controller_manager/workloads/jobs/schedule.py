"""Cron schedules: five fields or a descriptor such as `@hourly`, and their next time.

    Schedule.parse("*/15 9-17 * * mon-fri").next(moment)

Minute, hour, day of the month, month, day of the week; lists, ranges, steps and names, as github.com/robfig/cron. If
both days are restricted, either suffices. Times are in a time zone; an hour that does not exist there is skipped. Pure;
called by `cronjob`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, final
from zoneinfo import ZoneInfo

from kubewright.api.times import Duration
from kubewright.errors import DecodeError

__all__ = ("Schedule", "time_zone")

_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTH_NAMES: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS: Final = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS: Final = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: Final[tuple[tuple[str, int, int, dict[str, int]], ...]] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 6, _DAYS),
)
_RANGE: Final = re.compile(r"([^-/]+)(?:-([^-/]+))?(?:/([0-9]+))?")
_YEARS: Final = 5
"""The search limit: a schedule without a time in so many years has none, such as the 30th of February."""


def time_zone(name: str | None) -> tzinfo | None:
    """The time zone of that name, UTC if it is empty; None if it is unknown."""
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # KeyError for an unknown name, the others for a folder or an invalid path
        return None


@final
class Schedule:
    """A parsed cron schedule in a time zone."""

    def __init__(
        self, fields: tuple[frozenset[int], ...], *, day_star: bool, every: timedelta | None = None, zone: tzinfo = UTC
    ) -> None:
        """`day_star` says that one of the two day fields is a star, so that both must match; otherwise either does."""
        self._fields = fields
        self._day_star = day_star
        self._every = every
        self._zone = zone

    @classmethod
    def parse(cls, text: str, *, zone: tzinfo = UTC) -> Schedule:
        """Parse a schedule; DecodeError if it is invalid."""
        tokens = text.split()
        if tokens and tokens[0].startswith(("TZ=", "CRON_TZ=")):
            given = time_zone(tokens[0].partition("=")[2])
            if given is None:
                raise DecodeError(f"the schedule {text!r} names an unknown time zone")
            return cls.parse(" ".join(tokens[1:]), zone=given)
        if tokens[:1] == ["@every"] and len(tokens) == 2:
            every = Duration.parse(tokens[1]).to_timedelta()
            return cls((), day_star=True, every=max(timedelta(seconds=1), every), zone=zone)
        expanded = _DESCRIPTORS.get(text.strip(), text).split()
        if len(expanded) != len(_FIELDS):
            raise DecodeError(
                f"the schedule {text!r} has {len(expanded)} fields; it needs five, or a word like @hourly"
            )
        parsed = [_field(part, *limits) for part, limits in zip(expanded, _FIELDS, strict=True)]
        values = tuple(values for values, _ in parsed)
        return cls(values, day_star=parsed[2][1] or parsed[4][1], zone=zone)

    def next(self, after: datetime) -> datetime | None:
        """The first time after `after`, in UTC; None if there is none."""
        try:
            return self._next(after)
        except OverflowError:  # beyond the year 9999
            return None

    def _next(self, after: datetime) -> datetime | None:
        if self._every is not None:
            return after.astimezone(UTC).replace(microsecond=0) + self._every
        candidate = after.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        limit = candidate + timedelta(days=366 * _YEARS)
        minutes, hours, _, months, _ = self._fields
        while candidate < limit:
            local = candidate.astimezone(self._zone)
            if local.month not in months:
                year, month = (local.year + 1, 1) if local.month == 12 else (local.year, local.month + 1)
                candidate = datetime(year, month, 1, tzinfo=self._zone).astimezone(UTC)
            elif not self._is_day(local):
                next_day = local.date() + timedelta(days=1)
                midnight = datetime(next_day.year, next_day.month, next_day.day, tzinfo=self._zone)
                candidate = max(midnight.astimezone(UTC), candidate + timedelta(minutes=1))
            elif local.hour not in hours:
                candidate += timedelta(minutes=60 - local.minute)
            elif local.minute not in minutes:
                candidate += timedelta(minutes=1)
            else:
                return candidate
        return None

    def _is_day(self, local: datetime) -> bool:
        in_month = local.day in self._fields[2]
        in_week = local.isoweekday() % 7 in self._fields[4]
        return (in_month and in_week) if self._day_star else (in_month or in_week)


def _field(text: str, title: str, minimum: int, maximum: int, names: dict[str, int]) -> tuple[frozenset[int], bool]:
    """The values of a field, and whether it is a star."""
    values: set[int] = set()
    star = False
    for part in text.lower().split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise DecodeError(f"the {title} {part!r} cannot be read; write a number, a range like 1-5, or */2")
        first, last, step = match.groups()
        if first in ("*", "?") and last is None:
            low, high = minimum, maximum
            star = star or int(step or 1) == 1
        else:
            low = _number(first, title, names)
            high = _number(last, title, names) if last is not None else maximum if step is not None else low
        if not minimum <= low <= high <= maximum or step == "0":
            raise DecodeError(f"the {title} {part!r} is out of range; it goes from {minimum} to {maximum}")
        values.update(range(low, high + 1, int(step or 1)))
    return frozenset(values), star


def _number(text: str, title: str, names: dict[str, int]) -> int:
    if text in names:
        return names[text]
    if not (text.isascii() and text.isdigit()):
        raise DecodeError(f"the {title} {text!r} is not a number")
    return int(text)
