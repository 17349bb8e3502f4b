"""Watch connections are cut every second for a minute: each is resumed where it was, and no child is made twice.

Covers: kubewright.cache
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from tests.planes import faulty
from tests.scenarios.conftest import Journal, Lists, Widget, finished, managed, widget
from tests.waiting import present

from kubewright import Client, Context, controller, controller_of
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import ConfigMap

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]

WIDGETS = 20
CUTS = 60


async def test_watches_cut_every_second_for_a_minute_resume_without_a_list_and_without_duplicates(
    client: Client, real_cluster: RealCluster, namespace: str
) -> None:
    journal, lists = Journal(), Lists()
    cuts, due = 0, False

    @controller(Widget, owns=[ConfigMap], concurrency=4)
    async def reconcile(obj: Widget, ctx: Context) -> None:
        """Names are chosen by the server, so only what this process knows keeps it from making a child twice."""
        nonlocal cuts, due
        journal.note(obj.metadata.name)
        # In the middle of the work, when some of this second's edits are done and others on their way.
        if due and len(journal.entries) % 3 == 0 and faults.cut_streams():
            cuts, due = cuts + 1, False
        mine = [child for child in await ctx.client.list(ConfigMap, namespace=namespace) if is_child(child, obj)]
        if not mine:
            child = ConfigMap(data={"size": str(obj.spec.size)})
            child.metadata.generate_name = "child-"
            mine = [await ctx.create(child)]
        mine[0].data = {"size": str(obj.spec.size)}
        await ctx.patch(mine[0])
        obj.status.ready = obj.spec.size

    async def edit_all(size: int) -> None:
        names = [f"w{number}" for number in range(WIDGETS)]
        await asyncio.gather(
            *(client.patch_by_name(Widget, name, {"spec": {"size": size}}, namespace=namespace) for name in names)
        )
        await present(
            client,
            Widget,
            namespace,
            lambda have: all(obj.spec.size == size and finished(obj) for obj in have.values()),
        )

    async with (
        faulty(real_cluster.kubeconfig) as (faulty_client, faults),
        managed(faulty_client, namespace, reconcile, lists=lists),
    ):
        for number in range(WIDGETS):
            await client.create(widget(f"w{number}", namespace))
        widgets = await present(client, Widget, namespace, lambda have: len(have) == WIDGETS)
        size = 1
        while cuts < CUTS:
            second = asyncio.Event()
            asyncio.get_running_loop().call_later(1.0, second.set)
            due = True
            await edit_all(size := size + 1)
            await second.wait()

    made = await client.list(ConfigMap, namespace=namespace)
    owners = Counter(owner.uid for child in made if (owner := controller_of(child)) is not None)
    assert owners == {obj.metadata.uid: 1 for obj in widgets.values()}
    assert {child.data["size"] for child in made if child.data and "size" in child.data} == {str(size)}
    assert sorted(lists.made) == [("ConfigMap", "first"), ("Widget", "first")]
    assert cuts == CUTS


def is_child(child: ConfigMap, obj: Widget) -> bool:
    owner = controller_of(child)
    return owner is not None and owner.uid == obj.metadata.uid
