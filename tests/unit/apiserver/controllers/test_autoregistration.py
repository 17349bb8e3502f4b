"""A restarted server keeps the APIServices of its definitions, and deletes those of definitions that are gone."""

from __future__ import annotations

import asyncio

from tests.builders.definitions import definition_tree

from kubewright.apiserver.server import ApiServer
from kubewright.apiserver.storage.store import Change, Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.testing import time_limit

TABLE = "apiregistration.k8s.io/apiservices"


class TableWaiter:
    """Waits until a table holds certain names and no others."""

    def __init__(self, store: Store) -> None:
        self._table = store.table(TABLE)
        self._changed = asyncio.Event()
        self._table.watch(self)

    def deliver(self, change: Change) -> None:
        self._changed.set()

    def table_gone(self) -> None:
        raise AssertionError("the table stays")

    async def holds(self, *names: str) -> dict[str, str]:
        """Their uids."""
        async with time_limit(20):
            while {entry.key for entry in self._table.entries()} != set(names):
                self._changed.clear()
                await self._changed.wait()
        return {entry.key: decode_json(entry.value)["metadata"]["uid"] for entry in self._table.entries()}


async def test_a_server_that_starts_again_keeps_those_it_has_and_removes_those_of_lost_definitions() -> None:
    store = Store()
    services = TableWaiter(store)
    first = ApiServer(store=store)
    await first.start()
    for plural, group in (("ones", "a.example.io"), ("twos", "b.example.io")):
        await first.loopback.ensure(definition_tree(plural, group, scope="Cluster"))
    before = await services.holds("v1.a.example.io", "v1.b.example.io")
    await first.stop()
    definitions = store.table("apiextensions.k8s.io/customresourcedefinitions")
    entry = definitions.get("twos.b.example.io")
    assert entry is not None
    definitions.delete(entry.key, entry.value, store.next_version())

    second = ApiServer(store=store)
    await second.start()
    after = await services.holds("v1.a.example.io")
    await second.stop()

    assert after["v1.a.example.io"] == before["v1.a.example.io"]
