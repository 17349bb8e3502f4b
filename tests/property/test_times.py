"""Laws of times and durations: what is printed is read back.

Covers: kubewright.api
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from kubewright.api.times import Duration, MicroTime, format_micro_time, format_time, parse_time

MOMENTS = st.datetimes(
    min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31), timezones=st.timezones() | st.just(UTC)
)
NANOSECONDS = st.integers(-(2**63), 2**63 - 1)


@given(moment=MOMENTS)
def test_a_time_is_read_back_to_the_second(moment: datetime) -> None:
    assert parse_time(format_time(moment)) == moment.astimezone(UTC).replace(microsecond=0)


@given(moment=MOMENTS)
def test_a_micro_time_is_read_back_to_the_microsecond(moment: datetime) -> None:
    again = MicroTime.parse(format_micro_time(moment))

    assert again == moment.astimezone(UTC)
    assert again == MicroTime.of(moment)


@given(moment=MOMENTS, hours=st.integers(-23, 23), minutes=st.sampled_from([0, 30, 45]))
def test_an_offset_names_the_same_moment(moment: datetime, hours: int, minutes: int) -> None:
    offset = timedelta(hours=abs(hours), minutes=minutes) * (1 if hours >= 0 else -1)
    local = (moment.astimezone(UTC) + offset).replace(tzinfo=None)
    sign = "-" if hours < 0 else "+"

    text = f"{local.isoformat(timespec='microseconds')}{sign}{abs(hours):02}:{minutes:02}"

    assert parse_time(text) == moment.astimezone(UTC)


@given(nanoseconds=NANOSECONDS)
def test_a_duration_is_read_back_exactly(nanoseconds: int) -> None:
    duration = Duration(nanoseconds=nanoseconds)

    assert Duration.parse(str(duration)) == duration
    assert str(Duration.parse(str(duration))) == str(duration)


@given(
    one=st.timedeltas(timedelta(days=-1000), timedelta(days=1000)),
    two=st.timedeltas(timedelta(days=-1000), timedelta(days=1000)),
)
def test_durations_calculate_like_timedeltas(one: timedelta, two: timedelta) -> None:
    left, right = Duration(one), Duration(two)

    assert left + right == one + two
    assert left - right == one - two
    assert (left < right, left == right) == (one < two, one == two)
    assert left.to_timedelta() == one
    assert hash(left) == hash(one)


@given(text=st.text(alphabet="0123456789.-+nuµmsh ", max_size=10))
def test_any_text_is_a_duration_or_refused_with_a_sentence(text: str) -> None:
    refusal, duration = "", Duration()
    try:
        duration = Duration.parse(text)
    except ValueError as error:
        refusal = str(error)

    assert "duration" in refusal or Duration.parse(str(duration)) == duration
