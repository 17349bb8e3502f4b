"""An operator lives through minutes of work and bad weather: in the end all is as it should be, and nothing has leaked.

SOAK_MINUTES (2) says how long, SOAK_SEED (1) what happens. Half an hour, by hand:

    SOAK_MINUTES=30 pytest -s tests/scenarios/test_soak.py

Covers: kubewright.manager, kubewright.cache, kubewright.controllers
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from random import Random

import pytest
from tests.planes import faulty, fresh_namespace
from tests.scenarios.conftest import Journal, Widget, child_per_widget, converged, insist, managed, widget

from kubewright import Client, Config, connect
from kubewright._base.loop import shrink_tls_buffers
from kubewright.client.transport.transport import HttpRequest, HttpResponse
from kubewright.cluster.planes.real import RealCluster
from kubewright.errors import NotFound
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.testing import time_limit
from kubewright.testing.faults import FaultyTransport, status

MINUTES = float(os.environ.get("SOAK_MINUTES", "2"))
SEED = int(os.environ.get("SOAK_SEED", "1"))
MOST_WIDGETS = 80
ACTIONS_PER_SECOND = 40.0
MOST_GROWTH = 64 + 4096 / MINUTES
"""KB a minute: room for an allocator that settles, which shows less the longer one looks. A leak does not get less."""

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(int(MINUTES * 60) + 420)]


class People:
    """Create, edit and delete widgets, meddle with children, and remember what ought to be there."""

    def __init__(self, client: Client, namespace: str, rng: Random) -> None:
        self.sizes: dict[str, int] = {}
        self.actions = 0
        self.over = False
        self._client = client
        self._namespace = namespace
        self._rng = rng
        self._made = 0
        self._deleted: list[str] = []

    async def work(self) -> None:
        while len(self.sizes) < MOST_WIDGETS and not self.over:
            await self._create()
        while not self.over:
            self.actions += 1
            chosen = self._rng.choices((self._create, self._edit, self._delete, self._meddle), (2, 6, 2, 2))[0]
            if chosen == self._create and len(self.sizes) >= MOST_WIDGETS:
                chosen = self._delete
            elif not self.sizes:
                chosen = self._create
            await chosen()

    async def _create(self) -> None:
        name, size = await self._new_name(), self._rng.randint(1, 999)
        await insist(lambda: self._client.create(widget(name, self._namespace, size=size)))
        self.sizes[name] = size

    async def _new_name(self) -> str:
        """Now and then that of a widget that is gone: the same name, another object."""
        if self._deleted and self._rng.random() < 0.3:
            name = self._deleted.pop(self._rng.randrange(len(self._deleted)))
            if await self._is_gone(name):
                return name
        self._made += 1
        return f"w{self._made}"

    async def _is_gone(self, name: str) -> bool:
        gone = False

        async def look() -> None:
            nonlocal gone
            try:
                await self._client.get(Widget, name, namespace=self._namespace)
            except NotFound:
                gone = True

        await insist(look)
        return gone

    async def _edit(self) -> None:
        name, size = self._rng.choice(list(self.sizes)), self._rng.randint(1, 999)
        patch = {"spec": {"size": size}}
        await insist(lambda: self._client.patch_by_name(Widget, name, patch, namespace=self._namespace))
        self.sizes[name] = size

    async def _delete(self) -> None:
        name = self._rng.choice(list(self.sizes))
        await insist(lambda: self._client.delete(Widget, name, namespace=self._namespace))
        del self.sizes[name]
        self._deleted.append(name)

    async def _meddle(self) -> None:
        name = self._rng.choice(list(self.sizes))
        if self._rng.random() < 0.5:
            await insist(lambda: self._client.delete(ConfigMap, name, namespace=self._namespace))
        else:
            patch = {"data": {"size": "wrong"}}
            await insist(lambda: self._client.patch_by_name(ConfigMap, name, patch, namespace=self._namespace))


class Weather:
    """One fault after another, each ended before the next; the operator gets to work a little in between."""

    def __init__(self, cluster: RealCluster, faults: FaultyTransport, journal: Journal, rng: Random) -> None:
        self.seen: list[str] = []
        self.over = False
        self._cluster = cluster
        self._faults = faults
        self._journal = journal
        self._rng = rng

    async def change(self) -> None:
        kinds = (self._cuts, self._offline, self._errors, self._hangs, self._restart, self._compaction)
        while not self.over:
            await self._some_runs()
            fault = self._rng.choices(kinds, (10, 5, 5, 3, 2, 2))[0]
            self.seen.append(fault.__name__)
            await fault()

    async def _some_runs(self) -> None:
        # Neither record is needed any further, and both would grow like a leak.
        self._journal.entries.clear()
        self._faults.requests.clear()
        wanted = self._rng.randint(5, 100)
        await self._journal.reach(lambda entries: len(entries) >= wanted, seconds=120)

    async def _lasting(self) -> None:
        over = asyncio.Event()
        asyncio.get_running_loop().call_later(self._rng.uniform(0.1, 3.0), over.set)
        await over.wait()

    async def _cuts(self) -> None:
        self._faults.cut_streams()

    async def _offline(self) -> None:
        self._faults.go_offline()
        try:
            await self._lasting()
        finally:
            self._faults.offline = False

    async def _errors(self) -> None:
        share = self._rng.uniform(0.1, 1.0)
        answers = (status(500, reason="InternalError"), status(429, retry_after=1), status(503), status(409))

        def answer(request: HttpRequest) -> HttpResponse | None:
            return self._rng.choice(answers) if self._rng.random() < share else None

        self._faults.answer = answer
        self._faults.cut_streams()
        try:
            await self._lasting()
        finally:
            self._faults.answer = None

    async def _hangs(self) -> None:
        await self._cluster.pause("apiserver")
        try:
            await self._lasting()
        finally:
            await self._cluster.resume("apiserver")

    async def _restart(self) -> None:
        await self._cluster.kill("apiserver")
        await self._cluster.restart("apiserver")

    async def _compaction(self) -> None:
        await self._cluster.compact()
        await self._restart()


class Memory:
    """Samples of this process's resident memory, and how fast it grows.

    Open connections come and go, and have large buffers: what tells of a leak is where memory falls back to. The first
    third of the time does not count, in which pools, caches and tables reach their size.
    """

    def __init__(self) -> None:
        self.samples: list[tuple[float, float]] = []

    def take(self, seconds: float) -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.samples.append((seconds / 60, pages * os.sysconf("SC_PAGE_SIZE") / 1024))

    def growth(self) -> float:
        """KB a minute, from the lowest in the middle third to the lowest in the last."""
        third = self.samples[-1][0] / 3
        middle = min(size for minute, size in self.samples if third <= minute < 2 * third)
        last = min(size for minute, size in self.samples if minute >= 2 * third)
        return (last - middle) / third


async def watch_memory(memory: Memory, seconds: float) -> None:
    """Ends with the soak; a sample each half second."""
    loop = asyncio.get_running_loop()
    started, tick = loop.time(), asyncio.Event()
    while loop.time() < started + seconds:
        tick.clear()
        loop.call_later(0.5, tick.set)
        await tick.wait()
        memory.take(loop.time() - started)


async def test_after_minutes_of_work_and_bad_weather_all_is_as_it_should_be_and_nothing_has_leaked(
    own_cluster: RealCluster, own_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    shrink_tls_buffers()  # as `Manager.run` does, which owns its process
    caplog.set_level(logging.CRITICAL, logger="kubewright")  # captured records would look like a leak
    namespace, journal, memory = await fresh_namespace(own_client), Journal(), Memory()
    config = Config.load(kubeconfig=own_cluster.kubeconfig)
    tasks = asyncio.all_tasks()

    async with faulty(own_cluster.kubeconfig) as (client, faults), connect(config, qps=ACTIONS_PER_SECOND) as hands:
        people = People(hands, namespace, Random(SEED))
        weather = Weather(own_cluster, faults, journal, Random(SEED + 1))
        async with managed(client, namespace, child_per_widget(journal, concurrency=4)) as manager:
            async with asyncio.TaskGroup() as group:
                working = group.create_task(people.work())
                changing = group.create_task(weather.change())
                await watch_memory(memory, MINUTES * 60)
                weather.over = True
                await changing
                people.over = True
                await working

            await converged(own_client, namespace, people.sizes)
            # A watch that the last fault has ended is tried again after its back-off, of up to half a minute.
            async with time_limit(120):
                while list(manager.cache.problems()):  # noqa: ASYNC110 - nobody is told when a problem is over
                    await asyncio.sleep(0.05)

    # The cluster has a task for each server it started, also for the last one.
    left = [
        task for task in asyncio.all_tasks() - tasks if not task.done() and task.get_name() != "kube-apiserver ends"
    ]
    print(f"\n{people.actions} actions, {len(weather.seen)} faults, {len(people.sizes)} widgets left")
    print(f"memory {memory.samples[-1][1]:.0f} KB, {memory.growth():.0f} KB a minute")
    assert not left
    assert memory.growth() < MOST_GROWTH
