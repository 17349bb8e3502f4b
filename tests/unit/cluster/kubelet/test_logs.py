"""Container logs and their query options."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from kubewright.cluster.kubelet.logs import ContainerLog, ContainerLogs, LogQuery, read_log
from kubewright.cluster.kubelet.server import log_query

START = datetime(2030, 1, 1, tzinfo=UTC)


def log(*lines: str) -> ContainerLog:
    made = ContainerLog()
    for second, line in enumerate(lines):
        made.write(START + timedelta(seconds=second), [line])
    return made


async def text(made: ContainerLog, **query: object) -> str:
    return b"".join([data async for data in read_log(made, LogQuery(**query))]).decode()  # type: ignore[arg-type]  # as given


async def test_a_log_is_sent_as_it_was_written() -> None:
    assert await text(log("one", "two")) == "one\ntwo\n"


@pytest.mark.parametrize(("tail", "expected"), [(0, ""), (1, "two\n"), (5, "one\ntwo\n")])
async def test_the_tail_is_the_last_lines(tail: int, expected: str) -> None:
    assert await text(log("one", "two"), tail=tail) == expected


async def test_lines_since_a_time_with_timestamps() -> None:
    assert await text(log("one", "two"), since=START + timedelta(seconds=1), timestamps=True) == (
        "2030-01-01T00:00:01.000000000Z two\n"
    )


async def test_the_limit_is_in_bytes() -> None:
    assert await text(log("one", "two"), limit=6) == "one\ntw"


async def test_following_sends_new_lines_until_the_run_ends() -> None:
    made = log("one")
    reading = asyncio.create_task(text(made, follow=True))
    await asyncio.sleep(0)
    made.write(START, ["two", "three"])
    await asyncio.sleep(0)
    made.end()

    assert await reading == "one\ntwo\nthree\n"


def test_the_log_of_the_previous_run_is_kept_and_older_ones_are_not() -> None:
    logs = ContainerLogs()
    runs = [logs.container_started("shop", "web", "main") for _ in range(3)]

    assert logs.find("shop", "web", "main") is runs[2]
    assert logs.find("shop", "web", "main", previous=True) is runs[1]
    assert runs[1].ended
    logs.remove_pod("shop", "web")
    assert logs.find("shop", "web", "main") is None
    assert runs[2].ended


def test_a_query_is_decoded_and_an_invalid_number_is_an_error() -> None:
    query = log_query({"follow": "true", "tailLines": "3", "sinceSeconds": "60", "limitBytes": "9"}, now=lambda: START)

    assert query == LogQuery(follow=True, tail=3, since=START - timedelta(seconds=60), limit=9)
    with pytest.raises(ValueError, match="tailLines"):
        log_query({"tailLines": "-1"}, now=lambda: START)
