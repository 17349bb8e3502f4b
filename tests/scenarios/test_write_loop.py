"""Two writers that disagree about a field: the controller slows down and says which field it is.

Covers: kubewright.controllers
"""

from __future__ import annotations

import asyncio
import re

import pytest
from tests.scenarios.conftest import Journal, child_per_widget, converged, managed, widget
from tests.waiting import present

from kubewright import Client, Config
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.k8s.events.v1 import Event
from kubewright.testing import time_limit

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(180)]


async def fight(client: Client, namespace: str) -> None:
    """Somebody who wants another size, and says so whenever it is set back."""
    async with client.watch(ConfigMap, namespace=namespace, initial_events=True) as events:
        async for event in events:
            if event.type != "DELETED" and (event.object.data or {}).get("size") == "1":
                await client.patch_by_name(ConfigMap, event.object.key, {"data": {"size": "theirs"}})


async def repaired(client: Client, namespace: str, times: int) -> float:
    """Seconds until the child has been set back so often."""
    clock = asyncio.get_running_loop().time
    started = clock()
    # From now on: how the child is at present is no repair.
    version = (await client.list(ConfigMap, namespace=namespace)).resource_version
    async with (
        time_limit(60),
        client.watch(ConfigMap, namespace=namespace, resource_version=version) as events,
    ):
        async for event in events:
            times -= (event.object.data or {}).get("size") == "1"
            if times == 0:
                break
    return clock() - started


async def test_a_fight_over_a_field_is_slowed_down_and_named(
    client: Client, real_cluster: RealCluster, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    await client.create(widget("w", namespace))
    async with managed(
        Config.load(kubeconfig=real_cluster.kubeconfig), namespace, child_per_widget(Journal())
    ) as manager:
        await converged(client, namespace, {"w": 1})
        other = asyncio.create_task(fight(client, namespace))

        def named(have: dict[str, Event]) -> bool:
            return any(event.reason == "WriteLoop" for event in have.values())

        events = await present(client, Event, namespace, named)
        seconds = await repaired(client, namespace, 2)
        metrics = manager.metrics.exposition().decode()
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)

    (event,) = (event for event in events.values() if event.reason == "WriteLoop")
    assert event.type == "Warning"
    assert event.regarding is not None
    assert (event.regarding.kind, event.regarding.name) == ("Widget", "w")
    assert f"ConfigMap {namespace}/w was written" in (event.note or "")
    assert "data.size going back and forth" in (event.note or "")
    assert "write loop detected" in caplog.text
    (counted,) = re.findall(r'kubewright_write_loops_total{controller="widget"} (\S+)', metrics)
    assert float(counted) >= 1
    assert seconds > 2, "each repair waits longer than the one before"
