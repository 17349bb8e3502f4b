"""Times and durations in objects of built-in kinds: canonical texts, and the errors of Go's time.Parse.

Each function returns the canonical text or raises ValueError with Go's message.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from kubewright.api.times import Duration, format_micro_time, format_time, parse_time
from kubewright.errors import DecodeError

__all__ = ("canonical_duration", "canonical_micro_time", "canonical_time")

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
_PART: Final = re.compile(r"([0-9]*(?:\.[0-9]*)?)([^.0-9]*)")
_UNITS: Final = ("ns", "us", "\u00b5s", "\u03bcs", "ms", "s", "m", "h")
_STEPS: Final = (
    ("2006", re.compile("[0-9]{4}")),
    ("-", re.compile("-")),
    ("01", re.compile("[0-9]{2}")),
    ("-", re.compile("-")),
    ("02", re.compile("[0-9]{2}")),
    ("T", re.compile("T")),
    ("15", re.compile("[0-9]{2}")),
    (":", re.compile(":")),
    ("04", re.compile("[0-9]{2}")),
    (":", re.compile(":")),
    ("05", re.compile(r"[0-9]{2}(?:\.[0-9]+)?")),
    ("Z07:00", re.compile("Z|[+-][0-9]{2}:[0-9]{2}")),
)
_RANGES: Final = {"01": (1, 12, "month"), "15": (0, 23, "hour"), "04": (0, 59, "minute"), "05": (0, 59, "second")}
_MICRO_STEPS: Final = (
    *_STEPS[:-2],
    ("05", re.compile("[0-9]{2}")),
    (".000000", re.compile(r"\.[0-9]{6}")),
    _STEPS[-1],
)
_MICRO_TIME: Final = re.compile("".join(pattern.pattern.join(("(?:", ")")) for _, pattern in _MICRO_STEPS))


def canonical_time(text: str) -> str:
    """A metav1.Time: whole seconds, in UTC."""
    try:
        return format_time(parse_time(text))
    except DecodeError:
        raise ValueError(_parse_error(text, _LAYOUT)) from None


def canonical_micro_time(text: str) -> str:
    """A metav1.MicroTime: six digits of fraction, in UTC."""
    try:
        if not _MICRO_TIME.fullmatch(text):
            raise DecodeError(text)
        return format_micro_time(parse_time(text))
    except DecodeError:
        raise ValueError(_parse_error(text, _MICRO_LAYOUT)) from None


@lru_cache(maxsize=512)
def canonical_duration(text: str) -> str:
    """A metav1.Duration as Go prints it: `1m30s` for `90s`."""
    try:
        return str(Duration.parse(text))
    except DecodeError:
        raise ValueError(_duration_error(text)) from None


def _duration_error(text: str) -> str:
    position = 1 if text[:1] in ("+", "-") else 0
    while position < len(text):
        match = _PART.match(text, position)
        assert match is not None  # every part may be empty
        number, unit = match.groups()
        if not any(letter.isdigit() for letter in number):
            break
        if not unit:
            return f'time: missing unit in duration "{text}"'
        if unit not in _UNITS:
            return f'time: unknown unit "{unit}" in duration "{text}"'
        position = match.end()
    return f'time: invalid duration "{text}"'


def _parse_error(text: str, layout: str) -> str:
    position = 0
    for step, pattern in _STEPS if layout == _LAYOUT else _MICRO_STEPS:
        match = pattern.match(text, position)
        if match is None:
            return f'parsing time "{text}" as "{layout}": cannot parse "{text[position:]}" as "{step}"'
        low, high, word = _RANGES.get(step, (0, 0, ""))
        if word and not low <= int(match[0][:2]) <= high:
            return f'parsing time "{text}": {word} out of range'
        position = match.end()
    if position < len(text):
        return f'parsing time "{text}": extra text: "{text[position:]}"'
    return f'parsing time "{text}": day out of range'
