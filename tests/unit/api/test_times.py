"""What times and durations promise. The tables were printed by Go's time package and apimachinery 0.35."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from kubewright.api.times import Duration, MicroTime, format_micro_time, format_time, parse_time
from kubewright.errors import DecodeError

# fmt: off
TIMES = (
    ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z", "2024-01-02T03:04:05.000000Z"),
    ("2024-01-02T03:04:05.123456Z", "2024-01-02T03:04:05Z", "2024-01-02T03:04:05.123456Z"),
    ("2024-01-02T03:04:05.123456789Z", "2024-01-02T03:04:05Z", "2024-01-02T03:04:05.123456Z"),
    ("2024-01-02T03:04:05.1Z", "2024-01-02T03:04:05Z", "2024-01-02T03:04:05.100000Z"),
    ("2024-01-02T03:04:05+02:00", "2024-01-02T01:04:05Z", "2024-01-02T01:04:05.000000Z"),
    ("2024-01-02T03:04:05-07:30", "2024-01-02T10:34:05Z", "2024-01-02T10:34:05.000000Z"),
    ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
    ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000000Z"),
    ("2024-01-02T03:04:05+24:00", "2024-01-01T03:04:05Z", "2024-01-01T03:04:05.000000Z"),
    ("2024-01-02T03:04:05+23:60", "2024-01-01T03:04:05Z", "2024-01-01T03:04:05.000000Z"),
    ("2024-01-02T03:04:05.0000001Z", "2024-01-02T03:04:05Z", "2024-01-02T03:04:05.000000Z"),
)

NO_TIMES = (
    "2024-01-02T03:04:05", "2024-01-02", "2024-01-02 03:04:05Z", "2024-13-02T03:04:05Z",
    "2024-02-30T03:04:05Z", "2024-01-02T24:00:00Z", "2024-01-02T23:59:60Z", "2024-01-02T03:04:05.Z",
    "2024-01-02T03:04:05+0200", "2024-01-02T03:04Z", "2024-W01-1T00:00:00Z", "20240102T030405Z", "",
    "x", " 2024-01-02T03:04:05Z",
)

DURATIONS = (
    ("0", 0, "0s"), ("0s", 0, "0s"), ("-0", 0, "0s"), ("+0", 0, "0s"), ("1h", 3600000000000, "1h0m0s"),
    ("1h30m", 5400000000000, "1h30m0s"), ("300ms", 300000000, "300ms"),
    ("1.5h", 5400000000000, "1h30m0s"), ("-2m", -120000000000, "-2m0s"), ("1\u00b5s", 1000, "1\u00b5s"),
    ("1\u03bcs", 1000, "1\u00b5s"), ("1us", 1000, "1\u00b5s"), ("1ns", 1, "1ns"),
    ("1.5s", 1500000000, "1.5s"), ("100ms", 100000000, "100ms"),
    ("1h2m3s4ms5us6ns", 3723004005006, "1h2m3.004005006s"), ("+5s", 5000000000, "5s"),
    ("-1.5h", -5400000000000, "-1h30m0s"), (".5s", 500000000, "500ms"), ("1.s", 1000000000, "1s"),
    ("9223372036854775807ns", 9223372036854775807, "2562047h47m16.854775807s"),
    ("-9223372036854775808ns", -9223372036854775808, "-2562047h47m16.854775808s"),
    ("9223372036s", 9223372036000000000, "2562047h47m16s"),
    ("2562047h47m16.854775807s", 9223372036854775807, "2562047h47m16.854775807s"),
    ("-2562047h47m16.854775808s", -9223372036854775808, "-2562047h47m16.854775808s"),
    ("0.000000001s", 1, "1ns"), ("0.0000000001s", 0, "0s"), ("0.1h", 360000000000, "6m0s"),
    ("0.333333333333333333h", 1199999999999, "19m59.999999999s"),
    ("0.9223372036854775807h", 3320413933267, "55m20.413933267s"),
    ("0.92233720368547758070001h", 3320413933267, "55m20.413933267s"),
    ("1.23456789us", 1234, "1.234\u00b5s"), ("1.9ns", 1, "1ns"), ("90s", 90000000000, "1m30s"),
    ("3600s", 3600000000000, "1h0m0s"), ("3661.001s", 3661001000000, "1h1m1.001s"),
    ("1ms", 1000000, "1ms"), ("1.1ms", 1100000, "1.1ms"), ("999999ns", 999999, "999.999\u00b5s"),
    ("1000001ns", 1000001, "1.000001ms"), ("60m", 3600000000000, "1h0m0s"),
    ("24h", 86400000000000, "24h0m0s"), ("1m", 60000000000, "1m0s"),
    ("59.999999999s", 59999999999, "59.999999999s"), ("0.3ms", 300000, "300\u00b5s"),
    ("1h1ns", 3600000000001, "1h0m0.000000001s"),
    ("0.830103483285477580700h", 2988372539827, "49m48.372539827s"), ("0ns", 0, "0s"),
    ("0h0m", 0, "0s"),
)

NO_DURATIONS = (
    ".s", "", "1", "s", "1x", "1d", "1h ", "1 h", "--1s", "1.5.5s", "9223372036854775808ns",
    "9223372037s", "2562047h47m16.854775808s", "-", "+", "1e3s", "1h-1m",
)
# fmt: on


@pytest.mark.parametrize(("text", "seconds", "micro"), TIMES)
def test_times_are_read_and_printed_as_kubernetes_does(text: str, seconds: str, micro: str) -> None:
    moment = parse_time(text)

    assert moment.tzinfo is UTC
    assert seconds == format_time(moment)
    assert micro == format_micro_time(moment)


@pytest.mark.parametrize("text", NO_TIMES)
def test_text_that_is_no_time_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(DecodeError, match="is not a time"):
        parse_time(text)


def test_lower_case_letters_are_read() -> None:
    assert parse_time("2024-01-02t03:04:05z") == datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_an_offset_out_of_the_calendar_is_refused() -> None:
    with pytest.raises(DecodeError, match="is not a time"):
        parse_time("0001-01-01T00:00:00+01:00")


def test_other_zones_are_printed_in_utc() -> None:
    moment = datetime(2024, 1, 2, 3, 4, 5, 600, tzinfo=timezone(timedelta(hours=2)))

    assert format_time(moment) == "2024-01-02T01:04:05Z"
    assert format_micro_time(moment) == "2024-01-02T01:04:05.000600Z"


@pytest.mark.parametrize("function", [format_time, format_micro_time, MicroTime.of])
def test_a_time_without_zone_is_refused(function: Any) -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        function(datetime(2024, 1, 2, 3, 4, 5))


def test_a_micro_time_is_a_datetime_of_its_own_class() -> None:
    moment = MicroTime.parse("2024-01-02T03:04:05.123456+01:00")

    assert type(moment) is MicroTime
    assert moment == datetime(2024, 1, 2, 2, 4, 5, 123456, tzinfo=UTC)
    assert type(MicroTime.of(datetime(2024, 1, 2, tzinfo=UTC))) is MicroTime
    assert type(moment + timedelta(seconds=1)) is MicroTime
    assert type(pickle.loads(pickle.dumps(moment))) is MicroTime


@pytest.mark.parametrize(("text", "nanoseconds", "printed"), DURATIONS)
def test_durations_are_read_and_printed_as_go_does(text: str, nanoseconds: int, printed: str) -> None:
    duration = Duration.parse(text)

    assert nanoseconds == duration.nanoseconds
    assert printed == str(duration)


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_text_that_is_no_duration_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(DecodeError, match=r"is not a (usable )?duration"):
        Duration.parse(text)


def test_durations_are_made_from_text_timedelta_and_nanoseconds() -> None:
    assert Duration("1m30s") == Duration(timedelta(seconds=90)) == Duration(nanoseconds=90 * 10**9)
    assert Duration.from_timedelta(timedelta(days=-1)).nanoseconds == -86400 * 10**9
    assert Duration(Duration("1s")) == Duration("1s")
    assert Duration() == timedelta(0)
    assert not Duration()


def test_a_duration_beyond_292_years_is_refused() -> None:
    with pytest.raises(DecodeError, match="out of range"):
        Duration(timedelta(days=400 * 365))


def test_durations_convert() -> None:
    assert Duration("1.5s").seconds == 1.5
    assert Duration("1h1us").to_timedelta() == timedelta(hours=1, microseconds=1)
    assert Duration("1us1ns").to_timedelta() == timedelta(microseconds=1)
    assert repr(Duration("90s")) == "Duration('1m30s')"


def test_durations_calculate() -> None:
    assert Duration("1m") + Duration("30s") == Duration("90s")
    assert timedelta(seconds=30) + Duration("1m") == Duration("90s")
    assert Duration("1m") - timedelta(seconds=1) == Duration("59s")
    assert Duration("1m") * 1.5 == 1.5 * Duration("1m") == Duration("90s")
    assert Duration("1m") / 4 == Duration("15s")
    assert -Duration("1m") == Duration("-1m")
    assert abs(Duration("-1m")) == Duration("1m")


def test_durations_compare_with_durations_and_timedeltas() -> None:
    assert Duration("1ns") < Duration("1us") < timedelta(milliseconds=1)
    assert Duration("1h") >= timedelta(minutes=60)
    assert Duration("1h") != 3600
    assert len({Duration("1h"), Duration("60m"), timedelta(hours=1)}) == 1
    assert len({Duration("1ns"), Duration("1ns"), Duration("2ns")}) == 2


@pytest.mark.parametrize("other", [1, "1s", None])
def test_durations_do_not_mix_with_bare_numbers(other: Any) -> None:
    with pytest.raises(TypeError):
        _ = Duration("1s") + other
    with pytest.raises(TypeError):
        _ = Duration("1s") - other
    with pytest.raises(TypeError):
        _ = Duration("1s") < other


def test_copies_and_pickles_of_durations_are_equal() -> None:
    duration = Duration("1h1ns")

    assert copy.copy(duration) is duration
    assert copy.deepcopy(duration) is duration
    assert pickle.loads(pickle.dumps(duration)) == duration
