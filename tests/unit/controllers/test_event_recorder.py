"""Events: written in the background, counted, cut when they flood, and never in anybody's way."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Any

import pytest

from kubewright.client.client import Client
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.controllers.event_recorder import EventRecorder
from kubewright.errors import ApiError, Cause, Forbidden, LeadershipLost, NotFound, TransportError
from kubewright.k8s.core.v1 import Node, Pod
from kubewright.testing.clock import VirtualClock

POD = Pod.named("web-0", "shop")
POD.metadata.uid = "u1"


class EventServer:
    """Keeps events by path; fails as told."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}
        self.requests: list[HttpRequest] = []
        self.failures: list[Exception | int] = []
        self.lose_answers = 0
        self.hang: asyncio.Event | None = None

    @property
    def only(self) -> dict[str, Any]:
        (event,) = self.events.values()
        return event

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        if self.hang is not None:
            await self.hang.wait()
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return refused(failure)
        body = json.loads(request.body or b"{}")
        if request.method == "POST":
            path = f"{request.path}/{body['metadata']['name']}"
            if path in self.events:
                return refused(409, "AlreadyExists")
            self.events[path] = body
        elif request.path not in self.events:
            return refused(404, "NotFound")
        else:
            path = request.path
            self.events[path] |= body
        if self.lose_answers:
            self.lose_answers -= 1
            raise TransportError("the answer was lost")
        return HttpResponse(status=200, headers={}, body=json.dumps(self.events[path]).encode())

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        raise NotImplementedError

    async def close(self) -> None:
        return None


def refused(code: int, reason: str = "") -> HttpResponse:
    body = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": "no"}
    return HttpResponse(status=code, headers={}, body=json.dumps(body).encode())


@asynccontextmanager
async def recording(server: EventServer, clock: VirtualClock) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(Client(server), controller="web", instance="web-host", clock=clock, rng=Random(1))
    task = asyncio.create_task(recorder.run())
    await clock.settle()
    yield recorder
    recorder.stop()
    await clock.advance(5)
    assert task.done()
    await task


async def test_an_event_has_its_object_reason_note_and_reporter() -> None:
    server, clock = EventServer(), VirtualClock()
    async with recording(server, clock) as recorder:
        recorder.record(POD, "Scaled", "3 replicas now", action="Scale", related=Node.named("n1"))
        await clock.settle()

    event = server.only
    assert event["metadata"]["namespace"] == "shop"
    assert event["metadata"]["name"].startswith("web-0.")
    del event["metadata"]
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "type": "Normal",
        "reason": "Scaled",
        "action": "Scale",
        "note": "3 replicas now",
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "web-0", "namespace": "shop", "uid": "u1"},
        "related": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        "reportingController": "web",
        "reportingInstance": "web-host",
    }


async def test_what_lives_in_no_namespace_is_reported_in_default() -> None:
    server, clock = EventServer(), VirtualClock()
    async with recording(server, clock) as recorder:
        recorder.record(Node.named("System:Node_1"), "Seen", "hello", type="Warning")
        await clock.settle()

    (path,) = server.events
    assert path.startswith("/apis/events.k8s.io/v1/namespaces/default/events/system-node-1.")


async def test_repetitions_become_a_series_that_is_written_at_each_doubling() -> None:
    server, clock = EventServer(), VirtualClock()
    async with recording(server, clock) as recorder:
        for _ in range(20):
            recorder.record(POD, "Failed", "again")
            await clock.advance(10)

        assert [request.method for request in server.requests] == ["POST", *["PATCH"] * 4]
        assert server.only["series"] == {"count": 16, "lastObservedTime": "2030-01-01T00:02:30.000000Z"}

    assert server.only["series"]["count"] == 20, "the last count is written at the end"
    assert recorder.dropped == 0


async def test_repetitions_before_the_event_is_written_are_in_it_from_the_start() -> None:
    server, clock = EventServer(), VirtualClock()
    async with recording(server, clock) as recorder:
        for _ in range(4):
            recorder.record(POD, "Failed", "again")
        await clock.settle()

        assert len(server.requests) == 1
        assert server.only["series"]["count"] == 4


async def test_after_six_minutes_of_silence_it_is_a_new_event() -> None:
    server, clock = EventServer(), VirtualClock()
    async with recording(server, clock) as recorder:
        recorder.record(POD, "Failed", "again")
        await clock.advance(361)
        recorder.record(POD, "Failed", "again")
        await clock.settle()

    assert len(server.events) == 2


async def test_many_notes_with_one_reason_are_taken_together() -> None:
    server, clock = EventServer(), VirtualClock()
    async with recording(server, clock) as recorder:
        for number in range(15):
            recorder.record(POD, "Failed", f"note {number}")
        await clock.settle()

    notes = [event["note"] for event in server.events.values()]
    assert len(notes) == 10
    assert notes[-1] == "(combined from similar events): note 9"


async def test_a_flood_about_one_object_is_cut_and_others_are_not_touched() -> None:
    server, clock = EventServer(), VirtualClock()
    other = Pod.named("db-0", "shop")
    async with recording(server, clock) as recorder:
        for number in range(60):
            recorder.record(POD, f"Reason{number}", "x")
        recorder.record(other, "Fine", "x")
        await clock.settle()

        assert len(server.events) == 26
        assert recorder.dropped == 35
        await clock.advance(300)
        for number in range(5):
            recorder.record(POD, f"Later{number}", "x")
        await clock.settle()
        assert len(server.events) == 27


async def test_a_full_queue_drops_and_recording_never_waits() -> None:
    server, clock = EventServer(), VirtualClock()
    server.hang = asyncio.Event()
    async with recording(server, clock) as recorder:
        for number in range(1200):
            recorder.record(Pod.named(f"pod-{number}", "shop"), "Seen", "x")

        assert recorder.dropped == 200


async def test_an_absent_server_is_tried_again_and_given_up_after_a_while() -> None:
    server, clock = EventServer(), VirtualClock()
    server.failures = [TransportError("gone"), 503, 429]
    async with recording(server, clock) as recorder:
        recorder.record(POD, "Seen", "x")
        await clock.advance(12.5 * 3)
        assert len(server.events) == 1

        server.failures = [TransportError("gone")] * 12
        recorder.record(POD, "Lost", "x")
        recorder.record(POD, "Next", "x")
        await clock.advance(12.5 * 12)

        assert [event["reason"] for event in server.events.values()] == ["Seen", "Next"]
        assert recorder.dropped == 1


async def test_a_lost_answer_does_not_make_a_second_event() -> None:
    server, clock = EventServer(), VirtualClock()
    server.lose_answers = 1
    async with recording(server, clock) as recorder:
        recorder.record(POD, "Seen", "x")
        await clock.advance(30)

        assert len(server.requests) == 2
        assert len(server.events) == 1
        assert recorder.dropped == 0


async def test_what_happened_again_while_an_answer_was_lost_is_counted() -> None:
    server, clock = EventServer(), VirtualClock()
    server.lose_answers = 1
    async with recording(server, clock) as recorder:
        recorder.record(POD, "Seen", "x")
        await clock.settle()
        recorder.record(POD, "Seen", "x")
        recorder.record(POD, "Seen", "x")

    assert server.only["series"]["count"] == 3


@pytest.mark.parametrize("failure", [403, 404, 422, LeadershipLost("another leads")])
async def test_a_refusal_is_logged_once_and_not_repeated(failure: Exception | int) -> None:
    server, clock = EventServer(), VirtualClock()
    server.failures = [failure]
    async with recording(server, clock) as recorder:
        recorder.record(POD, "Seen", "x")
        await clock.advance(60)

        assert len(server.requests) == 1
        assert recorder.dropped == 1


@pytest.mark.parametrize(
    "refusal",
    [
        Forbidden("no", code=403, reason="Forbidden", causes=[Cause(reason="NamespaceTerminating")]),
        NotFound("gone", code=404, reason="NotFound", details={"kind": "namespaces", "name": "shop"}),
    ],
)
async def test_a_namespace_that_is_being_deleted_or_gone_is_no_reason_to_complain(
    refusal: ApiError, caplog: pytest.LogCaptureFixture
) -> None:
    server, clock = EventServer(), VirtualClock()
    server.failures = [refusal]
    async with recording(server, clock) as recorder:
        recorder.record(POD, "Killing", "x")
        await clock.advance(1)

        assert recorder.dropped == 1
        assert [record for record in caplog.records if record.levelname == "WARNING"] == []


async def test_an_event_the_server_has_forgotten_is_made_again() -> None:
    server, clock = EventServer(), VirtualClock()
    async with recording(server, clock) as recorder:
        recorder.record(POD, "Failed", "again")
        await clock.settle()
        server.events.clear()
        recorder.record(POD, "Failed", "again")
        await clock.settle()

        assert server.only["series"]["count"] == 2


async def test_long_words_are_cut_to_what_servers_take() -> None:
    server, clock = EventServer(), VirtualClock()
    long = Pod.named("p" * 253, "shop")
    async with recording(server, clock) as recorder:
        recorder.record(long, "R" * 200, "ü" * 2000, action="")
        await clock.settle()

    assert len(server.only["metadata"]["name"]) == 253
    assert len(server.only["reason"]) == 128
    assert len(server.only["note"].encode()) <= 1024
    assert server.only["action"] == "Unknown"


async def test_recording_from_a_thread_is_safe() -> None:
    server, clock = EventServer(), VirtualClock()
    async with recording(server, clock) as recorder:
        thread = threading.Thread(target=lambda: recorder.record(POD, "Seen", "from a thread"))
        thread.start()
        thread.join()
        await clock.settle()

        assert server.only["note"] == "from a thread"


async def test_stopping_writes_what_is_queued_but_waits_for_nobody_long() -> None:
    server, clock = EventServer(), VirtualClock()
    async with recording(server, clock) as recorder:
        recorder.record(POD, "Last", "x")
    assert server.only["reason"] == "Last"

    server.hang = asyncio.Event()
    async with recording(server, clock) as recorder:
        recorder.record(POD, "Never", "x")
    recorder.record(POD, "TooLate", "x")
    assert len(server.events) == 1
    assert recorder.dropped == 1
