"""What becomes of a write when somebody else writes the same object before it is stored.

Covers: kubewright.apiserver.verbs
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubewright._base.clock import SystemClock
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.access import OpenAccess
from kubewright.apiserver.kinds.admission import Attributes, Chain
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.verbs.apply import ApplyHandler
from kubewright.apiserver.verbs.create import CreateHandler
from kubewright.apiserver.verbs.delete import DeleteHandler
from kubewright.apiserver.verbs.loopback import Loopback
from kubewright.apiserver.verbs.patch import PatchHandler
from kubewright.apiserver.verbs.registry import Registry
from kubewright.apiserver.verbs.update import UpdateHandler
from kubewright.apiserver.wire.status_errors import StatusError

Tree = dict[str, Any]

CATALOG = Catalog(ServiceAllocator())
MAPS = CATALOG.builtin("", "configmaps")
KEY = "default/m"


class Interference:
    """A plugin that lets somebody else write while it validates an update, as often as it is told."""

    def __init__(self) -> None:
        self.times = 0
        self.write: Callable[[], Awaitable[Any]] | None = None

    def handles(self, attributes: Attributes) -> bool:
        return attributes.operation == "UPDATE" and self.times > 0

    async def validate(self, attributes: Attributes) -> None:
        assert self.write is not None
        self.times -= 1
        times, self.times = self.times, 0
        await self.write()
        self.times = times


class Writers:
    """A client, and another that writes in between."""

    def __init__(self) -> None:
        self.store = Store()
        self.interference = Interference()
        self.client = self._client(Chain([self.interference]))
        self._other = self._client(Chain())
        self._count = 0
        self.interference.write = self._write

    def _client(self, chain: Chain) -> Loopback:
        registry = Registry(self.store, chain, SystemClock(), access=OpenAccess())
        creates = CreateHandler(registry)
        updates = UpdateHandler(registry, creates)
        patches = PatchHandler(registry, updates, ApplyHandler(registry, creates, updates))
        deletes = DeleteHandler(registry)
        return Loopback(self.store, CATALOG, creates=creates, updates=updates, patches=patches, deletes=deletes)

    async def _write(self) -> None:
        self._count += 1
        count = str(self._count)
        await self._other.edit(MAPS, KEY, lambda live: {**live, "data": {**live["data"], "other": count}})

    async def live(self) -> Tree:
        return await self.client.ensure(settings())


def settings(**data: str) -> Tree:
    metadata = {"name": "m", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.fixture
async def writers() -> Writers:
    writers = Writers()
    await writers.client.create(MAPS, settings(own="0"))
    return writers


async def test_an_update_without_a_version_is_tried_again(writers: Writers) -> None:
    writers.interference.times = 2

    await writers.client.update(MAPS, settings(own="1"))

    assert (await writers.live())["data"] == {"own": "1"}
    assert writers.interference.times == 0


async def test_an_update_of_a_version_conflicts(writers: Writers) -> None:
    tree = settings(own="1")
    tree["metadata"]["resourceVersion"] = (await writers.live())["metadata"]["resourceVersion"]
    writers.interference.times = 1

    with pytest.raises(StatusError, match="please apply your changes to the latest version"):
        await writers.client.update(MAPS, tree)

    assert (await writers.live())["data"] == {"own": "0", "other": "1"}


async def test_a_change_and_an_apply_are_made_again_to_what_is_there_then(writers: Writers) -> None:
    writers.interference.times = 1
    await writers.client.edit(MAPS, KEY, lambda live: {**live, "data": {**live["data"], "own": "2"}})
    writers.interference.times = 1
    await writers.client.apply(MAPS, settings(applied="3"), manager="m")

    assert (await writers.live())["data"] == {"own": "2", "other": "2", "applied": "3"}


async def test_nobody_tries_for_ever(writers: Writers) -> None:
    writers.interference.times = 100

    with pytest.raises(StatusError) as conflict:
        await writers.client.edit(MAPS, KEY, lambda live: {**live, "data": {**live["data"], "own": "2"}})

    assert (conflict.value.reason, writers.interference.times) == ("Conflict", 95)


async def test_an_update_that_changes_nothing_is_no_write(writers: Writers) -> None:
    before = writers.store.version

    await writers.client.update(MAPS, await writers.live())

    assert writers.store.version == before
