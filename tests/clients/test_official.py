"""The official Python client on the embedded cluster: its informer, in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.clients.processes import Program, python, running

from kubewright import Client
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.k8s.core.v1 import ConfigMap

LABELS = {"told": "yes"}


def told(name: str, namespace: str, **data: str) -> ConfigMap:
    obj = ConfigMap.named(name, namespace, data=data)
    obj.metadata.labels = LABELS
    return obj


async def hears(informer: Program, event: str, name: str) -> Any:
    return await informer.says(lambda said: said["event"] == event and said.get("name") == name)


async def cached(informer: Program) -> list[str]:
    await informer.tell("cache")
    names: list[str] = (await informer.says(lambda said: said["event"] == "CACHE"))["names"]
    return names


async def test_the_informer_hears_of_what_is_made_changed_and_deleted(
    client: Client, namespace: str, embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    await client.create(told("before", namespace))
    await client.create(ConfigMap.named("unlabelled", namespace))
    command = python("official_informer.py", namespace)
    async with running(command, kubeconfig=embedded_cluster.kubeconfig, log=tmp_path / "log") as informer:
        await hears(informer, "ADDED", "before")
        later = await client.create(told("later", namespace, a="1"))
        await hears(informer, "ADDED", "later")
        later.data = {"a": "2"}
        later = await client.patch(later)
        assert (await hears(informer, "MODIFIED", "later"))["data"] == {"a": "2"}
        await client.delete(ConfigMap, "before", namespace=namespace)
        await hears(informer, "DELETED", "before")
        later.metadata.labels = {"told": "no"}  # what leaves the selection is deleted for those who watch it
        await client.patch(later)
        await hears(informer, "DELETED", "later")
        assert await cached(informer) == []


async def test_the_informer_survives_a_server_that_restarts_and_has_forgotten_the_past(
    client: Client, namespace: str, embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    await client.create(told("one", namespace))
    command = python("official_informer.py", namespace)
    async with running(command, kubeconfig=embedded_cluster.kubeconfig, log=tmp_path / "log") as informer:
        await hears(informer, "ADDED", "one")
        # The informer hears nothing of this, so the version it goes on from is one the server then has forgotten.
        await client.create(ConfigMap.named("unlabelled", namespace))
        await embedded_cluster.compact()
        await embedded_cluster.restart()
        await informer.says(lambda said: said["event"] == "ERROR" and said["status"] == 410)
        await client.create(told("two", namespace))
        await hears(informer, "ADDED", "two")
        assert await cached(informer) == ["one", "two"]
