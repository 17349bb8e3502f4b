"""Validates the schedules and time zones of CronJobs, with the errors of github.com/robfig/cron.

It does not compute times.
"""

from __future__ import annotations

import re
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubewright.apiserver.builtin.golang.times import canonical_duration

__all__ = ("schedule_error", "time_zone_errors")

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_DAYS: Final = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_BOUNDS: Final[tuple[tuple[int, int, dict[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_NICKNAMES: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


class _ParseError(Exception):
    """The schedule does not parse; the text is the parser's."""


def schedule_error(schedule: str) -> str:
    """The parser's error for a schedule; empty if it is valid."""
    try:
        _read(schedule)
    except _ParseError as exc:
        return str(exc)
    return ""


def _read(schedule: str) -> None:
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        zone, _, schedule = schedule.partition("=")[2].partition(" ")
        if not _exists(zone):
            raise _ParseError(f"provided bad location {zone}: unknown time zone {zone}")
        schedule = schedule.strip()
    if schedule.startswith("@"):
        _read_nickname(schedule)
        return
    parts = schedule.split()
    if len(parts) != 5:
        shown = " ".join(parts)
        raise _ParseError(f"expected exactly 5 fields, found {len(parts)}: [{shown}]")
    for part, (low, high, names) in zip(parts, _BOUNDS, strict=True):
        for expression in filter(None, part.split(",")):
            _read_range(expression, low, high, names)


def _read_nickname(name: str) -> None:
    if name in _NICKNAMES:
        return
    if name.startswith("@every "):
        length = name.removeprefix("@every ")
        try:
            canonical_duration(length)
        except ValueError as exc:
            raise _ParseError(f"failed to parse duration {name}: {exc}") from None
        return
    raise _ParseError(f"unrecognized descriptor: {name}")


def _read_range(expression: str, low: int, high: int, names: dict[str, int]) -> None:
    span, *steps = expression.split("/")
    ends = span.split("-")
    if ends[0] in ("*", "?"):
        start, end = low, high
    else:
        start = _number(ends[0], names)
        if len(ends) > 2:
            raise _ParseError(f"too many hyphens: {expression}")
        end = _number(ends[1], names) if len(ends) == 2 else start
    if len(steps) > 1:
        raise _ParseError(f"too many slashes: {expression}")
    step = _number(steps[0], {}) if steps else 1
    if steps and len(ends) == 1:
        end = high
    if start < low:
        raise _ParseError(f"beginning of range ({start}) below minimum ({low}): {expression}")
    if end > high:
        raise _ParseError(f"end of range ({end}) above maximum ({high}): {expression}")
    if start > end:
        raise _ParseError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise _ParseError(f"step of range should be a positive number: {expression}")


def _number(text: str, names: dict[str, int]) -> int:
    named = names.get(text.lower())
    if named is not None:
        return named
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit():
        raise _ParseError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if text.startswith("-"):
        raise _ParseError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def _exists(zone: str) -> bool:
    if zone in ("", "UTC", "Local"):
        return True
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def time_zone_errors(zone: str) -> list[str]:
    """validateTimeZone."""
    if not zone:
        return ["timeZone must be nil or non-empty string"]
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            return [f"unknown time zone {zone}"]
    errors: list[str] = []
    if zone.lower() == "local":
        errors.append("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
    if not _exists(zone):
        errors.append(f"unknown time zone {zone}")
    return errors
