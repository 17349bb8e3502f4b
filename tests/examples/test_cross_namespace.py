"""cross_namespace: a copy, for as long as those who own the source agree."""

from __future__ import annotations

from examples.cross_namespace import SHARED_WITH, ConfigImport, ConfigImportSpec, Source
from tests.examples.conftest import ApplyManifest, RunExample

from kubewright import Client, ObjectKey, ObjectMeta, find_condition
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.k8s.events.v1 import Event
from kubewright.testing import gone, until


def imported(config_import: ConfigImport) -> str:
    condition = find_condition(config_import.status.conditions, "Imported")
    return condition.status if condition is not None else ""


async def warning(client: Client, namespace: str) -> Event:
    """The first warning somebody gets in a namespace."""
    async with client.watch(Event, namespace=namespace, initial_events=True) as events:
        async for event in events:
            if event.object.type == "Warning":
                return event.object
    raise AssertionError("the watch has ended")


async def test_a_copy_follows_its_source_until_it_is_no_longer_shared(
    run_example: RunExample, apply_manifest: ApplyManifest, client: Client
) -> None:
    copy = ObjectKey("team-a", "mirrors")
    async with run_example("cross_namespace"):
        await apply_manifest("cross_namespace")
        await until(client, ConfigMap, copy, lambda it: it.data == {"pypi": "https://pypi.example.io"})

        source = await client.get(ConfigMap, "mirrors")
        source.data = {"pypi": "https://mirror.example.io"}
        source = await client.patch(source)
        found = await until(client, ConfigMap, copy, lambda it: it.data == source.data)
        assert SHARED_WITH not in found.metadata.annotations

        source.metadata.annotations[SHARED_WITH] = "team-b"
        await client.patch(source)
        await gone(client, ConfigMap, copy)
        await until(client, ConfigImport, copy, lambda it: imported(it) == "False")


async def test_what_is_not_shared_looks_like_what_is_not_there(
    run_example: RunExample, client: Client, namespace: str
) -> None:
    await client.create(ConfigMap.named("secret-plan", data={"a": "b"}))
    messages = []
    async with run_example("cross_namespace"):
        for name in ("secret-plan", "no-such-plan"):
            spec = ConfigImportSpec(source=Source(namespace="default", name=name))
            await client.create(ConfigImport.named(name, namespace, spec=spec))
            config_import = await until(client, ConfigImport, name, imported, namespace=namespace)
            assert imported(config_import) == "False"
            messages.append(str(config_import.status.conditions[0].message).replace(name, "X"))
        assert await client.find(ConfigMap, "secret-plan", namespace=namespace) is None
    assert messages[0] == messages[1]


async def test_a_config_map_of_somebody_else_is_neither_overwritten_nor_removed(
    run_example: RunExample, client: Client, namespace: str
) -> None:
    shared = ObjectMeta(name="shared", namespace="default", annotations={SHARED_WITH: namespace})
    await client.create(ConfigMap(metadata=shared, data={"from": "default"}))
    await client.create(ConfigMap.named("taken", namespace, data={"from": "here"}))
    async with run_example("cross_namespace"):
        spec = ConfigImportSpec(source=Source(namespace="default", name="shared"))
        await client.create(ConfigImport.named("taken", namespace, spec=spec))
        await client.create(ConfigImport.named("z-free", namespace, spec=spec))
        await until(client, ConfigMap, "z-free", namespace=namespace)
        told = await warning(client, namespace)
        assert told.regarding is not None
        assert (told.regarding.name, told.reason) == ("taken", "NotOwned")

        await client.delete(ConfigMap, "shared")
        await until(client, ConfigImport, "taken", lambda it: imported(it) == "False", namespace=namespace)
        await gone(client, ConfigMap, "z-free", namespace=namespace)
        assert (await client.get(ConfigMap, "taken", namespace=namespace)).data == {"from": "here"}
