"""Times and durations as Kubernetes writes them: `2024-05-01T10:00:00Z`, microseconds for leases, `1h30m0s`.

Times are ordinary aware datetimes in UTC. `MicroTime` is one too; the class only declares that a field is written with
microseconds. A `Duration` counts nanoseconds, as Go does: a timedelta would lose the last three digits. Nothing here
reads a clock.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import total_ordering
from typing import Final, Self, final

from kubewright.errors import DecodeError

__all__ = ("Duration", "MicroTime", "format_micro_time", "format_time", "parse_time", "seconds_after")

_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)


def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds; a fraction is truncated, as the server does."""
    return f"{_utc(moment).isoformat()[:19]}Z"


def format_micro_time(moment: datetime) -> str:
    """RFC 3339 in UTC with exactly six digits of fraction."""
    return f"{_utc(moment).isoformat(timespec='microseconds')[:26]}Z"


def parse_time(text: str) -> datetime:  # hot
    """RFC 3339 to an aware datetime in UTC; digits beyond microseconds are dropped."""
    # The fast path is in C. It checks the separators, because fromisoformat accepts other formats as well.
    if len(text) == 20 and text[4:8:3] == "--" and text[10::9] == "TZ" and text[11:13] < "24":
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    return _parse_any_time(text)


def seconds_after(moment: datetime, seconds: float) -> datetime:
    """The moment so many seconds later, or earlier: the last or first one there is, if that is beyond all dates.

    Fields such as `activeDeadlineSeconds` take any number of 64 bits.
    """
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return (_LAST if seconds > 0 else _FIRST).replace(tzinfo=moment.tzinfo)


def _parse_any_time(text: str) -> datetime:
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise DecodeError(f"{text!r} is not a time in RFC 3339; write it like 2024-05-01T10:00:00Z")
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = match.groups("")
    micro = int(fraction[:6].ljust(6, "0"))
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), micro, UTC)
        if not sign:
            return moment
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        return moment + offset if sign == "-" else moment - offset
    except (ValueError, OverflowError) as exc:
        raise DecodeError(f"{text!r} is not a time: {exc}") from exc


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is UTC:
        return moment
    if moment.utcoffset() is None:
        raise ValueError(f"the time {moment.isoformat()} has no time zone; make it with tzinfo=UTC")
    return moment.astimezone(UTC)


class MicroTime(datetime):
    """A time that JSON has with microseconds, such as a Lease's renewTime."""

    @classmethod
    def of(cls, moment: datetime) -> Self:
        """The same moment, in UTC."""
        utc = _utc(moment)
        return cls(utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond, UTC)

    @classmethod
    def parse(cls, text: str) -> Self:
        """From RFC 3339."""
        return cls.of(parse_time(text))


_MICROSECOND: Final = 10**3
_MILLISECOND: Final = 10**6
_SECOND: Final = 10**9
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_LIMIT: Final = 2**63
_UNITS: Final = {
    "ns": 1,
    "us": _MICROSECOND,
    "\u00b5s": _MICROSECOND,  # the micro sign
    "\u03bcs": _MICROSECOND,  # the Greek letter mu, which looks the same
    "ms": _MILLISECOND,
    "s": _SECOND,
    "m": _MINUTE,
    "h": _HOUR,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^.0-9]*)")


@final
@total_ordering
class Duration:
    """A length of time, in Go's notation: `Duration("1h30m") + timedelta(seconds=5)`.

    Exact to the nanosecond, at most 292 years either way. Compares with timedeltas; a datetime takes `to_timedelta()`.
    As an attribute of a kind, `Annotated[Duration, Field(format="duration")]` has the server refuse what is none.
    """

    __slots__ = ("_nanoseconds",)

    def __init__(self, value: str | timedelta | Duration | None = None, *, nanoseconds: int = 0) -> None:
        if isinstance(value, str):
            nanoseconds += _parse_duration(value)
        elif value is not None:
            nanoseconds += _nanoseconds(value)
        if not -_LIMIT <= nanoseconds < _LIMIT:
            raise DecodeError(f"a duration of {nanoseconds} ns is out of range; the limit is about 292 years")
        self._nanoseconds = nanoseconds

    @classmethod
    def parse(cls, text: str) -> Duration:
        """From text such as `90s`, `1.5h` or `-1m30s`."""
        return cls(nanoseconds=_parse_duration(text))

    @classmethod
    def from_timedelta(cls, delta: timedelta) -> Duration:
        """The same length of time."""
        return cls(delta)

    @property
    def nanoseconds(self) -> int:
        """The exact length."""
        return self._nanoseconds

    @property
    def seconds(self) -> float:
        """The length in seconds, for sleeping and for deadlines."""
        return self._nanoseconds / _SECOND

    def to_timedelta(self) -> timedelta:
        """Rounded down to microseconds, the finest a timedelta has."""
        return timedelta(microseconds=self._nanoseconds // _MICROSECOND)

    def __str__(self) -> str:
        return _print_duration(self._nanoseconds)

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"

    def __bool__(self) -> bool:
        return self._nanoseconds != 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Duration | timedelta):
            return NotImplemented
        return self._nanoseconds == _nanoseconds(other)

    def __lt__(self, other: Duration | timedelta) -> bool:
        if not isinstance(other, Duration | timedelta):
            return NotImplemented
        return self._nanoseconds < _nanoseconds(other)

    def __hash__(self) -> int:
        # Equal values need equal hashes; a duration that no timedelta can express equals none.
        exact = self._nanoseconds % _MICROSECOND == 0
        return hash(self.to_timedelta()) if exact else hash(self._nanoseconds)

    def __add__(self, other: Duration | timedelta) -> Duration:
        if not isinstance(other, Duration | timedelta):
            return NotImplemented
        return Duration(nanoseconds=self._nanoseconds + _nanoseconds(other))

    __radd__ = __add__

    def __sub__(self, other: Duration | timedelta) -> Duration:
        if not isinstance(other, Duration | timedelta):
            return NotImplemented
        return Duration(nanoseconds=self._nanoseconds - _nanoseconds(other))

    def __mul__(self, factor: int | float) -> Duration:
        if not isinstance(factor, int | float):
            return NotImplemented
        return Duration(nanoseconds=int(self._nanoseconds * factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: int | float) -> Duration:
        if not isinstance(divisor, int | float):
            return NotImplemented
        return Duration(nanoseconds=int(self._nanoseconds / divisor))

    def __neg__(self) -> Duration:
        return Duration(nanoseconds=-self._nanoseconds)

    def __abs__(self) -> Duration:
        return Duration(nanoseconds=abs(self._nanoseconds))

    def __copy__(self) -> Duration:
        return self

    def __deepcopy__(self, memo: object) -> Duration:
        return self

    def __reduce__(self) -> tuple[type[Duration], tuple[str]]:
        return (Duration, (str(self),))


def _nanoseconds(value: timedelta | Duration) -> int:
    if isinstance(value, Duration):
        return value.nanoseconds
    return (value.days * 86400 + value.seconds) * _SECOND + value.microseconds * _MICROSECOND


def _parse_duration(text: str) -> int:
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0
    if not unsigned:
        raise DecodeError(f"{text!r} is not a duration; write it like 90s, 1h30m or 500ms")
    total, position = 0, 0
    while position < len(unsigned):
        match = _PART.match(unsigned, position)
        assert match is not None  # every part of the pattern may be empty
        total += _part(text, *match.groups(""))
        position = match.end()
    negative = text[0] == "-"
    if total > _LIMIT - (not negative):
        raise DecodeError(f"{text!r} is not a usable duration: it is longer than about 292 years")
    return -total if negative else total


def _part(text: str, whole: str, fraction: str, unit: str) -> int:
    if not whole and not fraction:
        raise DecodeError(f"{text!r} is not a duration: a number is missing; write it like 90s, 1h30m or 500ms")
    if not unit:
        raise DecodeError(f"{text!r} is not a duration: a unit is missing; add one of ns us ms s m h")
    size = _UNITS.get(unit)
    if size is None:
        raise DecodeError(f"{text!r} is not a duration: the unit {unit!r} is unknown; use one of ns us ms s m h")
    # 19 digits are more than 2**63 nanoseconds can need, before the point and after it.
    if len(whole.lstrip("0")) > 19:
        raise DecodeError(f"{text!r} is not a usable duration: it is longer than about 292 years")
    return int(whole or "0") * size + _fraction(fraction, size)


def _fraction(digits: str, size: int) -> int:
    """A fraction of a unit, cut to nanoseconds.

    In floating point on purpose: the same steps as in Go give the same last digit.
    """
    number, scale = 0, 1.0
    for digit in digits:
        longer = number * 10 + int(digit)
        if number > (_LIMIT - 1) // 10 or longer > _LIMIT:
            break
        number, scale = longer, scale * 10
    return int(number * (size / scale)) if number else 0


def _print_duration(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    for size, unit in ((_MICROSECOND, "ns"), (_MILLISECOND, "\u00b5s"), (_SECOND, "ms")):
        if rest < size:
            return f"{sign}{_decimal(rest, size // 1000)}{unit}"
    hours, rest = divmod(rest, _HOUR)
    minutes, rest = divmod(rest, _MINUTE)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_decimal(rest, _SECOND)}s"


def _decimal(amount: int, one: int) -> str:
    """amount / one, where one is a power of ten, with no more digits than needed."""
    whole, rest = divmod(amount, one)
    return f"{whole}.{rest:0{len(str(one)) - 1}d}".rstrip("0") if rest else str(whole)
