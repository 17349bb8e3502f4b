"""An operator on kopf, unmodified, run by `kopf run` in a process of its own, on the embedded cluster."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.clients.processes import PROGRAMS, running
from tests.clients.widgets import Present, Widget, widget

from kubewright import Client, Context, Scope, controller, testing
from kubewright.api.owners import controller_of
from kubewright.api.resource import KubeObject
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.k8s.core.v1 import ConfigMap, Event

COUNT = 40


async def test_a_kopf_operator_makes_changes_and_removes_the_children_of_forty_objects(
    client: Client, namespace: str, present: Present, embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "-n", namespace, str(PROGRAMS / "kopf_operator.py")]
    names = {f"w{number:03}" for number in range(COUNT)}
    # Half of them are there before the operator, half come while it runs.
    await asyncio.gather(*(client.create(widget(number, namespace)) for number in range(0, COUNT, 2)))
    async with running(command, kubeconfig=embedded_cluster.kubeconfig, log=tmp_path / "kopf.log") as operator:
        await asyncio.gather(*(client.create(widget(number, namespace)) for number in range(1, COUNT, 2)))
        made = await present(
            Widget,
            namespace,
            lambda have: have.keys() == names and all(obj.status.ready == obj.spec.size for obj in have.values()),
        )
        assert all(obj.metadata.finalizers == ["clients.example.io/kopf"] for obj in made.values())

        children = await present(ConfigMap, namespace, lambda have: names <= have.keys())
        for name, obj in made.items():
            owner = controller_of(children[name])
            assert owner is not None
            assert (owner.uid, children[name].data) == (obj.metadata.uid, {"size": str(obj.spec.size)})
        told = await present(
            Event,
            namespace,
            lambda have: names <= {event.involved_object.name for event in have.values() if event.reason == "Made"},
        )
        assert {event.type for event in told.values()} == {"Normal"}

        for obj in made.values():
            obj.spec.size += 100
        await asyncio.gather(*map(client.patch, made.values()))
        await present(
            ConfigMap,
            namespace,
            lambda have: all(have[name].data == {"size": str(int(name[1:]) + 100)} for name in names),
        )

        await client.delete_collection(Widget, namespace=namespace)
        await present(Widget, namespace, lambda have: not have)
        left = await present(ConfigMap, namespace, lambda have: not names & have.keys())
        assert {f"gone-{name}" for name in names} <= left.keys()
        assert "Traceback" not in operator.errors()


@controller(Widget, owns=[ConfigMap], finalizer="clients.example.io/kopf")
class Successor:
    """What the kopf operator did, under the finalizer that it has left on the objects."""

    async def reconcile(self, widget: Widget, ctx: Context) -> None:
        await ctx.apply(ConfigMap.named(widget.metadata.name, data={"size": str(widget.spec.size)}))
        widget.status.ready = widget.spec.size

    async def finalize(self, widget: Widget, ctx: Context) -> None:
        await ctx.apply(ConfigMap.named(f"freed-{widget.metadata.name}"), owned=False)


async def test_objects_of_a_kopf_operator_are_reconciled_and_finalized_by_its_successor(
    client: Client, namespace: str, present: Present, embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "-n", namespace, str(PROGRAMS / "kopf_operator.py")]
    await asyncio.gather(*(client.create(widget(number, namespace)) for number in (1, 2)))
    async with running(command, kubeconfig=embedded_cluster.kubeconfig, log=tmp_path / "kopf.log"):
        kept, going = (
            await present(
                Widget,
                namespace,
                lambda have: len(have) == 2 and all(obj.status.ready == obj.spec.size for obj in have.values()),
            )
        ).values()
        child = (await present(ConfigMap, namespace, lambda have: kept.key.name in have))[kept.key.name]

    await client.delete(going)  # while nobody is there to finalize it
    assert (await client.get(Widget, going.key)).metadata.deletion_timestamp is not None

    scopes: dict[type[KubeObject], Scope] = dict.fromkeys((Widget, ConfigMap), Scope(namespaces=(namespace,)))
    async with testing.running(Successor, on=embedded_cluster, scopes=scopes):
        await testing.gone(client, Widget, going.key)
        await testing.until(client, ConfigMap, f"freed-{going.key.name}", namespace=namespace)

        kept = await client.get(Widget, kept.key)
        kept.spec.size = 30
        await client.patch(kept)
        seen = await testing.until(client, ConfigMap, kept.key, lambda seen: seen.data == {"size": "30"})
        assert seen.metadata.uid == child.metadata.uid
        kept = await testing.until(client, Widget, kept.key, lambda seen: seen.status.ready == 30)
        assert kept.metadata.finalizers == ["clients.example.io/kopf"]

        await client.delete(kept)
        await testing.gone(client, Widget, kept.key)
        await testing.gone(client, ConfigMap, kept.key)
