"""An operator on kopf, unmodified, run by `kopf run` in a process of its own, on the embedded cluster."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.clients.processes import PROGRAMS, running
from tests.clients.widgets import Present, Widget, widget

from kubewright import Client
from kubewright.api.owners import controller_of
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
