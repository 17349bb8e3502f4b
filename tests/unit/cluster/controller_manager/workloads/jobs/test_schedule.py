"""Cron schedules."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from kubewright import ObjectMeta
from kubewright.cluster.controller_manager.workloads.jobs.cronjob import most_recent_schedule_time
from kubewright.cluster.controller_manager.workloads.jobs.schedule import Schedule, time_zone
from kubewright.errors import DecodeError
from kubewright.k8s.batch.v1 import CronJob, CronJobSpec, CronJobStatus, JobTemplateSpec

START = datetime(2030, 1, 1, 10, 30, 15, tzinfo=UTC)  # a Tuesday


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("* * * * *", "2030-01-01 10:31"),
        ("*/15 * * * *", "2030-01-01 10:45"),
        ("5/20 * * * *", "2030-01-01 10:45"),
        ("0 9-17/4 * * *", "2030-01-01 13:00"),
        ("30 10 * * *", "2030-01-02 10:30"),
        ("0 0 1 * *", "2030-02-01 00:00"),
        ("0 0 29 feb *", "2032-02-29 00:00"),
        ("0 12 * * mon-fri", "2030-01-01 12:00"),
        ("0 12 * * SUN", "2030-01-06 12:00"),
        ("0 0 13 * fri", "2030-01-04 00:00"),
        ("0 0 */10 * fri", "2030-01-04 00:00"),
        ("0 0 ? * fri", "2030-01-04 00:00"),
        ("1,2,50 10 1 1 *", "2030-01-01 10:50"),
        ("@hourly", "2030-01-01 11:00"),
        ("@daily", "2030-01-02 00:00"),
        ("@weekly", "2030-01-06 00:00"),
        ("@monthly", "2030-02-01 00:00"),
        ("@yearly", "2031-01-01 00:00"),
    ],
)
def test_next_time(text: str, wanted: str) -> None:
    assert Schedule.parse(text).next(START) == datetime.strptime(wanted, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has 0 fields"),
        ("* * * *", "has 4 fields"),
        ("60 * * * *", "the minute '60' is out of range"),
        ("* 24 * * *", "the hour '24' is out of range"),
        ("* * 0 * *", "the day of the month '0' is out of range"),
        ("* * * 13 *", "the month '13' is out of range"),
        ("* * * * 7", "the day of the week '7' is out of range"),
        ("5-1 * * * *", "the minute '5-1' is out of range"),
        ("*/0 * * * *", r"the minute '\*/0' is out of range"),
        ("a * * * *", "the minute 'a' is not a number"),
        ("1-2-3 * * * *", "the minute '1-2-3' cannot be read"),
        ("@never", "has 1 fields"),
        ("@every", "has 1 fields"),
        ("TZ=Nowhere/At 0 0 * * *", "names an unknown time zone"),
    ],
)
def test_an_invalid_schedule_is_an_error(text: str, sentence: str) -> None:
    with pytest.raises(DecodeError, match=sentence):
        Schedule.parse(text)


def test_an_interval_schedule() -> None:
    assert Schedule.parse("@every 90s").next(START) == datetime(2030, 1, 1, 10, 31, 45, tzinfo=UTC)


def test_a_schedule_without_a_next_time() -> None:
    assert Schedule.parse("0 0 30 2 *").next(START) is None


def test_time_zones_have_their_own_midnight() -> None:
    zone = time_zone("America/New_York")
    assert zone is not None

    assert Schedule.parse("0 0 * * *", zone=zone).next(START) == datetime(2030, 1, 2, 5, 0, tzinfo=UTC)
    assert Schedule.parse("TZ=Asia/Kolkata 0 0 * * *").next(START) == datetime(2030, 1, 1, 18, 30, tzinfo=UTC)
    assert time_zone("Nowhere/At") is None
    assert time_zone("../etc/passwd") is None
    assert time_zone(None) is UTC


def test_an_hour_that_does_not_exist_is_skipped() -> None:
    berlin = Schedule.parse("30 2 * * *", zone=ZoneInfo("Europe/Berlin"))

    # Clocks go from 2 to 3 on the 31st of March 2030.
    assert berlin.next(datetime(2030, 3, 30, 12, 0, tzinfo=UTC)) == datetime(2030, 4, 1, 0, 30, tzinfo=UTC)


# --- what is due ---


def cron_job(last: datetime, **spec: int) -> CronJob:
    return CronJob(
        metadata=ObjectMeta(name="tick", creation_timestamp=last),
        spec=CronJobSpec(schedule="*/10 * * * *", job_template=JobTemplateSpec(), **spec),  # type: ignore[arg-type]  # only integers here
        status=CronJobStatus(last_schedule_time=last),
    )


@pytest.mark.parametrize(
    ("now", "wanted", "missed"),
    [
        ("10:09", None, "none"),
        ("10:10", "10:10", "none"),
        ("10:19", "10:10", "none"),
        ("10:45", "10:40", "few"),
        ("23:59", "23:50", "few"),
    ],
)
def test_the_most_recent_missed_time_is_due(now: str, wanted: str | None, missed: str) -> None:
    due = most_recent_schedule_time(cron_job(at("10:00")), Schedule.parse("*/10 * * * *"), at(now), with_deadline=True)

    assert (due.scheduled_time, due.missed) == (None if wanted is None else at(wanted), missed)


def test_beyond_the_deadline_nothing_is_due() -> None:
    owner = cron_job(at("10:00"), starting_deadline_seconds=60)
    schedule = Schedule.parse("*/10 * * * *")

    assert most_recent_schedule_time(owner, schedule, at("10:45"), with_deadline=True).scheduled_time is None
    assert most_recent_schedule_time(owner, schedule, at("10:41"), with_deadline=True).scheduled_time is None
    assert most_recent_schedule_time(owner, schedule, at("10:40"), with_deadline=True).scheduled_time == at("10:40")
    assert most_recent_schedule_time(owner, schedule, at("10:45"), with_deadline=False).scheduled_time == at("10:40")


def test_many_missed_times_are_reported() -> None:
    owner = cron_job(datetime(2029, 12, 1, tzinfo=UTC))

    due = most_recent_schedule_time(owner, Schedule.parse("*/10 * * * *"), at("10:45"), with_deadline=True)

    assert (due.scheduled_time, due.missed) == (at("10:40"), "many")


def at(text: str) -> datetime:
    hour, minute = map(int, text.split(":"))
    return datetime(2030, 1, 1, hour, minute, tzinfo=UTC)
