"""One process with several clusters, and with several managers.

Covers: kubewright.manager
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from tests.runtime.running_controllers import event

from kubewright import Client, Config, Context, Manager, ManagerOptions, connect, controller
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.controllers.declaration import Declaration
from kubewright.k8s.core.v1 import ConfigMap, Namespace
from kubewright.k8s.events.v1 import Event
from kubewright.testing import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

Clusters = dict[str, tuple[Config, Client]]


@pytest.fixture
async def clusters(real_cluster: RealCluster, embedded_cluster: EmbeddedCluster) -> AsyncIterator[Clusters]:
    """Two clusters, and how to reach them."""
    home = Config.load(kubeconfig=real_cluster.kubeconfig)
    edge = Config.load(kubeconfig=embedded_cluster.kubeconfig)
    async with connect(home) as at_home, connect(edge) as at_edge:
        yield {"home": (home, at_home), "edge": (edge, at_edge)}


@pytest.fixture
async def namespace(clusters: Clusters) -> str:
    """A fresh namespace, of the same name in both."""
    name = f"several-{uuid4().hex[:10]}"
    for _, client in clusters.values():
        await client.create(Namespace.named(name))
    return name


def options(name: str, namespace: str, **more: Any) -> ManagerOptions:
    return ManagerOptions.load(
        environ={}, name=name, namespace=namespace, health_address="0", metrics_address="0", **more
    )


@pytest.mark.parametrize("needs_leader", [True, False])
async def test_events_are_recorded_in_the_cluster_of_the_object(
    clusters: Clusters, namespace: str, needs_leader: bool
) -> None:
    @controller(ConfigMap, name="teller", needs_leader=needs_leader)
    async def reconcile(config: ConfigMap, ctx: Context) -> None:
        if config.metadata.name == "told":
            ctx.event("Seen", f"{config.metadata.name} is at the edge")

    (home, at_home), (edge, at_edge) = clusters["home"], clusters["edge"]
    manager = Manager(config=home, options=options("several", namespace), namespaces=[namespace])
    manager.add_cluster("edge", config=edge)
    manager.add(reconcile, cluster="edge")
    async with manager:
        await at_edge.create(ConfigMap.named("told", namespace))
        seen = await event(at_edge, namespace, "Seen")

    assert seen.regarding is not None
    assert seen.regarding.name == "told"
    assert not [found for found in await at_home.list(Event, namespace=namespace) if found.reason == "Seen"]


async def test_who_does_not_need_to_lead_records_events_without_leading(clusters: Clusters, namespace: str) -> None:
    @controller(ConfigMap, name="teller", needs_leader=False)
    async def reconcile(config: ConfigMap, ctx: Context) -> None:
        if config.metadata.name == "told":
            ctx.event("Seen", f"by {ctx.key.name}")

    home, client = clusters["home"]
    first = Manager(config=home, options=options("leader", namespace, leader_election=True, lease_name="several"))
    second = Manager(
        reconcile,
        config=home,
        options=options("standby", namespace, leader_election=True, lease_name="several"),
        namespaces=[namespace],
    )
    async with first:
        await first.elected()
        async with second:
            assert second.elector is not None
            await client.create(ConfigMap.named("told", namespace))
            await event(client, namespace, "Seen")
            assert not second.elector.is_leader


async def test_managers_of_one_process_do_not_know_each_other(clusters: Clusters, namespace: str) -> None:
    def marker(mark: str) -> Declaration[ConfigMap]:
        @controller(ConfigMap, name="marker", field_manager=mark)
        async def reconcile(config: ConfigMap, ctx: Context) -> None:
            if config.metadata.name == "paint" and "by" not in config.metadata.labels:
                ctx.metrics.counter("painted_total", "Painted.", labels=("by",)).child(mark).inc()
                config.metadata.labels["by"] = mark
                await ctx.patch(config)

        return reconcile

    managers = {
        name: Manager(marker(name), config=config, options=options("same-name", namespace), namespaces=[namespace])
        for name, (config, _) in clusters.items()
    }
    running = [asyncio.create_task(manager.run()) for manager in managers.values()]
    for name, (_, client) in clusters.items():
        await client.create(ConfigMap.named("paint", namespace))
        painted = await until(client, ConfigMap, "paint", lambda seen: seen.metadata.labels, namespace=namespace)
        assert painted.metadata.labels == {"by": name}
    counted = [manager.metrics.exposition().decode() for manager in managers.values()]

    managers["home"].stop()
    await running[0]
    assert (managers["home"].state, managers["edge"].state) == ("stopped", "running")
    managers["edge"].stop()
    await running[1]

    for name, text in zip(managers, counted, strict=True):
        assert 'controller_runtime_reconcile_total{controller="marker",result="success"}' in text
        assert [line for line in text.splitlines() if line.startswith("painted")] == [
            f'painted_total{{by="{name}"}} 1.0'
        ]
