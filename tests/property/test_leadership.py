"""However candidates are cut off, delayed, stalled and restarted: one leader at a time, and only it writes.

Covers: kubewright.manager.leader_election
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from random import Random
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lease_server import PATH, LeaseServer

from kubewright._base.tasks import cancel_and_wait, failure_of
from kubewright.client.client import Client
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import KubewrightError, TransportError
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.manager.leader_election.elector import LeaderElector
from kubewright.manager.leader_election.fence import FencedTransport
from kubewright.testing.clock import VirtualClock

NAMES = ("a", "b", "c")
Fault = Literal["cut", "mend", "delay", "lose answers", "stall", "restart", "release"]


@dataclass(frozen=True)
class Step:
    wait: float
    name: str
    fault: Fault


class World(LeaseServer):
    """The server, the ways to it, and every write that arrived with who held the lease at that moment."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self.clock = clock
        self.losing: set[str] = set()
        self.delays: dict[str, float] = {}
        self.writes: list[tuple[str, str]] = []

    def holder(self) -> str:
        return self.spec().get("holderIdentity") or "" if self.objects else ""

    def answer_to(self, name: str, request: HttpRequest) -> HttpResponse:
        if request.path.startswith(PATH):
            return self.answer(request)
        self.writes.append((name, self.holder()))
        return HttpResponse(status=200, headers={}, body=request.body or b"{}")


class Wire:
    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name

    async def send(self, request: HttpRequest) -> HttpResponse:
        world, name = self.world, self.name
        if (delay := world.delays.get(name, 0.0)) > 0 and request.path.startswith(PATH):
            await world.clock.sleep(delay)
        if name in world.cut_off and request.path.startswith(PATH):
            raise TransportError("cut off")
        answer = world.answer_to(name, request)
        if name in world.losing and request.path.startswith(PATH):
            raise TransportError("the answer was lost")
        return answer

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        raise NotImplementedError

    async def close(self) -> None:
        return None


class Process:
    """A candidate that writes whenever it is allowed to, and starts over when it has lost."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.life = 0
        self.start()

    def start(self) -> None:
        self.life += 1
        identity = f"{self.name}{self.life}"
        wire = Wire(self.world, self.name)
        self.leadership = LeaderElector(
            Client(wire),
            lease="boss",
            namespace="shop",
            identity=identity,
            clock=self.world.clock,
            rng=Random(identity),
        )
        self.client = Client(FencedTransport(Wire(self.world, identity), self.leadership))
        self.campaign = asyncio.create_task(self.leadership.run())

    async def stop(self) -> None:
        await cancel_and_wait(self.campaign)

    async def write(self) -> None:
        try:
            await self.client.create(ConfigMap.named("x"))
        except KubewrightError:
            if failure_of(self.campaign) is not None:
                self.start()


STEPS = st.lists(
    st.builds(
        Step,
        wait=st.sampled_from([0.1, 0.9, 2.0, 4.9, 5.1, 9.9, 10.1, 15.0]),
        name=st.sampled_from(NAMES),
        fault=st.sampled_from(["cut", "mend", "delay", "lose answers", "stall", "restart", "release"]),
    ),
    max_size=12,
)


async def play(steps: list[Step]) -> World:
    clock = VirtualClock()
    world = World(clock)
    processes = {name: Process(world, name) for name in NAMES}

    async def pass_time(seconds: float) -> None:
        end = clock.monotonic() + seconds
        while clock.monotonic() < end - 1e-9:
            await clock.advance(min(0.5, end - clock.monotonic()))
            for process in processes.values():
                await process.write()
            leaders = [process.name for process in processes.values() if process.leadership.is_leader]
            assert len(leaders) <= 1, f"{leaders} lead at {clock.monotonic():.1f} s"

    for step in steps:
        process = processes[step.name]
        match step.fault:
            case "cut":
                world.cut_off.add(step.name)
            case "mend":
                world.cut_off.discard(step.name)
                world.losing.discard(step.name)
                world.delays.pop(step.name, None)
            case "delay":
                world.delays[step.name] = 3.0
            case "lose answers":
                world.losing.add(step.name)
            case "stall":  # the election stands still, but the workers of that process go on
                await process.stop()
            case "restart":
                await process.stop()
                process.start()
            case "release":
                await process.stop()
                giving = asyncio.create_task(process.leadership.release())
                await clock.advance(10)
                await giving
                process.start()
        await pass_time(step.wait)
    for name in NAMES:
        world.cut_off.discard(name)
        world.losing.discard(name)
        world.delays.pop(name, None)
        if processes[name].campaign.done():
            processes[name].start()
    await pass_time(45)
    assert any(process.leadership.is_leader for process in processes.values()), "in the end somebody leads"
    for process in processes.values():
        await process.stop()
    return world


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_one_leads_at_a_time_and_every_write_comes_from_the_holder_of_the_lease(steps: list[Step]) -> None:
    world = asyncio.run(play(steps))

    assert world.writes
    assert [author for author, holder in world.writes if author != holder] == []
