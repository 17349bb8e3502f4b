"""The operator is cut off until the server has forgotten where it was: it lists again and misses nothing.

Covers: kubewright.cache
"""

from __future__ import annotations

import pytest
from tests.planes import faulty, fresh_namespace
from tests.scenarios.conftest import Journal, Lists, Widget, child_per_widget, converged, managed, widget
from tests.waiting import present

from kubewright import Client
from kubewright.cache.changes import Change
from kubewright.cluster.planes.real import RealCluster
from kubewright.errors import NotFound
from kubewright.k8s.core.v1 import ConfigMap

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]


async def test_deletions_and_creations_during_a_gap_are_noticed_when_the_server_has_forgotten_the_version(
    own_cluster: RealCluster, own_client: Client
) -> None:
    namespace = await fresh_namespace(own_client)
    sizes = {f"w{number}": 1 for number in range(30)}
    for name in sizes:
        await own_client.create(widget(name, namespace))
    journal, lists, gone = Journal(), Lists(), list[Change[ConfigMap]]()

    async with faulty(own_cluster.kubeconfig) as (client, faults):
        manager = managed(client, namespace, child_per_widget(journal, concurrency=4), lists=lists)
        async with manager:
            informer = manager.cache.informer(ConfigMap)
            informer.subscribe(lambda change: gone.append(change) if change.type == "deleted" else None)  # type: ignore[attr-defined]  # the framework's own informer
            await converged(own_client, namespace, sizes)
            done = len(journal.entries)

            faults.go_offline()
            await meddle(own_client, namespace, sizes)
            await own_cluster.compact()
            await own_cluster.restart("apiserver")
            faults.offline = False
            await converged(own_client, namespace, sizes)

    again = set(journal.entries[done:])
    assert sorted(lists.made) == [
        ("ConfigMap", "expired"), ("ConfigMap", "first"), ("Widget", "expired"), ("Widget", "first"),
    ]  # fmt: skip
    # Children that were taken away, and the child whose widget was removed by force.
    assert {change.key.name for change in gone if change.final_state_unknown} >= {"w0", "w1", "w2", "w3", "w4", "w15"}
    assert again >= {"w0", "w4", "w5", "w9", "-w10", "-w14", "w20", "w24", "new0", "new4"}
    assert not again & {f"w{number}" for number in range(25, 30)}, "nothing happened to these"
    assert "w15" not in again, "it is gone: nobody can be asked about it"


async def meddle(client: Client, namespace: str, sizes: dict[str, int]) -> None:
    """Everything that can happen to objects while nobody looks."""
    for number in range(5):
        await client.delete(ConfigMap, f"w{number}", namespace=namespace)
    for number in range(5, 10):
        sizes[f"w{number}"] = 7
        await client.patch_by_name(Widget, f"w{number}", {"spec": {"size": 7}}, namespace=namespace)
    for number in range(10, 15):
        del sizes[f"w{number}"]
        await client.delete(Widget, f"w{number}", namespace=namespace)
    for name in ("w15", *(f"w{number}" for number in range(20, 25))):
        await remove_by_force(client, name, namespace)
    del sizes["w15"]
    for name in (*(f"w{number}" for number in range(20, 25)), *(f"new{number}" for number in range(5))):
        sizes[name] = 9
        await client.create(widget(name, namespace, size=9))


async def remove_by_force(client: Client, name: str, namespace: str) -> None:
    """As a person with too little patience does: the finalizer is struck out, the operator never asked."""
    await client.delete(ConfigMap, name, namespace=namespace)
    await client.patch_by_name(Widget, name, {"metadata": {"finalizers": []}}, namespace=namespace)
    try:
        await client.delete(Widget, name, namespace=namespace)
    except NotFound:
        return
    await present(client, Widget, namespace, lambda have: name not in have)
