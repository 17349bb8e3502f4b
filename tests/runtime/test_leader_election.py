"""Leader election and the fence on a server, in real time.

Leases are as short as the case allows: a leader has to live through the moments in which a busy machine runs others.

Covers: kubewright.manager.leader_election
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kubewright import Client
from kubewright._base.tasks import cancel_and_wait
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream, Transport
from kubewright.cluster.planes.real import RealCluster
from kubewright.errors import LeadershipLost, TransportError
from kubewright.k8s.coordination.v1 import Lease
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.manager.leader_election.elector import LeaderElector, LeaseTimes
from kubewright.manager.leader_election.fence import FencedTransport
from kubewright.testing import time_limit

KEPT = LeaseTimes(duration=4, renew_deadline=3, retry_period=0.2)
"""For a lease that is to run out later: its holder must not lose it before."""
LONG = LeaseTimes(duration=300, renew_deadline=200, retry_period=0.2)
"""For one that never runs out while anybody waits."""
WAIT = 90.0
"""Long enough for an interpreter to start beside twenty others."""


@asynccontextmanager
async def campaign(
    client: Client, namespace: str, identity: str, *, times: LeaseTimes = LONG
) -> AsyncIterator[tuple[LeaderElector, asyncio.Task[None]]]:
    leadership = LeaderElector(client, lease="boss", namespace=namespace, identity=identity, times=times)
    task = asyncio.create_task(leadership.run())
    try:
        yield leadership, task
    finally:
        await cancel_and_wait(task)


async def test_renewals_keep_what_others_wrote_on_the_lease(client: Client, namespace: str) -> None:
    async with campaign(client, namespace, "a") as (first, task):
        async with time_limit(WAIT):
            await first.wait_elected()
        lease = await client.get(Lease, "boss", namespace=namespace)
        acquired = lease.spec.acquire_time
        await client.patch_by_name(
            Lease, "boss", {"metadata": {"annotations": {"note": "by hand"}}}, namespace=namespace
        )
        async with client.watch(Lease, namespace=namespace) as events:
            seen: list[Lease] = []
            async for event in events:
                seen.append(event.object)
                if len(seen) == 5:
                    break

        now = seen[-1]
        assert now.metadata.annotations == {"note": "by hand"}
        assert now.spec.acquire_time == acquired
        assert now.spec.lease_transitions == 0
        assert not task.done()


async def test_a_released_lease_is_taken_quickly(client: Client, namespace: str) -> None:
    async with campaign(client, namespace, "a") as (first, leading):
        async with time_limit(WAIT):
            await first.wait_elected()
        async with campaign(client, namespace, "b") as (second, _):
            await cancel_and_wait(leading)
            await first.release()
            released = asyncio.get_running_loop().time()

            async with time_limit(WAIT):
                await second.wait_elected()

            assert asyncio.get_running_loop().time() - released < LONG.duration


async def test_of_ten_candidates_exactly_one_wins(client: Client, namespace: str) -> None:
    candidates = [
        LeaderElector(client, lease="boss", namespace=namespace, identity=f"c{number}", times=LONG)
        for number in range(10)
    ]
    tasks = [asyncio.create_task(candidate.run()) for candidate in candidates]
    elections = [asyncio.create_task(candidate.wait_elected()) for candidate in candidates]
    async with time_limit(WAIT):
        await asyncio.wait(elections, return_when=asyncio.FIRST_COMPLETED)

    leaders = [candidate.identity for candidate in candidates if candidate.is_leader]
    lease = await client.get(Lease, "boss", namespace=namespace)

    assert leaders == [lease.spec.holder_identity]
    assert lease.spec.lease_transitions == 0
    await cancel_and_wait(*tasks, *elections)


class Cut:
    """A transport that can lose the network for some paths."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.lost = ""

    async def send(self, request: HttpRequest) -> HttpResponse:
        if self.lost and self.lost in request.path:
            raise TransportError("the network is gone")
        return await self._transport.send(request)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        async with self._transport.stream(request) as stream:
            yield stream

    async def close(self) -> None:
        return None


async def test_no_two_write_at_once_when_a_leader_cannot_renew(client: Client, namespace: str) -> None:
    """The first loses only the way to its lease: its other requests would still go through."""
    cut = Cut(client.transport)
    first = LeaderElector(Client(cut), lease="boss", namespace=namespace, identity="a", times=KEPT)
    second = LeaderElector(client, lease="boss", namespace=namespace, identity="b", times=KEPT)
    await client.create(ConfigMap.named("shared", namespace, data={}))
    story: list[tuple[float, float, str]] = []
    refused = asyncio.Event()
    busy = {"a": asyncio.Event(), "b": asyncio.Event()}

    async def write(leadership: LeaderElector, transport: Transport) -> None:
        own = Client(FencedTransport(transport, leadership))
        await leadership.wait_elected()
        clock = asyncio.get_running_loop().time
        while True:
            begun = clock()
            try:
                await own.patch_by_name(ConfigMap, "shared", {"data": {"by": leadership.identity}}, namespace=namespace)
            except LeadershipLost:
                refused.set()
                return
            story.append((begun, clock(), leadership.identity))
            if len(story) >= 20:
                busy[leadership.identity].set()

    running = [asyncio.create_task(first.run())]
    async with time_limit(WAIT):
        await first.wait_elected()
    running.append(asyncio.create_task(second.run()))
    writers = [asyncio.create_task(write(first, cut)), asyncio.create_task(write(second, client.transport))]
    async with time_limit(WAIT):
        await busy["a"].wait()
    cut.lost = "/leases/"

    async with time_limit(WAIT):
        await refused.wait()
    async with time_limit(WAIT):
        await second.wait_elected()
    async with time_limit(WAIT):
        await busy["b"].wait()
    await cancel_and_wait(*running, *writers)

    authors = [author for _, _, author in story]
    assert authors == sorted(authors), "a wrote, then b, never mixed"
    # When a write was sent is up to who sends it; when its answer is read, to whatever else the machine does.
    last_of_a = max(begun for begun, _, author in story if author == "a")
    first_of_b = min(done for _, done, author in story if author == "b")
    assert first_of_b - last_of_a > 0.5


OPERATOR = """
import asyncio, os, signal, sys
from kubewright import Config
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.manager.manager import Manager
from kubewright.manager.options import ManagerOptions

async def main():
    kubeconfig, namespace, identity = sys.argv[1:]
    # Frozen between two steps of the loop: nobody can keep a write from leaving whose bytes are half sent.
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, os.kill, os.getpid(), signal.SIGSTOP)
    options = ManagerOptions(name="proc", namespace=namespace, leader_election=True, lease_duration=4.0,
        renew_deadline=3.0, retry_period=0.2, health_address="0", metrics_address="0")
    manager = Manager(config=Config.load(kubeconfig=kubeconfig), options=options)
    async def work():
        print("leading", flush=True)
        while True:
            await manager.client.patch_by_name(ConfigMap, "shared", {"data": {"by": identity}}, namespace=namespace)
            await asyncio.sleep(0.02)
    manager.add(work)
    await manager.run()

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
async def test_a_process_that_is_killed_stopped_or_frozen_is_followed_and_never_overlaps(
    client: Client, namespace: str, plane: RealCluster, how: signal.Signals
) -> None:
    await client.create(ConfigMap.named("shared", namespace, data={}))

    async def start(identity: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-c", OPERATOR, str(plane.kubeconfig), namespace, identity,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip

    async def leads(process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async with time_limit(WAIT):
            assert await process.stdout.readline() == b"leading\n"

    first = await start("a")
    await leads(first)
    second = await start("b")
    authors: list[str] = []
    try:
        version = (await client.get(ConfigMap, "shared", namespace=namespace)).metadata.resource_version
        async with client.watch(ConfigMap, namespace=namespace, resource_version=version) as events:
            first.send_signal(signal.SIGUSR1 if how is signal.SIGSTOP else how)
            await leads(second)
            if how is signal.SIGSTOP:
                first.send_signal(signal.SIGCONT)  # it wakes up while the other leads
                async with time_limit(WAIT):
                    await first.wait()
                assert first.returncode == 1
            if how is signal.SIGTERM:
                async with time_limit(WAIT):
                    assert await first.wait() == 0
            transitions = (await client.get(Lease, "proc", namespace=namespace)).spec.lease_transitions
            end = await client.patch_by_name(ConfigMap, "shared", {"data": {"end": "now"}}, namespace=namespace)
            async for event in events:
                if event.object.metadata.name == "shared":
                    authors.append((event.object.data or {}).get("by", ""))
                if event.object.metadata.resource_version == end.metadata.resource_version:
                    break
    finally:
        for process in (first, second):
            if process.returncode is None:
                process.kill()
            await process.communicate()

    assert authors == sorted(authors), "once b has written, a never does again"
    assert transitions == 1
