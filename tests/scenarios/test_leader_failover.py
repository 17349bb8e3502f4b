"""Two replicas, of which one works. Whatever happens to the leader, the server never hears two of them at once.

Each replica has a user of its own, so the server's audit log tells who wrote what and when.

Covers: kubewright.manager.leader_election
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.planes import faulty, fresh_namespace
from tests.scenarios.conftest import Widget, managed, widget
from tests.waiting import present

from kubewright import Client, Context, Manager, controller
from kubewright.cluster.planes.real import RealCluster
from kubewright.controllers.declaration import Declaration
from kubewright.errors import LeadershipLost
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.testing import time_limit

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]

OPERATOR = Path(__file__).with_name("leading_operator.py")
# Long enough to be kept on a machine that has much else to do, short enough to wait for its end.
SHORT: Any = {"leader_election": True, "lease_duration": 4.0, "renew_deadline": 3.0, "retry_period": 0.2}
WRITES = frozenset({"create", "update", "patch", "delete"})


class Writes:
    """The writes of each replica, but those of the lease itself, as the server's audit log tells them."""

    def __init__(self, log: Path, namespace: str) -> None:
        self.times: dict[str, list[tuple[datetime, datetime]]] = {"a": [], "b": []}
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            who = entry["user"]["username"]
            about = entry.get("objectRef", {})
            done = entry.get("responseStatus", {}).get("code", 500) < 300
            ours = about.get("namespace") == namespace and about.get("resource") != "leases"
            if who in self.times and entry["verb"] in WRITES and ours and done:
                self.times[who].append((_time(entry["requestReceivedTimestamp"]), _time(entry["stageTimestamp"])))

    def gap(self) -> float:
        """Seconds between the last write of a and the first of b; negative if they overlap."""
        return (min(begun for begun, _ in self.times["b"]) - max(end for _, end in self.times["a"])).total_seconds()


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def edit_until_written_by(client: Client, namespace: str, identity: str, edits: int) -> None:
    """Edit a widget, again whenever its child has followed, until this replica has followed so many edits."""
    followed = 0
    while followed < edits:
        before = await client.get(Widget, "w", namespace=namespace)
        size = before.spec.size + 1
        await client.patch_by_name(Widget, "w", {"spec": {"size": size}}, namespace=namespace)
        have = await present(client, ConfigMap, namespace, lambda have, size=size: _size(have) == str(size))  # type: ignore[misc]  # binds the number
        followed += (have["w"].data or {}).get("by") == identity


def _size(have: dict[str, ConfigMap]) -> str:
    return (have["w"].data or {}).get("size", "") if "w" in have else ""


@asynccontextmanager
async def replica(kubeconfig: Path, namespace: str, identity: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, OPERATOR, kubeconfig, namespace, identity,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def leads(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    async with time_limit(120):
        assert await process.stdout.readline() == b"leading\n"


async def test_the_other_takes_over_when_the_leader_is_killed_and_no_two_write_at_once(
    own_cluster: RealCluster, own_client: Client, audit_log: Path
) -> None:
    namespace = await fresh_namespace(own_client)
    await own_client.create(widget("w", namespace))
    users = {name: await own_cluster.user(name, groups=["system:masters"]) for name in ("a", "b")}

    async with replica(users["a"], namespace, "a") as first:
        await leads(first)
        async with replica(users["b"], namespace, "b") as second:
            await edit_until_written_by(own_client, namespace, "a", 10)
            load = asyncio.create_task(edit_until_written_by(own_client, namespace, "b", 10))
            first.kill()
            await leads(second)
            await load

    assert Writes(audit_log, namespace).gap() > 0.5


def replica_in_process(identity: str) -> Declaration[Any]:
    @controller(Widget, owns=[ConfigMap], field_manager=identity)
    async def reconcile(obj: Widget, ctx: Context) -> None:
        await ctx.apply(ConfigMap.named(obj.metadata.name, data={"size": str(obj.spec.size), "by": identity}))
        obj.status.ready = obj.spec.size

    return reconcile


async def live(manager: Manager) -> None:
    async with manager:
        await manager.wait()


async def test_the_other_takes_over_when_the_network_of_the_leader_is_cut_and_no_two_write_at_once(
    own_cluster: RealCluster, own_client: Client, audit_log: Path
) -> None:
    namespace = await fresh_namespace(own_client)
    await own_client.create(widget("w", namespace))
    users = {name: await own_cluster.user(name, groups=["system:masters"]) for name in ("a", "b")}
    async with faulty(users["a"]) as (cut_off, faults), faulty(users["b"]) as (steady, _):
        first = managed(cut_off, namespace, replica_in_process("a"), **SHORT)
        assert first.elector is not None
        leading = asyncio.create_task(live(first))
        async with time_limit(60):
            await first.elector.wait_elected()
        async with managed(steady, namespace, replica_in_process("b"), **SHORT):
            await edit_until_written_by(own_client, namespace, "a", 10)
            faults.go_offline()
            # Edits go on: what the first would like to write waits for a network that comes back too late.
            load = asyncio.create_task(edit_until_written_by(own_client, namespace, "b", 10))
            async with time_limit(60):
                await first.elector.wait_lost()
            faults.offline = False
            with pytest.raises(LeadershipLost):
                await first.client.create(ConfigMap.named("late", namespace))
            await load
        with pytest.raises(LeadershipLost):
            async with time_limit(60):
                await leading

    assert Writes(audit_log, namespace).gap() > 0.5
    assert not [
        entry for entry in await own_client.list(ConfigMap, namespace=namespace) if entry.metadata.name == "late"
    ]
