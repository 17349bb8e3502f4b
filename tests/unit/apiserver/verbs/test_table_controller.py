"""The queue of keys behind the server's own controllers."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.verbs.table_controller import TableController
from kubewright.apiserver.wire.status_errors import bad_request

TABLE = "/things"


class Handler:
    """Notes the keys it is called with, and fails for some."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.controller = TableController("things", self.handle)

    async def handle(self, key: str) -> None:
        self.keys.append(key)
        if key == "bug":
            raise ValueError(key)
        if key == "refused":
            raise bad_request(key)

    async def settled(self) -> list[str]:
        for _ in range(20):
            await asyncio.sleep(0)
        assert self.controller.is_idle
        return self.keys


def put(store: Store, key: str) -> None:
    store.table(TABLE).put(key, b"{}", store.next_version())


async def test_objects_that_are_there_come_first_and_each_key_once_after_its_write() -> None:
    store, handler = Store(), Handler()
    put(store, "old")
    handler.controller.watch(store.table(TABLE))
    handler.controller.start()

    put(store, "new")
    put(store, "new")
    assert handler.keys == []

    assert await handler.settled() == ["old", "new"]
    await handler.controller.stop()
    put(store, "late")
    assert not handler.controller.running
    assert store.table(TABLE).watchers == 0


async def test_a_key_can_stand_for_many_objects_or_be_left_out() -> None:
    store, handler = Store(), Handler()
    handler.controller.watch(store.table(TABLE), lambda key: key.partition("/")[0] if "/" in key else "")
    handler.controller.start()

    for key in ("a/x", "a/y", "b/x", "alone"):
        put(store, key)

    assert await handler.settled() == ["a", "b"]
    await handler.controller.stop()


async def test_a_handler_that_fails_is_called_for_the_next_key(caplog: pytest.LogCaptureFixture) -> None:
    store, handler = Store(), Handler()
    handler.controller.watch(store.table(TABLE))
    handler.controller.start()

    with caplog.at_level(logging.WARNING):
        for key in ("refused", "bug", "good"):
            put(store, key)
        assert await handler.settled() == ["refused", "bug", "good"]

    assert [record.message for record in caplog.records] == ["things: a change was not handled"]
    await handler.controller.stop()


async def test_the_new_table_of_a_kind_that_was_dropped_is_watched() -> None:
    store, handler = Store(), Handler()
    handler.controller.watch(store.table(TABLE))
    handler.controller.start()
    store.drop(TABLE)

    handler.controller.watch(store.table(TABLE))
    handler.controller.watch(store.table(TABLE))
    put(store, "new")

    assert await handler.settled() == ["new"]
    assert store.table(TABLE).watchers == 1
    await handler.controller.stop()
