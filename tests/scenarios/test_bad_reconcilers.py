"""Code that raises, blocks or never returns harms itself and nobody else.

Covers: kubewright.controllers
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.scenarios.conftest import Journal, Widget, asked, child_per_widget, converged, managed, widget

from kubewright import Client, Config, Context, ObjectKey, Watch, controller
from kubewright.cache.changes import Change
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import Secret

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(180)]


NAMES = {f"w{number}" for number in range(10)}


async def works_beside(
    bad: Any,
    client: Client,
    cluster: RealCluster,
    namespace: str,
    *,
    bad_did: Journal,
    enough: Callable[[list[str]], bool],
) -> None:
    """Runs the bad controller beside a good one and waits until both have done what they can."""
    good = child_per_widget(Journal(), name="good")
    sizes = {name: int(name[1:]) for name in sorted(NAMES)}
    async with managed(Config.load(kubeconfig=cluster.kubeconfig), namespace, bad, good) as manager:
        await client.create(Secret.named("s", namespace))
        for name, size in sizes.items():
            await client.create(widget(name, namespace, size=size))
        await bad_did.reach(enough)
        await converged(client, namespace, sizes)
        assert await asked(manager, "/healthz") == "ok"


async def test_a_reconciler_that_raises_is_tried_again_and_others_proceed(
    client: Client, real_cluster: RealCluster, namespace: str
) -> None:
    did = Journal()

    @controller(Widget, name="bad")
    async def reconcile(obj: Widget, ctx: Context) -> None:
        did.note(obj.metadata.name)
        raise BaseExceptionGroup("the worst kind", [GeneratorExit(), ValueError("and more")])

    def enough(entries: list[str]) -> bool:
        return len(entries) >= 30 and set(entries) >= NAMES

    await works_beside(reconcile, client, real_cluster, namespace, bad_did=did, enough=enough)

    assert set(did.entries) == NAMES, "one failure does not stop the next object"


async def test_a_mapper_that_raises_is_reported_and_others_proceed(
    client: Client, real_cluster: RealCluster, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    did = Journal()

    def confused(change: Change[Secret]) -> Iterable[ObjectKey]:
        did.note(change.key.name)
        raise LookupError("which widget was it?")

    @controller(Widget, name="bad", watches=[Watch(Secret, confused)])
    async def reconcile(obj: Widget, ctx: Context) -> None:
        did.note(obj.metadata.name)

    everything = {"s", *NAMES}
    await works_beside(
        reconcile, client, real_cluster, namespace, bad_did=did, enough=lambda entries: set(entries) >= everything
    )

    assert set(did.entries) == everything, "its own kind still wakes it"
    assert "which widget was it?" in caplog.text


async def test_a_plain_function_that_blocks_holds_up_nobody_else(
    client: Client, real_cluster: RealCluster, namespace: str
) -> None:
    did, free = Journal(), threading.Event()
    loop = asyncio.get_running_loop()

    @controller(Widget, name="bad")
    def reconcile(obj: Widget, ctx: Context) -> None:
        loop.call_soon_threadsafe(did.note, obj.metadata.name)
        free.wait(120)

    async with managed(
        Config.load(kubeconfig=real_cluster.kubeconfig), namespace, reconcile, child_per_widget(Journal(), name="good")
    ):
        await client.create(widget("w", namespace))
        await did.reach(lambda entries: len(entries) == 1)
        await converged(client, namespace, {"w": 1})
        for number in range(10):
            await client.create(widget(f"w{number}", namespace, size=number))
        await converged(client, namespace, {"w": 1, **{f"w{number}": number for number in range(10)}})

        assert did.entries == ["w"], "it is still at its first"
        free.set()
        await did.reach(lambda entries: len(entries) == 11)


async def test_a_run_that_never_ends_is_ended_at_its_time_limit_and_tried_again(
    client: Client, real_cluster: RealCluster, namespace: str
) -> None:
    did = Journal()

    @controller(Widget, name="bad", timeout=0.1)
    async def reconcile(obj: Widget, ctx: Context) -> None:
        did.note(obj.metadata.name)
        if obj.metadata.name == "w0":
            await asyncio.Event().wait()

    def enough(entries: list[str]) -> bool:
        return entries.count("w0") > 1 and set(entries) >= NAMES

    await works_beside(reconcile, client, real_cluster, namespace, bad_did=did, enough=enough)

    assert set(did.entries) == NAMES, "the only worker gets to the others"


async def test_a_time_limit_of_something_else_is_not_taken_for_that_of_the_run(
    client: Client, real_cluster: RealCluster, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    did = Journal()

    @controller(Widget, name="bad", timeout=60)
    async def reconcile(obj: Widget, ctx: Context) -> None:
        did.note(obj.metadata.name)
        raise TimeoutError("the bank did not answer")

    await works_beside(
        reconcile, client, real_cluster, namespace, bad_did=did, enough=lambda entries: len(entries) >= 15
    )

    assert "the bank did not answer" in caplog.text
    assert "reconcile took too long" not in caplog.text
