"""config_reload: who uses a ConfigMap follows it."""

from __future__ import annotations

from examples.config_reload import HASH, App, AppSpec, hash_of
from tests.examples.conftest import ApplyManifest, RunExample

from kubewright import Client, ObjectMeta, find_condition
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.testing import until


def hash_in(deployment: Deployment) -> str:
    assert deployment.spec.template.metadata is not None
    return deployment.spec.template.metadata.annotations[HASH]


async def test_a_changed_config_map_rolls_out_its_users_and_nobody_else(
    run_example: RunExample, apply_manifest: ApplyManifest, client: Client
) -> None:
    async with run_example("config_reload"):
        await apply_manifest("config_reload")
        first = await until(client, Deployment, "web", lambda it: it.status.available_replicas)
        await client.create(ConfigMap.named("others", data={"cpu": "1"}))
        await client.create(App.named("bystander", spec=AppSpec(image="nginx:1.29", config="others")))
        bystander = await until(client, Deployment, "bystander")

        config = await client.get(ConfigMap, "limits")
        config.data = {"cpu": "4"}
        await client.patch(config)
        second = await until(client, Deployment, "web", lambda it: hash_in(it) != hash_in(first))
        assert second.metadata.generation == first.metadata.generation + 1
        assert (await client.get(Deployment, "bystander")).metadata.generation == bystander.metadata.generation


async def test_an_app_waits_for_its_config_map(run_example: RunExample, client: Client, namespace: str) -> None:
    def configured(app: App) -> str:
        condition = find_condition(app.status.conditions, "Configured")
        return condition.status if condition is not None else ""

    async with run_example("config_reload"):
        await client.create(App.named("early", namespace, spec=AppSpec(image="nginx:1.29", config="late")))
        await until(client, App, "early", lambda it: configured(it) == "False", namespace=namespace)
        assert await client.find(Deployment, "early", namespace=namespace) is None

        config = await client.create(ConfigMap.named("late", namespace, data={"a": "b"}))
        await until(client, App, "early", lambda it: configured(it) == "True", namespace=namespace)
        deployment = await until(client, Deployment, "early", namespace=namespace)

        await client.delete(config)
        await until(client, App, "early", lambda it: configured(it) == "False", namespace=namespace)
        left = await client.get(Deployment, "early", namespace=namespace)
        assert left.metadata.generation == deployment.metadata.generation


def test_what_concerns_no_pod_changes_no_hash() -> None:
    one = ConfigMap(metadata=ObjectMeta(name="a", resource_version="1"), data={"a": "1", "b": "2"})
    other = ConfigMap(metadata=ObjectMeta(name="a", resource_version="2", labels={"c": "d"}), data={"b": "2", "a": "1"})
    assert hash_of(one) == hash_of(other)
