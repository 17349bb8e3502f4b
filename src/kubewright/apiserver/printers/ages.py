"""Human-readable durations: `5s`, `2m3s`, `3h`, `5d`.

They are rounded as by k8s.io/apimachinery/pkg/util/duration/duration.go. Nothing in here reads a clock.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kubewright.api.times import parse_time
from kubewright.apiserver.builtin.trees import Tree, peek
from kubewright.errors import DecodeError

__all__ = ("age_of", "human_duration", "parse_timestamp", "timestamp_since")

_UNKNOWN: Final = "<unknown>"
_INVALID: Final = "<invalid>"
_ZERO: Final = datetime(1, 1, 1, tzinfo=UTC)
_MINUTE: Final = 60
_HOUR: Final = 3600
_MAX_SECONDS: Final = (2**63 - 1) // 10**9
"""The seconds of the longest time.Duration; Go's subtraction of times saturates there."""


def parse_timestamp(text: Any) -> datetime | None:
    """The time in a field; None if it is empty or the zero time."""
    if not text:
        return None
    try:
        found = parse_time(text)
    except DecodeError:
        return None
    return None if found == _ZERO else found


def timestamp_since(text: Any, now: datetime) -> str:
    """How long ago the time in a field is."""
    found = parse_timestamp(text)
    return _UNKNOWN if found is None else human_duration(now - found)


def age_of(tree: Tree, now: datetime) -> str:
    """The age of an object."""
    return timestamp_since(peek(tree, "metadata", "creationTimestamp"), now)


def human_duration(duration: timedelta) -> str:
    """A duration in at most two units. Up to two seconds in the future is now: clocks differ a little."""
    micros = duration // timedelta(microseconds=1)
    # Truncated towards zero, as Go's conversion to int: -1.9 s are -1 s.
    seconds = min(abs(micros) // 1_000_000, _MAX_SECONDS) * (1 if micros >= 0 else -1)
    if seconds < -1:
        return _INVALID
    if micros < 0:
        return "0s"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two_units(seconds // _MINUTE, "m", seconds % _MINUTE, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two_units(seconds // _HOUR, "h", seconds % _HOUR // _MINUTE, "m")
    return _hours_text(seconds // _HOUR)


def _hours_text(hours: int) -> str:
    days = hours // 24
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two_units(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two_units(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two_units(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"
