"""How long ago something was, as people read it: `5s`, `2m3s`, `3h`, `5d`.

Two or three figures, fewer the longer it is, exactly as Kubernetes rounds. Nothing here reads a clock.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kubewright.api.times import parse_time
from kubewright.apiserver.builtin.trees import Tree, peek
from kubewright.errors import DecodeError

__all__ = ("age", "age_of", "human_duration", "moment")

_UNKNOWN: Final = "<unknown>"
_INVALID: Final = "<invalid>"
_ZERO: Final = datetime(1, 1, 1, tzinfo=UTC)
_MINUTE: Final = 60
_HOUR: Final = 3600
_LONGEST: Final = (2**63 - 1) // 10**9
"""The most seconds a Go duration can hold; what is longer ago counts as this."""


def moment(text: Any) -> datetime | None:
    """The time a field says; None if it says none, or the zero time."""
    if not text:
        return None
    try:
        found = parse_time(text)
    except DecodeError:
        return None
    return None if found == _ZERO else found


def age(text: Any, now: datetime) -> str:
    """How long ago a time is, as it stands in a field."""
    found = moment(text)
    return _UNKNOWN if found is None else human_duration(now - found)


def age_of(tree: Tree, now: datetime) -> str:
    """How old an object is."""
    return age(peek(tree, "metadata", "creationTimestamp"), now)


def human_duration(duration: timedelta) -> str:
    """A duration in at most two units. Clocks may differ a little: up to two seconds ahead still is now."""
    micros = duration // timedelta(microseconds=1)
    # Towards zero, as Go cuts: -1.9 s are -1 s.
    seconds = min(abs(micros) // 1_000_000, _LONGEST) * (1 if micros >= 0 else -1)
    if seconds < -1:
        return _INVALID
    if micros < 0:
        return "0s"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds // _MINUTE, "m", seconds % _MINUTE, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds // _HOUR, "h", seconds % _HOUR // _MINUTE, "m")
    return _long(seconds // _HOUR)


def _long(hours: int) -> str:
    days = hours // 24
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"
