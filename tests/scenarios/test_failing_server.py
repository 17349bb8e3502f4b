"""A server that answers with errors: the operator waits, goes on where it can, and is done when the server is well.

Covers: kubewright.client.transport, kubewright.controllers
"""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from tests.planes import faulty
from tests.scenarios.conftest import Journal, Widget, asked, child_per_widget, converged, finished, managed, widget
from tests.waiting import present

from kubewright import Client
from kubewright.client.transport.transport import HttpRequest, HttpResponse
from kubewright.cluster.planes.real import RealCluster
from kubewright.testing.faults import status

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]

SECONDS = 30.0


def unwell(rng: Random) -> HttpResponse:
    """What a server under too much load says."""
    return status(500, reason="InternalError") if rng.random() < 0.5 else status(429, retry_after=1)


async def test_after_thirty_seconds_of_errors_on_every_request_everything_converges(
    client: Client, real_cluster: RealCluster, namespace: str
) -> None:
    journal, rng = Journal(), Random(1)
    sizes = {f"w{number}": 1 for number in range(40)}
    for name in sizes:
        await client.create(widget(name, namespace))

    async with (
        faulty(real_cluster.kubeconfig) as (faulty_client, faults),
        managed(faulty_client, namespace, child_per_widget(journal, concurrency=4)) as manager,
    ):
        await converged(client, namespace, sizes)
        over = asyncio.Event()
        asyncio.get_running_loop().call_later(SECONDS, over.set)
        refused = 0

        def refuse(request: HttpRequest) -> HttpResponse:
            nonlocal refused
            refused += 1
            return unwell(rng)

        done = len(journal.entries)
        faults.answer = refuse
        for number, name in enumerate(sizes):
            sizes[name] = number
            await client.patch_by_name(Widget, name, {"spec": {"size": number}}, namespace=namespace)
        await client.create(widget("new", namespace, size=5))
        sizes["new"] = 5
        await journal.reach(lambda entries: len(entries) >= done + len(sizes) // 2)
        faults.cut_streams()  # until here the watches still told of the edits
        await over.wait()
        assert await asked(manager, "/healthz") == "ok", "a restart would not cure the server"
        faults.answer = None

        await converged(client, namespace, sizes)

    assert 10 < refused < 2000, "it tried, and did not hammer"


async def test_an_object_that_always_fails_does_not_hold_up_the_others(
    client: Client, real_cluster: RealCluster, namespace: str
) -> None:
    journal, rng = Journal(), Random(2)

    def refuse(request: HttpRequest) -> HttpResponse | None:
        return unwell(rng) if "/configmaps/bad" in request.path else None

    async with faulty(real_cluster.kubeconfig) as (faulty_client, faults):
        faults.answer = refuse
        async with managed(faulty_client, namespace, child_per_widget(journal, concurrency=2)):
            await client.create(widget("bad", namespace))
            await journal.reach(lambda entries: "bad" in entries)
            sizes = {f"w{number}": number for number in range(40)}
            for name, size in sizes.items():
                await client.create(widget(name, namespace, size=size))
            have = await present(
                client, Widget, namespace, lambda have: len(have) == 41 and sum(map(finished, have.values())) == 40
            )
            assert not finished(have["bad"])

            faults.answer = None
            await converged(client, namespace, {**sizes, "bad": 1})
