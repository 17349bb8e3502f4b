"""Handlers, late ones and bad ones; several to one watch; own writes; resync; informers that come and go."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.cache.scope import Scope
from kubewright.errors import ConfigError, NotFound


async def in_sync(rig: Any, *items: Any, version: int = 10, scope: Scope | None = None) -> Any:
    stream = rig.server.streams(*items, version=version)
    rig.start(scope=scope)
    await rig.settle()
    rig.delivered()
    return stream


# --- handlers ---


async def test_handlers_see_old_and_new(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3, size=1))
    stream.modified(rig.gadget("a", 11, size=2))
    stream.deleted(rig.gadget("a", 12, size=3))
    await rig.settle()

    updated, deleted = rig.changes
    assert (updated.old.spec.size, updated.new.spec.size) == (1, 2)
    assert (updated.old_metadata.resource_version, updated.new_metadata.resource_version) == ("3", "11")
    assert (deleted.old.spec.size, deleted.new, deleted.new_metadata) == (3, None, None)
    assert not deleted.final_state_unknown
    assert updated.kind is rig.kind


async def test_several_handlers_share_one_watch_and_one_decoding(rig: Any) -> None:
    stream = await in_sync(rig)
    objects: list[Any] = []
    informer = rig.cache.informers()[0]
    for _ in range(3):
        informer.subscribe(lambda change: objects.append(change.new))
    stream.added(rig.gadget("a", 11))
    await rig.settle()

    assert rig.server.asked == ["stream"]
    assert len(objects) == 3
    assert objects[0] is objects[1] is objects[2]


async def test_late_handler_first_hears_of_everything_present(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3), rig.gadget("b", 4))
    stream.modified(rig.gadget("a", 11))
    await rig.settle()
    late: list[str] = []

    subscription = rig.cache.informers()[0].subscribe(
        lambda change: late.append(f"{change.type} {change.key.name}@{change.new_metadata.resource_version}")
    )

    assert late == ["added a@11", "added b@4"]
    assert subscription.synced


async def test_late_handler_of_many_objects_catches_up_in_slices_and_in_order(rig: Any) -> None:
    stream = await in_sync(rig, *(rig.gadget(f"g{number:04}", number + 1) for number in range(1200)), version=5000)
    heard: list[Any] = []
    subscription = rig.cache.informers()[0].subscribe(heard.append)
    assert len(heard) == 500
    assert not subscription.synced

    # A change overtakes the rest: its object's present state comes first.
    rig.cache.informers()[0].on_event(event(rig, "MODIFIED", rig.gadget("g1199", 6000)))
    overtaken = [change for change in heard if change.key.name == "g1199"]
    assert [(change.type, change.initial) for change in overtaken] == [("added", True), ("updated", False)]

    await subscription.wait_for_sync()
    assert len(heard) == 1201
    assert len({change.key for change in heard}) == 1200
    assert not stream.closed


async def test_first_list_is_handed_over_in_slices_before_it_counts_as_synced(rig: Any) -> None:
    synced_at: list[bool] = []
    rig.server.streams(*(rig.gadget(f"g{number}", number + 1) for number in range(1200)), version=5000)
    informer = rig.cache.informer(rig.kind)
    informer.subscribe(lambda change: synced_at.append(informer.synced))
    rig.run()
    await informer.wait_for_sync()

    assert synced_at == [False] * 1200


async def test_handler_that_raises_is_named_and_counted_and_hurts_nobody(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stream = await in_sync(rig)

    def careless(change: Any) -> None:
        raise ZeroDivisionError("careless")

    informer = rig.cache.informers()[0]
    informer.subscribe(careless)
    later: list[Any] = []
    informer.subscribe(later.append)
    stream.added(rig.gadget("a", 11))
    stream.added(rig.gadget("b", 12))
    await rig.settle()

    assert len(later) == len(rig.changes) == 2
    assert rig.observer.handler_errors == [careless.__qualname__] * 2
    assert "careless failed for Gadget shop/a" in caplog.text
    assert not stream.closed


async def test_handler_that_meets_an_object_that_does_not_fit_is_not_to_blame(rig: Any) -> None:
    stream = await in_sync(rig)
    sizes: list[int] = []
    rig.cache.informers()[0].subscribe(lambda change: sizes.append(change.new.spec.size))
    broken = {"ownerReferences": 3}
    stream.added(rig.gadget("bad", 11, metadata=broken), rig.gadget("good", 12, size=4))
    await rig.settle()

    assert sizes == [4]
    assert rig.observer.handler_errors == []
    assert rig.observer.malformed == 1


async def test_closed_subscription_hears_no_more(rig: Any) -> None:
    stream = await in_sync(rig)
    heard: list[Any] = []
    subscription = rig.cache.informers()[0].subscribe(heard.append)
    subscription.close()
    subscription.close()
    stream.added(rig.gadget("a", 11))
    await rig.settle()

    assert heard == []
    assert rig.delivered() == ["added a@11"]


async def test_handler_may_close_itself(rig: Any) -> None:
    stream = await in_sync(rig)
    heard: list[Any] = []

    def once(change: Any) -> None:
        heard.append(change)
        subscription.close()

    subscription = rig.cache.informers()[0].subscribe(once)
    stream.added(rig.gadget("a", 11), rig.gadget("b", 12))
    await rig.settle()

    assert len(heard) == 1


# --- versions and identities ---


async def test_recreation_under_one_name_is_a_deletion_and_an_addition(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3, uid="one"))
    stream.modified(rig.gadget("a", 12, uid="two"))
    await rig.settle()

    assert rig.delivered() == ["deleted a@3 final_state_unknown", "added a@12"]
    assert rig.read("a").metadata.uid == "two"


async def test_event_that_was_seen_before_changes_nothing(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 9, size=9))
    stream.modified(rig.gadget("a", 5, size=5))
    stream.added(rig.gadget("a", 9, size=9))
    await rig.settle()

    assert rig.delivered() == []
    assert rig.read("a").spec.size == 9


async def test_end_of_an_earlier_object_does_not_remove_its_successor(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 9, uid="two"))
    stream.deleted(rig.gadget("a", 6, uid="one"))
    stream.deleted(rig.gadget("unknown", 11))
    await rig.settle()

    assert rig.delivered() == []
    assert rig.names() == ["a"]


async def test_end_of_an_object_never_seen_takes_the_one_that_was_with_it(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3, uid="one"))
    stream.deleted(rig.gadget("a", 12, uid="two"))
    await rig.settle()

    (change,) = rig.changes
    assert (change.type, change.final_state_unknown, change.old.metadata.uid) == ("deleted", True, "one")
    assert rig.names() == []


async def test_versions_that_are_no_numbers_count_as_newer_when_different(rig: Any) -> None:
    stream = rig.server.streams(rig.gadget("a", "x1"), version="v10")
    rig.start()
    await rig.settle()
    stream.modified(rig.gadget("a", "x1"))
    stream.modified(rig.gadget("a", "b7", size=7))
    await rig.settle()
    rig.cache.record_write(rig.written("a", "c1", size=8))
    assert rig.read("a").spec.size == 8
    stream.modified(rig.gadget("a", "c1", size=8))
    await rig.clock.advance(2)
    stream.end()
    await rig.settle()

    assert rig.delivered() == ["added a@x1 initial", "updated a@b7", "updated a@c1 own"]
    assert rig.server.asked == ["stream", "watch c1"]


# --- own writes ---


async def test_read_after_a_write_shows_it_before_the_watch_does(rig: Any) -> None:
    await in_sync(rig, rig.gadget("a", 3, size=1))

    rig.cache.record_write(rig.written("a", 12, size=2))
    rig.cache.record_write(rig.written("new", 13))

    assert rig.read("a").spec.size == 2
    assert rig.names() == ["a", "new"]
    assert rig.delivered() == []


async def test_older_event_of_others_is_delivered_and_does_not_take_the_read_back(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3, size=1))
    rig.cache.record_write(rig.written("a", 15, size=15))
    stream.modified(rig.gadget("a", 14, size=14))
    await rig.settle()
    assert rig.read("a").spec.size == 15

    stream.modified(rig.gadget("a", 15, size=15))
    stream.modified(rig.gadget("a", 16, size=16))
    await rig.settle()

    assert [(change.old.spec.size, change.new.spec.size, change.own) for change in rig.changes] == [
        (1, 14, False),
        (14, 15, True),
        (15, 16, False),
    ]
    assert rig.read("a").spec.size == 16


async def test_each_of_several_own_writes_is_known_by_its_version(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3))
    for version in (12, 14, 15):
        rig.cache.record_write(rig.written("a", version))
    for version in (12, 13, 14, 15):
        stream.modified(rig.gadget("a", version))
    await rig.settle()

    assert rig.delivered() == ["updated a@12 own", "updated a@13", "updated a@14 own", "updated a@15 own"]


async def test_write_that_may_have_changed_nothing_is_not_marked_as_own(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3))
    rig.cache.record_write(rig.written("a", 12, size=5), own=False)
    assert rig.read("a").spec.size == 5
    stream.modified(rig.gadget("a", 12, size=5))
    await rig.settle()

    assert rig.delivered() == ["updated a@12"]


async def test_answer_that_the_watch_has_overtaken_changes_nothing(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3))
    stream.modified(rig.gadget("a", 12, size=12))
    stream.modified(rig.gadget("a", 13, size=13))
    await rig.settle()

    rig.cache.record_write(rig.written("a", 12, size=12))

    assert rig.read("a").spec.size == 13


async def test_deleted_object_is_not_found_though_the_watch_still_shows_it(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3, uid="one"))
    rig.cache.record_deletion(rig.read("a"))
    with pytest.raises(NotFound):
        rig.read("a")
    stream.modified(rig.gadget("a", 12, uid="one"))
    await rig.settle()
    with pytest.raises(NotFound):
        rig.read("a")

    stream.deleted(rig.gadget("a", 13, uid="one"))
    stream.added(rig.gadget("a", 14, uid="two"))
    await rig.settle()

    assert rig.delivered() == ["updated a@12", "deleted a@13", "added a@14"]
    assert rig.read("a").metadata.uid == "two"


async def test_answer_without_a_version_is_a_deletion_that_came_too_late(rig: Any) -> None:
    """What a server answers if the object went away while it was being deleted: what it was, with no version."""
    stream = await in_sync(rig, rig.gadget("a", 3, uid="one"))
    stream.deleted(rig.gadget("a", 12, uid="one"))
    await rig.settle()

    rig.cache.record_write(rig.written("a", "", uid="one"))

    assert rig.names() == []
    stream.added(rig.gadget("a", 14, uid="two"))
    await rig.settle()
    assert rig.read("a").metadata.uid == "two"


async def test_deletion_by_kind_key_and_uid_spares_a_namesake(rig: Any) -> None:
    await in_sync(rig, rig.gadget("a", 3, uid="two"))

    rig.cache.record_deletion(rig.kind, rig.read("a").key, "one")
    assert rig.names() == ["a"]
    rig.cache.record_deletion(rig.kind, rig.read("a").key, "two")
    assert rig.names() == []
    with pytest.raises(ConfigError, match="name the object"):
        rig.cache.record_deletion(rig.kind)


async def test_object_made_and_deleted_before_the_watch_shows_it_stays_unseen(rig: Any) -> None:
    stream = await in_sync(rig)
    made = rig.written("a", 12)
    rig.cache.record_write(made)
    rig.cache.record_deletion(made)
    stream.added(rig.gadget("a", 12))
    await rig.settle()
    assert rig.names() == []
    stream.deleted(rig.gadget("a", 13))
    await rig.settle()

    assert rig.delivered() == ["added a@12 own", "deleted a@13"]
    assert rig.cache.informers()[0]._overlay.pending_count == 0


async def test_write_out_of_scope_is_forgotten_when_the_watch_has_passed_it(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3, labels={"app": "web"}), scope=Scope(labels="app=web"))
    rig.cache.record_write(rig.written("other", 12, labels={"app": "db"}))
    rig.cache.record_write(rig.written("a", 13, labels={"app": "db"}))
    assert rig.names() == []

    stream.deleted(rig.gadget("a", 13, labels={"app": "web"}))
    stream.bookmark(20)
    await rig.settle()

    assert rig.names() == []
    assert rig.cache.informers()[0]._overlay.pending_count == 0


async def test_list_settles_own_writes_up_to_its_version(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3), rig.gadget("b", 4))
    rig.cache.record_write(rig.written("a", 12, size=12))
    rig.cache.record_write(rig.written("b", 30, size=30))
    await rig.clock.advance(2)
    stream.error(410, "Expired")
    rig.server.streams(rig.gadget("a", 15, size=15), rig.gadget("b", 4), version=20)
    await rig.settle()

    assert rig.delivered() == ["updated a@15"]
    assert (rig.read("a").spec.size, rig.read("b").spec.size) == (15, 30)


async def test_object_that_was_created_and_deleted_before_a_watch_showed_it_is_delivered(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3))
    for name, version in (("b", 12), ("c", 13), ("d", 30)):
        rig.cache.record_write(rig.written(name, version))
    made = rig.written("e", 14)
    rig.cache.record_write(made)
    rig.cache.record_deletion(made)  # by this process, for another of its controllers than the one that made it
    stream.error(410, "Expired")
    again = rig.gadget("c", 15)
    again["metadata"]["uid"] = "another"
    await rig.clock.advance(2)
    rig.server.streams(rig.gadget("a", 3), again, version=20)
    await rig.settle()

    assert rig.delivered() == [
        "added b@12 own", "deleted b@12 final_state_unknown",
        "added c@13 own", "deleted c@13 final_state_unknown",
        "added e@14 own", "deleted e@14 final_state_unknown",
        "added c@15",
    ]  # fmt: skip
    assert rig.names() == ["a", "c", "d"]


async def test_tombstone_of_an_object_the_watch_never_shows_expires(rig: Any) -> None:
    await in_sync(rig)
    for number in range(5):
        rig.cache.record_deletion(rig.written(f"gone{number}", 5))
    overlay = rig.cache.informers()[0]._overlay
    assert overlay.pending_count == 5
    await rig.clock.advance(301)

    rig.cache.record_deletion(rig.written("another", 5))

    assert overlay.pending_count == 1


async def test_indexes_and_lists_see_own_writes_too(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3, color="red"))
    rig.cache.informers()[0].add_index("color", lambda gadget: [gadget.spec.color])

    rig.cache.record_write(rig.written("a", 12, color="blue", labels={"x": "y"}))

    assert rig.names(index=("color", "blue")) == ["a"]
    assert rig.names(index=("color", "red")) == []
    assert rig.names(labels="x=y") == ["a"]
    stream.modified(rig.gadget("a", 13, color="red"))
    await rig.settle()
    assert rig.names(index=("color", "red")) == ["a"]
    assert rig.names(labels="x=y") == []


# --- what is kept ---


async def test_reader_cannot_corrupt_the_cache(rig: Any) -> None:
    await in_sync(rig, rig.gadget("a", 3, size=1, labels={"app": "web"}))
    for obj in (rig.read("a"), rig.cache.reader.list(rig.kind)[0]):
        obj.spec.size = 99
        obj.metadata.labels["app"] = "broken"
        obj.metadata.finalizers.append("x")

    fresh = rig.read("a")

    assert (fresh.spec.size, fresh.metadata.labels, fresh.metadata.finalizers) == (1, {"app": "web"}, [])
    assert rig.names(labels="app=web") == ["a"]


async def test_handler_that_changes_what_it_is_shown_does_not_corrupt_the_cache(rig: Any) -> None:
    stream = await in_sync(rig)
    rig.cache.informers()[0].subscribe(lambda change: change.new.metadata.labels.update(app="broken"))
    stream.added(rig.gadget("a", 11, labels={"app": "web"}))
    await rig.settle()

    assert rig.read("a").metadata.labels == {"app": "web"}


async def test_change_cannot_be_changed(rig: Any) -> None:
    stream = await in_sync(rig)
    stream.added(rig.gadget("a", 11))
    await rig.settle()

    with pytest.raises(AttributeError):
        rig.changes[0].type = "deleted"


async def test_resync_reminds_of_every_object_about_every_ten_hours(rig: Any) -> None:
    stream = rig.server.streams(rig.gadget("a", 3), rig.gadget("b", 4), version=10)
    rig.start()
    for _ in range(600):  # keep the watch alive for eleven hours
        await rig.clock.advance(66)
        stream.bookmark(10)

    told = [text for text in rig.delivered() if "resync" in text]
    assert told == ["updated a@3 resync", "updated b@4 resync"]


async def test_resync_can_be_switched_off(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3), scope=Scope(resync=0))
    for _ in range(600):
        await rig.clock.advance(66)
        stream.bookmark(10)

    assert rig.delivered() == []


async def test_observer_hears_counts_and_sizes(rig: Any) -> None:
    stream = await in_sync(rig, rig.gadget("a", 3))
    stream.added(rig.gadget("b", 11))
    stream.bookmark(12)
    stream.end()
    await rig.settle()

    assert rig.observer.events == 1
    assert rig.observer.ends == ["closed"]
    objects, size = rig.observer.sizes[-1]
    assert (objects, size) == (2, rig.cache.informers()[0].store.size)


def event(rig: Any, type_: str, tree: Any) -> Any:
    """What a reflector would hand to the informer."""
    import json

    from kubewright.api.resource import definition_of
    from kubewright.cache.decoder import EventDecoder

    decoder = EventDecoder(definition_of(rig.kind), Scope())
    return decoder.decode_event(json.dumps({"type": type_, "object": tree}).encode())
