"""List, watch, resume, relist: every way a watch can go, on a scripted server."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any

import pytest

from kubewright.cache.scope import Scope
from kubewright.errors import ConnectFailed, RequestTimeout, TransportError


async def in_sync(rig: Any, *items: Any, version: int = 10) -> Any:
    """A running cache after its first list; the open watch."""
    stream = rig.server.streams(*items, version=version)
    rig.start()
    await rig.settle()
    rig.delivered()
    rig.server.requests.clear()
    return stream


# --- the first list ---


async def test_start_is_a_streaming_list_that_goes_on_as_a_watch(rig: Any) -> None:
    stream = rig.server.streams(rig.gadget("a", 3), rig.gadget("b", 5), version=10)
    informer = rig.start()
    await rig.settle()
    assert informer.synced
    stream.modified(rig.gadget("a", 11))
    await rig.settle()

    assert rig.server.asked == ["stream"]
    assert dict(rig.server.requests[0].query)["resourceVersionMatch"] == "NotOlderThan"
    assert dict(rig.server.requests[0].query)["allowWatchBookmarks"] == "true"
    assert rig.delivered() == ["added a@3 initial", "added b@5 initial", "updated a@11"]


async def test_nothing_is_in_sync_before_the_list_has_ended(rig: Any) -> None:
    stream = rig.server.watches()
    informer = rig.start()
    stream.added(rig.gadget("a", 3))
    stream.bookmark(4)
    await rig.settle()
    assert not informer.synced
    assert rig.delivered() == []

    stream.bookmark(10, end=True)
    await rig.settle()

    assert informer.synced
    assert rig.delivered() == ["added a@3 initial"]


async def test_changes_within_a_streaming_list_are_part_of_it(rig: Any) -> None:
    stream = rig.server.watches()
    rig.start()
    stream.added(rig.gadget("a", 3), rig.gadget("b", 4))
    stream.modified(rig.gadget("a", 6))
    stream.deleted(rig.gadget("b", 7))
    stream.bookmark(10, end=True)
    await rig.settle()

    assert rig.delivered() == ["added a@6 initial"]


@pytest.mark.parametrize(("code", "reason"), [(422, "Invalid"), (400, "BadRequest")])
async def test_server_without_streaming_lists_is_listed_and_remembered(rig: Any, code: int, reason: str) -> None:
    rig.server.refuses(code, reason)
    rig.server.lists(rig.gadget("a", 3), version=10)
    first = rig.server.watches()
    rig.start()
    await rig.settle()
    first.error(410, "Expired")
    rig.server.lists(rig.gadget("a", 3), version=20)
    rig.server.watches()
    await rig.clock.advance(3)

    assert rig.server.asked == ["stream", "list", "watch 10", "list 10", "watch 20"]


async def test_streaming_list_without_an_end_falls_back_and_is_remembered(rig: Any) -> None:
    stream = rig.server.watches()
    informer = rig.start()
    stream.added(rig.gadget("a", 3))
    await rig.settle()
    rig.server.lists(rig.gadget("a", 3), version=10)
    rig.server.watches()

    await rig.clock.advance(11)

    assert stream.closed
    assert informer.synced
    assert rig.server.asked == ["stream", "list", "watch 10"]


async def test_streaming_list_that_never_stops_sending_falls_back_too(rig: Any) -> None:
    stream = rig.server.watches()
    informer = rig.start()
    await rig.settle()
    rig.server.lists(version=1000)
    rig.server.watches()

    for number in range(40):
        stream.added(rig.gadget("a", number + 1))
        await rig.clock.advance(9)

    assert informer.synced
    assert rig.server.asked == ["stream", "list", "watch 1000"]


async def test_list_is_assembled_from_pages(rig: Any) -> None:
    rig.server.refuses(422, "Invalid")
    rig.server.lists(rig.gadget("a", 3), version=10, token="more")
    rig.server.lists(rig.gadget("b", 4), version=10)
    rig.server.watches()
    rig.start()
    await rig.settle()

    assert rig.names() == ["a", "b"]
    assert dict(rig.server.requests[2].query) == {"limit": "500", "continue": "more"}


async def test_page_that_expires_makes_one_list_without_pages(rig: Any) -> None:
    rig.server.refuses(422, "Invalid")
    rig.server.lists(rig.gadget("old", 3), version=10, token="more")
    rig.server.refuses(410, "Expired")
    rig.server.lists(rig.gadget("a", 12), rig.gadget("b", 13), version=20)
    rig.server.watches()
    rig.start()
    await rig.settle()

    assert rig.names() == ["a", "b"]
    assert dict(rig.server.requests[3].query) == {}
    assert rig.server.asked[-1] == "watch 20"


async def test_list_cut_short_is_begun_again(rig: Any) -> None:
    first = rig.server.watches()
    informer = rig.start()
    first.added(rig.gadget("a", 3))
    first.end()
    await rig.settle()
    assert not informer.synced
    rig.server.streams(rig.gadget("b", 4), version=10)

    await rig.clock.advance(2)

    assert rig.delivered() == ["added b@4 initial"]


async def test_what_comes_together_with_the_end_of_a_streaming_list_is_not_lost(rig: Any) -> None:
    stream = rig.server.watches()
    stream.added(rig.gadget("a", 3))
    stream.bookmark(10, end=True)
    stream.modified(rig.gadget("a", 11))
    stream.added(rig.gadget("b", 12))
    stream.in_one_chunk()
    rig.start()
    await rig.settle()

    assert rig.delivered() == ["added a@3 initial", "updated a@11", "added b@12"]


async def test_error_within_a_streaming_list_ends_it(rig: Any) -> None:
    first = rig.server.watches()
    informer = rig.start()
    first.added(rig.gadget("a", 3))
    first.error(500, "InternalError")
    await rig.settle()
    assert not informer.synced
    rig.server.streams(rig.gadget("b", 4), version=10)

    await rig.clock.advance(2)

    assert rig.delivered() == ["added b@4 initial"]


async def test_selectors_are_sent_to_the_server(rig: Any) -> None:
    rig.server.streams(version=1)
    rig.start(scope=Scope(labels="app=web", fields="metadata.name=a"))
    await rig.settle()

    query = dict(rig.server.requests[0].query)
    assert (query["labelSelector"], query["fieldSelector"]) == ("app=web", "metadata.name=a")


async def test_watch_asks_the_server_to_end_it_after_five_to_ten_minutes(rig: Any) -> None:
    stream = await in_sync(rig)
    for number in range(20):
        stream.added(rig.gadget("a", 100 + number))
        stream.end()
        stream = rig.server.watches()
        await rig.settle()

    seconds = {int(dict(request.query)["timeoutSeconds"]) for request in rig.server.requests}
    assert len(seconds) > 10
    assert all(300 <= second <= 600 for second in seconds)


# --- resuming ---


async def test_clean_close_resumes_from_the_last_version_without_a_list(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3))
    stream.modified(rig.gadget("a", 12))
    stream.end()
    second = rig.server.watches()
    await rig.settle()
    second.modified(rig.gadget("a", 13))
    await rig.settle()

    assert rig.server.asked == ["watch 12"]
    assert rig.delivered() == ["updated a@12", "updated a@13"]
    assert rig.observer.lists == ["first"]


async def test_bookmark_advances_the_version(rig: Any) -> None:
    stream = await in_sync(rig)
    stream.bookmark(77)
    await rig.clock.advance(2)
    stream.end()
    await rig.settle()

    assert rig.server.asked == ["watch 77"]


@pytest.mark.parametrize("error", [TransportError("reset"), RequestTimeout("silent")])
async def test_cut_connection_resumes_at_once(rig: Any, error: Exception) -> None:
    stream = await in_sync(rig)
    stream.added(rig.gadget("a", 11))
    stream.cut(error)
    await rig.settle()

    assert rig.server.asked == ["watch 11"]


async def test_event_cut_in_the_middle_is_not_seen_and_comes_again(rig: Any) -> None:
    stream = await in_sync(rig)
    stream.added(rig.gadget("a", 11))
    stream.raw(b'{"type":"ADDED","object":{"metadata":{"name":"b","resourceVers')
    stream.end()
    second = rig.server.watches()
    second.added(rig.gadget("b", 12))
    await rig.settle()

    assert rig.server.asked == ["watch 11"]
    assert rig.delivered() == ["added a@11", "added b@12"]


async def test_refused_connection_backs_off_and_resumes_without_a_list(rig: Any) -> None:
    stream = await in_sync(rig)
    await rig.clock.advance(2)
    stream.end()
    for _ in range(4):
        rig.server.fails(ConnectFailed("refused"))
    rig.server.watches()

    await rig.clock.advance(0.5)
    assert len(rig.server.requests) == 1
    await rig.clock.advance(30)

    assert rig.server.asked == ["watch 10"] * 5
    assert rig.observer.lists == ["first"]


async def test_back_off_grows_to_half_a_minute_and_is_spread(rig: Any) -> None:
    stream = await in_sync(rig)
    await rig.clock.advance(2)
    stream.end()
    for _ in range(12):
        rig.server.fails(ConnectFailed("refused"))
    await rig.clock.advance(600)

    waits = [later - earlier for earlier, later in pairwise(rig.server.times[1:])]
    assert 0.8 <= waits[0] <= 1.6
    assert 1.6 <= waits[1] <= 3.2
    assert all(30 <= wait <= 60 for wait in waits[6:])
    assert len({round(wait, 3) for wait in waits[6:]}) > 1


async def test_too_many_requests_backs_off_as_long_as_asked_and_does_not_list(rig: Any) -> None:
    stream = await in_sync(rig)
    await rig.clock.advance(2)
    stream.end()
    rig.server.refuses(429, "TooManyRequests", seconds=7)
    second = rig.server.watches()
    second.added(rig.gadget("a", 11))
    await rig.clock.advance(6)
    assert rig.server.asked == ["watch 10"]

    await rig.clock.advance(2)

    assert rig.server.asked == ["watch 10", "watch 10"]
    assert rig.delivered() == ["added a@11"]


async def test_server_that_stays_busy_is_not_asked_for_a_list_on_top(rig: Any) -> None:
    stream = await in_sync(rig)
    await rig.clock.advance(2)
    stream.end()
    for _ in range(8):
        rig.server.refuses(429, "TooManyRequests", seconds=1)
    rig.server.watches().added(rig.gadget("a", 11))

    await rig.clock.advance(300)

    assert rig.server.asked[:9] == ["watch 10"] * 9
    assert rig.observer.lists == ["first"]
    assert rig.delivered() == ["added a@11"]


async def test_watch_that_ends_at_once_with_nothing_counts_as_a_failure(rig: Any) -> None:
    stream = await in_sync(rig)
    await rig.clock.advance(2)
    stream.end()
    for _ in range(3):
        rig.server.watches().end()
    rig.server.watches()
    await rig.settle()
    assert len(rig.server.requests) == 1

    await rig.clock.advance(15)

    assert rig.server.asked == ["watch 10"] * 4


async def test_bookmark_alone_does_not_make_a_short_watch_a_healthy_one(rig: Any) -> None:
    stream = await in_sync(rig)
    await rig.clock.advance(2)
    stream.end()
    second = rig.server.watches()
    second.bookmark(50)
    second.end()
    rig.server.watches()
    await rig.settle()
    assert rig.server.asked == ["watch 10"]

    await rig.clock.advance(2)

    assert rig.server.asked == ["watch 10", "watch 50"]


async def test_silent_watch_is_cut_and_resumed_below_240_seconds(rig: Any) -> None:
    stream = await in_sync(rig)
    await rig.clock.advance(140)
    assert not stream.closed
    stream.bookmark(20)
    await rig.clock.advance(140)
    assert not stream.closed

    await rig.clock.advance(99)

    assert stream.closed
    assert rig.server.asked == ["watch 20"]


async def test_server_error_on_the_watch_is_tried_again_before_listing(rig: Any) -> None:
    stream = await in_sync(rig)
    await rig.clock.advance(2)
    stream.error(500, "InternalError")
    for _ in range(4):
        rig.server.refuses(500, "InternalError")
    rig.server.streams(version=30)

    await rig.clock.advance(120)

    assert rig.server.asked == ["watch 10"] * 4 + ["stream 10"]
    assert rig.observer.lists == ["first", "failing"]


# --- relisting ---


async def test_expired_watch_lists_at_the_last_version_and_finds_deletions(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3), rig.gadget("b", 4), rig.gadget("c", 5))
    await rig.clock.advance(2)
    stream.error(410, "Expired")
    rig.server.streams(rig.gadget("a", 3), rig.gadget("c", 15), rig.gadget("d", 16), version=20)
    await rig.settle()

    assert rig.server.asked == ["stream 10"]
    assert rig.delivered() == ["deleted b@4 final_state_unknown", "updated c@15", "added d@16"]
    assert rig.names() == ["a", "c", "d"]


async def test_expired_as_an_answer_to_the_watch_lists_as_well(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3))
    await rig.clock.advance(2)
    stream.end()
    rig.server.refuses(410, "Gone")
    rig.server.streams(version=20)

    await rig.clock.advance(2)

    assert rig.server.asked == ["watch 10", "stream 10"]
    assert rig.delivered() == ["deleted a@3 final_state_unknown"]


async def test_list_that_expires_at_the_last_version_is_made_at_the_newest(rig: Any) -> None:
    stream = await in_sync(rig)
    await rig.clock.advance(2)
    stream.error(410, "Expired")
    rig.server.refuses(410, "Expired")
    rig.server.streams(version=20)
    await rig.settle()

    assert rig.server.asked == ["stream 10", "stream"]


async def test_version_too_large_ends_in_a_list_at_the_newest(rig: Any) -> None:
    stream = await in_sync(rig)
    await rig.clock.advance(2)
    stream.end()
    rig.server.refuses(504, "Timeout", causes=("ResourceVersionTooLarge",))
    rig.server.refuses(504, "Timeout", causes=("ResourceVersionTooLarge",))
    rig.server.streams(version=20)

    await rig.clock.advance(2)

    assert rig.server.asked == ["watch 10", "stream 10", "stream"]


async def test_watches_that_expire_at_once_do_not_cause_a_storm_of_lists(rig: Any) -> None:
    stream = await in_sync(rig)
    await rig.clock.advance(2)
    for version in (20, 30, 40, 50, 60, 70):
        stream.error(410, "Expired")
        stream = rig.server.streams(version=version)
    await rig.clock.advance(5)

    assert 1 <= len(rig.server.requests) <= 4


async def test_list_older_than_what_was_seen_is_not_taken(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3))
    await rig.clock.advance(2)
    stream.error(410, "Expired")
    rig.server.streams(version=5)
    rig.server.streams(rig.gadget("a", 3), version=12)
    await rig.settle()

    assert rig.server.asked == ["stream 10", "stream"]
    assert rig.delivered() == []
    assert rig.names() == ["a"]


async def test_history_that_went_back_is_taken_when_the_newest_list_says_so(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 9), rig.gadget("b", 8))
    rig.cache.record_write(rig.written("a", 11))
    rig.cache.record_write(rig.written("c", 12))
    await rig.clock.advance(2)
    stream.error(410, "Expired")
    rig.server.refuses(410, "Expired")
    rig.server.streams(rig.gadget("a", 2), version=5)
    await rig.settle()

    assert rig.delivered() == [
        "deleted b@8 final_state_unknown",
        "added c@12",
        "deleted c@12 final_state_unknown",
        "updated a@2",
    ]
    assert rig.read("a").metadata.resource_version == "2"


async def test_recreation_seen_only_by_a_list_is_a_deletion_and_an_addition(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3, uid="one"), rig.gadget("b", 4))
    await rig.clock.advance(2)
    stream.error(410, "Expired")
    rig.server.streams(rig.gadget("a", 15, uid="two"), version=20)
    await rig.settle()

    assert rig.delivered() == ["deleted a@3 final_state_unknown", "deleted b@4 final_state_unknown", "added a@15"]


# --- what cannot be read ---


async def test_unreadable_line_does_not_advance_the_version_and_comes_again(rig: Any) -> None:
    stream = await in_sync(rig)
    stream.added(rig.gadget("a", 11))
    stream.raw(b'{"type":"ADDED","object":{"metadata":{"name":"b"\n')
    stream.added(rig.gadget("c", 13))
    second = rig.server.watches()
    second.added(rig.gadget("b", 12), rig.gadget("c", 13))
    await rig.settle()
    assert rig.delivered() == ["added a@11"]

    await rig.clock.advance(2)

    assert rig.server.asked == ["watch 11"]
    assert rig.delivered() == ["added b@12", "added c@13"]


async def test_line_that_stays_unreadable_ends_in_a_list(rig: Any) -> None:
    stream = await in_sync(rig)
    for _ in range(3):
        stream.raw(b"nonsense\n")
        stream = rig.server.watches()
    stream.added(rig.gadget("a", 12))
    stream.bookmark(20, end=True)

    await rig.clock.advance(30)

    assert rig.server.asked == ["watch 10", "watch 10", "stream 10"]
    assert rig.observer.lists == ["first", "unreadable"]
    assert rig.delivered() == ["added a@12"]


async def test_object_that_cannot_be_stored_is_reported_and_the_stream_goes_on(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stream = await in_sync(rig)
    stream.event("ADDED", {"kind": "Gadget", "metadata": {"name": 7, "resourceVersion": "11"}})
    stream.event("ADDED", {"kind": "Table", "metadata": {"name": "t", "resourceVersion": "12"}})
    stream.event("UNHEARD-OF", {"metadata": {}})
    stream.added(rig.gadget("a", 13))
    await rig.settle()

    assert rig.delivered() == ["added a@13"]
    assert rig.observer.malformed == 2
    assert not stream.closed
    assert "it is a Table" in caplog.text


async def test_object_whose_metadata_cannot_be_read_is_reported_once_and_left_out(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stream = await in_sync(rig, rig.gadget("good", 3))
    stream.added(rig.gadget("bad", 11, metadata={"ownerReferences": 3}))
    await rig.settle()

    assert rig.names() == ["good"]
    assert rig.names() == ["good"]
    assert rig.observer.malformed == 1
    assert caplog.text.count("metadata.ownerReferences") == 1

    stream.modified(rig.gadget("bad", 12, size=2))
    await rig.settle()
    assert rig.names() == ["bad", "good"]
    assert rig.cache.informers()[0].malformed_objects == {}


async def test_malformed_item_of_a_list_is_left_out(rig: Any) -> None:
    rig.server.refuses(422, "Invalid")
    rig.server.lists({"metadata": {"name": []}}, {"metadata": {}}, rig.gadget("a", 3), version=10)
    rig.server.watches()
    rig.start()
    await rig.settle()

    assert rig.names() == ["a"]
    assert rig.observer.malformed == 2


# --- kinds and permissions that are missing ---


async def test_missing_kind_is_named_at_once_and_watched_once_it_appears(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rig.server.refuses(404, "NotFound")
    rig.server.refuses(404, "NotFound")
    informer = rig.start()
    await rig.settle()

    (problem,) = rig.cache.problems()
    assert "install the CRD gadgets.test.example.io with version v1" in problem.sentence
    assert problem.sentence in caplog.text
    assert problem.since == rig.clock.now()

    rig.server.streams(rig.gadget("a", 3), version=10)
    await rig.clock.advance(6)

    assert informer.synced
    assert rig.cache.problems() == ()
    assert caplog.text.count("has no such kind") == 1


async def test_missing_permission_names_verb_resource_and_rule(rig: Any) -> None:
    rig.server.refuses(403, "Forbidden")
    rig.server.refuses(403, "Forbidden", message='User "bob" cannot list resource "gadgets"')
    informer = rig.start(scope=Scope(namespaces=("shop",)))
    await rig.settle()

    (problem,) = rig.cache.problems()
    assert problem.kind is rig.kind
    assert "the permission to list gadgets in namespace shop is missing" in problem.sentence
    assert '{"apiGroups": ["test.example.io"], "resources": ["gadgets"], "verbs": ["get", "list", "watch"]}' in str(
        problem
    )
    assert 'User "bob" cannot list' in str(problem)

    rig.server.streams(version=10)
    await rig.clock.advance(3)
    assert informer.synced
    assert rig.cache.problems() == ()


async def test_permission_to_list_but_not_to_watch_is_reported_as_such(rig: Any) -> None:
    rig.server.refuses(403, "Forbidden")
    rig.server.lists(rig.gadget("a", 3), version=10)
    rig.server.refuses(403, "Forbidden")
    rig.start()
    await rig.settle()

    assert rig.names() == ["a"]
    assert "the permission to watch gadgets in all namespaces is missing" in rig.cache.problems()[0].sentence


async def test_missing_kind_is_asked_for_every_two_to_ten_seconds(rig: Any) -> None:
    for _ in range(100):
        rig.server.refuses(404, "NotFound")
    rig.start()

    await rig.clock.advance(10)
    soon = len(rig.server.requests)
    await rig.clock.advance(110)

    assert 4 <= soon <= 6
    assert 12 <= len(rig.server.requests) - soon <= 20


async def test_kind_that_vanishes_and_returns_is_listed_anew(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3))
    await rig.clock.advance(2)
    stream.end()
    rig.server.refuses(404, "NotFound")
    rig.server.refuses(404, "NotFound")
    rig.server.streams(rig.gadget("b", 30), version=40)
    await rig.settle()
    assert rig.cache.problems() == ()  # whoever removed the kind may be about to end the watch, too
    await rig.clock.advance(3)
    assert len(rig.cache.problems()) == 1

    await rig.clock.advance(4)

    assert rig.server.asked == ["watch 10", "stream", "stream"]
    assert rig.delivered() == ["deleted a@3 final_state_unknown", "added b@30"]
    assert rig.cache.problems() == ()


async def test_server_that_stays_away_is_a_problem_and_one_that_blinks_is_not(rig: Any) -> None:
    stream = await in_sync(rig)
    await rig.clock.advance(2)
    stream.end()
    rig.server.fails(ConnectFailed("cannot reach the server"))
    await rig.settle()
    assert rig.cache.problems() == ()
    rig.server.fails(ConnectFailed("cannot reach the server"))
    await rig.clock.advance(2)
    assert "cannot reach the server" in rig.cache.problems()[0].sentence

    rig.server.watches()
    await rig.clock.advance(5)

    assert rig.cache.problems() == ()


# --- being alive ---


async def test_watch_age_grows_with_silence_and_any_byte_resets_it(rig: Any) -> None:
    stream = await in_sync(rig)
    informer = rig.cache.informers()[0]
    await rig.clock.advance(60)
    assert informer.watch_age() == 60

    stream.raw(b"\n")
    await rig.settle()

    assert informer.watch_age() == 0


async def test_server_that_takes_up_a_watch_again_has_been_heard(rig: Any) -> None:
    stream = await in_sync(rig)
    informer = rig.cache.informers()[0]
    await rig.clock.advance(60)
    rig.server.watches()
    stream.end()
    await rig.settle()

    assert rig.server.asked == ["watch 10"]
    assert informer.watch_age() == 0


async def test_unreachable_server_is_not_past_the_deadline_but_a_stuck_watch_is(rig: Any) -> None:
    stream = await in_sync(rig)
    informer = rig.cache.informers()[0]
    await rig.clock.advance(2)
    stream.end()
    for _ in range(30):
        rig.server.fails(ConnectFailed("refused"))
    await rig.clock.advance(600)
    assert informer.watch_age() > 500
    assert not informer.past_deadline()

    rig.server.requests.clear()
    await rig.clock.advance(1000)  # the script has run out: a request that is never answered
    await rig.clock.advance(300)

    assert informer.past_deadline()


async def test_reflectors_of_several_namespaces_back_off_alone(rig: Any) -> None:
    rig.server.refuses(500, "InternalError")
    stream = rig.server.watches()
    stream.added(rig.gadget("b", 4, namespace="two"))
    stream.bookmark(10, end=True)
    informer = rig.start(scope=Scope(namespaces=("one", "two")))
    await rig.settle()
    assert rig.delivered() == ["added b@4 initial"]
    assert not informer.synced
    third = rig.server.watches()
    third.added(rig.gadget("a", 3, namespace="one"))
    third.bookmark(10, end=True)

    await rig.clock.advance(2)

    assert informer.synced
    assert [item.key.namespace for item in rig.cache.reader.list(rig.kind)] == ["one", "two"]
    assert not stream.closed


async def test_relist_of_one_namespace_leaves_the_others_alone(rig: Any) -> None:
    one, two = rig.server.watches(), rig.server.watches()
    one.added(rig.gadget("a", 3, namespace="one"))
    two.added(rig.gadget("b", 4, namespace="two"))
    for stream in (one, two):
        stream.bookmark(10, end=True)
    rig.start(scope=Scope(namespaces=("one", "two")))
    await rig.settle()
    rig.delivered()
    await rig.clock.advance(2)
    one.error(410, "Expired")
    rig.server.streams(version=20)
    await rig.settle()

    assert rig.delivered() == ["deleted a@3 final_state_unknown"]
    assert [item.metadata.name for item in rig.cache.reader.list(rig.kind)] == ["b"]


async def test_reflector_that_dies_ends_the_cache(rig: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    rig.server.fails(ZeroDivisionError("a bug"))
    rig.start()

    with pytest.raises(Exception, match="the watch of Gadget has ended unexpectedly: a bug"):
        await rig.tasks[0]
