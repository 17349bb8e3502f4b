"""The API server is killed and comes back while people work: nothing is lost.

Covers: kubewright.manager, kubewright.cache
"""

from __future__ import annotations

import asyncio

import pytest
from tests.planes import fresh_namespace
from tests.scenarios.conftest import Journal, Widget, child_per_widget, converged, insist, managed, widget

from kubewright import Client, Config
from kubewright.cluster.planes.real import RealCluster
from kubewright.controllers.controller import Controller

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]

WIDGETS = 200


async def test_nothing_is_lost_when_the_apiserver_is_killed_and_restarted_under_load(
    own_cluster: RealCluster, own_client: Client
) -> None:
    namespace = await fresh_namespace(own_client)
    journal = Journal()
    manager = managed(Config.load(kubeconfig=own_cluster.kubeconfig), namespace)
    engine = Controller(
        child_per_widget(journal, concurrency=4),
        client=manager.client,
        cache=manager.cache,  # type: ignore[arg-type]  # `managed` gives it the framework's own
    )
    manager.add(engine)
    down = asyncio.Event()
    sizes = {f"w{number}": 1 for number in range(WIDGETS)}

    async def life(number: int) -> None:
        """Made, edited; every tenth is deleted again."""
        name = f"w{number}"
        await insist(lambda: own_client.create(widget(name, namespace)))
        sizes[name] = number
        await insist(lambda: own_client.patch_by_name(Widget, name, {"spec": {"size": number}}, namespace=namespace))
        if number % 10 == 0:
            await insist(lambda: own_client.delete(Widget, name, namespace=namespace))
            del sizes[name]

    async def people(first: int) -> None:
        for number in range(first, WIDGETS, 8):
            if number >= WIDGETS // 2:
                await down.wait()  # the second half is for a server that is not there
            await life(number)

    async with manager:
        crowd = [asyncio.create_task(people(first)) for first in range(8)]
        await journal.reach(lambda entries: len(entries) >= WIDGETS // 4)
        await own_cluster.kill("apiserver")
        down.set()
        await own_cluster.restart("apiserver")
        await asyncio.gather(*crowd)

        await converged(own_client, namespace, sizes)

        assert len(sizes) == WIDGETS * 9 // 10
        deleted = {entry[1:] for entry in journal.entries if entry.startswith("-")}
        assert deleted <= {f"w{number}" for number in range(0, WIDGETS, 10)}
        assert set(journal.entries) >= set(sizes)
        # The operator hears of widgets in their order: when it has heard of this one, it knows of every deletion.
        await own_client.create(widget("last", namespace))
        sizes["last"] = 1
        await converged(own_client, namespace, sizes)
        assert not [key for key in engine.queue.delayed() if key.name not in sizes], "nothing waits for the deleted"
