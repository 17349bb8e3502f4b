"""cluster_policy: namespaces come and go, and what a policy puts there with them."""

from __future__ import annotations

from examples.cluster_policy import Isolation, IsolationSpec
from tests.examples.conftest import ApplyManifest, RunExample

from kubewright import Client, ObjectKey, ObjectMeta
from kubewright.k8s.core.v1 import ConfigMap, Namespace
from kubewright.k8s.networking.v1 import NetworkPolicy
from kubewright.testing import gone, until


async def test_a_namespace_is_isolated_for_as_long_as_it_has_the_label(
    run_example: RunExample, apply_manifest: ApplyManifest, client: Client, namespace: str
) -> None:
    async with run_example("cluster_policy"):
        await apply_manifest("cluster_policy")
        await until(client, NetworkPolicy, ObjectKey("payments", "isolation-restricted"))

        place = await client.get(Namespace, namespace)
        place.metadata.labels["zone"] = "restricted"
        place = await client.patch(place)
        await until(client, NetworkPolicy, ObjectKey(namespace, "isolation-restricted"))
        both = sorted(("payments", namespace))
        await until(client, Isolation, "restricted", lambda it: it.status.namespaces == both)

        place.metadata.labels["zone"] = "open"
        await client.patch(place)
        await gone(client, NetworkPolicy, ObjectKey(namespace, "isolation-restricted"))
        await until(client, Isolation, "restricted", lambda it: it.status.namespaces == ["payments"])

        await client.delete(Isolation, "restricted")
        await gone(client, NetworkPolicy, ObjectKey("payments", "isolation-restricted"))


async def test_every_label_has_to_match(run_example: RunExample, client: Client, namespace: str) -> None:
    key = ObjectKey(namespace, "isolation-narrow")
    async with run_example("cluster_policy"):
        await client.create(Isolation.named("narrow", spec=IsolationSpec(namespaces={"a": "1", "b": "2"})))
        place = await client.get(Namespace, namespace)
        place.metadata.labels["a"] = "1"
        place = await client.patch(place)
        await until(client, Isolation, "narrow", lambda it: it.status.conditions)
        assert await client.find(NetworkPolicy, key) is None
        place.metadata.labels["b"] = "2"
        await client.patch(place)
        await until(client, NetworkPolicy, key)


async def test_a_changed_policy_leaves_nothing_behind_and_a_namespace_can_go(
    run_example: RunExample, client: Client, namespace: str
) -> None:
    place = await client.get(Namespace, namespace)
    place.metadata.labels["team"] = "red"
    await client.patch(place)
    async with run_example("cluster_policy"):
        isolation = await client.create(Isolation.named("team", spec=IsolationSpec(namespaces={"team": "red"})))
        await until(client, NetworkPolicy, ObjectKey(namespace, "isolation-team"))
        isolation.spec.namespaces = {"team": "blue"}
        isolation = await client.patch(isolation)
        await gone(client, NetworkPolicy, ObjectKey(namespace, "isolation-team"))

        isolation.spec.namespaces = {"team": "red"}
        await client.patch(isolation)
        await until(client, Isolation, "team", lambda it: it.status.namespaces == [namespace])
        await client.delete(Namespace, namespace)
        await gone(client, Namespace, namespace)
        await until(client, Isolation, "team", lambda it: it.status.namespaces == [])


async def test_a_namespace_that_takes_long_to_go_holds_up_no_other(
    run_example: RunExample, client: Client, namespace: str
) -> None:
    slow = f"a-{namespace}"  # before the other one, in any list
    await client.create(Namespace(metadata=ObjectMeta(name=slow, labels={"pace": "slow"})))
    holding = ObjectMeta(name="holding", namespace=slow, finalizers=["test.example.io/held"])
    held = await client.create(ConfigMap(metadata=holding))
    await client.delete(Namespace, slow)
    async with run_example("cluster_policy"):
        await client.create(Isolation.named("slow", spec=IsolationSpec(namespaces={"pace": "slow"})))
        place = await client.get(Namespace, namespace)
        place.metadata.labels["pace"] = "slow"
        await client.patch(place)
        await until(client, NetworkPolicy, ObjectKey(namespace, "isolation-slow"))
        await until(client, Isolation, "slow", lambda it: it.status.namespaces == [namespace])

        await client.patch_by_name(ConfigMap, held.key, {"metadata": {"finalizers": None}})
        await gone(client, Namespace, slow)
