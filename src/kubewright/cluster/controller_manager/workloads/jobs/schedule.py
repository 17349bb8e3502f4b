"""Cron schedules: five fields, or a word such as `@hourly`, and when they come next.

    Schedule.parse("*/15 9-17 * * mon-fri").next(moment)

Minute, hour, day of the month, month, day of the week; lists, ranges, steps and names. If both days are restricted,
either will do, as it has always been. Times are those of a time zone; an hour that does not exist there is skipped.
Pure.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, final
from zoneinfo import ZoneInfo

from kubewright.api.times import Duration
from kubewright.errors import DecodeError

__all__ = ("Schedule", "time_zone")

_WORDS: Final = {
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
"""A schedule that does not come within so many years never comes, such as the 30th of February."""


def time_zone(name: str | None) -> tzinfo | None:
    """The time zone of that name, UTC if none is given; None if nobody knows it."""
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # not found is a KeyError; a folder or a path is one of the others
        return None


@final
class Schedule:
    """When something is to happen."""

    def __init__(
        self, fields: tuple[frozenset[int], ...], *, any_day: bool, every: timedelta | None = None, zone: tzinfo = UTC
    ) -> None:
        """`any_day` says that one of the two days is not restricted, so that both have to fit."""
        self._fields = fields
        self._any_day = any_day
        self._every = every
        self._zone = zone

    @classmethod
    def parse(cls, text: str, *, zone: tzinfo = UTC) -> Schedule:
        """From text; a DecodeError says what is wrong with it."""
        words = text.split()
        if words and words[0].startswith(("TZ=", "CRON_TZ=")):
            given = time_zone(words[0].partition("=")[2])
            if given is None:
                raise DecodeError(f"the schedule {text!r} names a time zone nobody knows")
            return cls.parse(" ".join(words[1:]), zone=given)
        if words[:1] == ["@every"] and len(words) == 2:
            every = Duration.parse(words[1]).to_timedelta()
            return cls((), any_day=True, every=max(timedelta(seconds=1), every), zone=zone)
        expanded = _WORDS.get(text.strip(), text).split()
        if len(expanded) != len(_FIELDS):
            raise DecodeError(
                f"the schedule {text!r} has {len(expanded)} fields; it needs five, or a word like @hourly"
            )
        parsed = [_field(part, *limits) for part, limits in zip(expanded, _FIELDS, strict=True)]
        values = tuple(values for values, _ in parsed)
        return cls(values, any_day=parsed[2][1] or parsed[4][1], zone=zone)

    def next(self, after: datetime) -> datetime | None:
        """The first time after a moment, in UTC; None if it never comes."""
        if self._every is not None:
            return after.astimezone(UTC).replace(microsecond=0) + self._every
        moment = after.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        limit = moment + timedelta(days=366 * _YEARS)
        minutes, hours, _, months, _ = self._fields
        while moment < limit:
            local = moment.astimezone(self._zone)
            if local.month not in months:
                year, month = (local.year + 1, 1) if local.month == 12 else (local.year, local.month + 1)
                moment = datetime(year, month, 1, tzinfo=self._zone).astimezone(UTC)
            elif not self._is_day(local):
                following = local.date() + timedelta(days=1)
                midnight = datetime(following.year, following.month, following.day, tzinfo=self._zone)
                moment = max(midnight.astimezone(UTC), moment + timedelta(minutes=1))
            elif local.hour not in hours:
                moment += timedelta(minutes=60 - local.minute)
            elif local.minute not in minutes:
                moment += timedelta(minutes=1)
            else:
                return moment
        return None

    def _is_day(self, local: datetime) -> bool:
        in_month = local.day in self._fields[2]
        in_week = local.isoweekday() % 7 in self._fields[4]
        return (in_month and in_week) if self._any_day else (in_month or in_week)


def _field(text: str, title: str, least: int, most: int, names: dict[str, int]) -> tuple[frozenset[int], bool]:
    """The values of a field, and whether it is a star."""
    values: set[int] = set()
    star = False
    for part in text.lower().split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise DecodeError(f"the {title} {part!r} cannot be read; write a number, a range like 1-5, or */2")
        first, last, step = match.groups()
        if first in ("*", "?") and last is None:
            low, high = least, most
            star = star or int(step or 1) == 1
        else:
            low = _number(first, title, names)
            high = _number(last, title, names) if last is not None else most if step is not None else low
        if not least <= low <= high <= most or step == "0":
            raise DecodeError(f"the {title} {part!r} is out of range; it goes from {least} to {most}")
        values.update(range(low, high + 1, int(step or 1)))
    return frozenset(values), star


def _number(text: str, title: str, names: dict[str, int]) -> int:
    if text in names:
        return names[text]
    if not (text.isascii() and text.isdigit()):
        raise DecodeError(f"the {title} {text!r} is not a number")
    return int(text)
