"""multi_version: two versions of one object, and nothing lost between them."""

from __future__ import annotations

from examples.multi_version import EVICT, Cache, CacheSpec, CacheV1alpha1
from tests.examples.conftest import ApplyManifest, RunExample

from kubewright import Client, ObjectMeta
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.testing import assert_round_trip, until


async def test_an_object_of_the_old_version_is_worked_on_in_the_new_one(
    run_example: RunExample, apply_manifest: ApplyManifest, client: Client
) -> None:
    async with run_example("multi_version"):
        await apply_manifest("multi_version")
        cache = await until(client, Cache, "sessions", lambda it: it.status.conditions)
        assert cache.spec == CacheSpec(replicas=2, evict="LRU")
        config = await client.get(ConfigMap, "sessions")
        assert config.data == {"replicas": "2", "evict": "LRU"}


async def test_who_edits_the_old_version_keeps_what_only_the_new_one_has(
    run_example: RunExample, client: Client, namespace: str
) -> None:
    async with run_example("multi_version"):
        await client.create(Cache.named("pages", namespace, spec=CacheSpec(replicas=1, evict="Never")))
        await until(client, ConfigMap, "pages", namespace=namespace)
        old = await until(client, CacheV1alpha1, "pages", lambda it: it.status.conditions, namespace=namespace)
        old.spec.size = 5
        await client.update(old)

        new = await until(client, Cache, "pages", lambda it: it.spec.replicas == 5, namespace=namespace)
        assert new.spec.evict == "Never"
        assert EVICT not in new.metadata.annotations
        wanted = {"replicas": "5", "evict": "Never"}
        await until(client, ConfigMap, "pages", lambda it: it.data == wanted, namespace=namespace)


def test_every_object_comes_back_as_it_was() -> None:
    odd = CacheV1alpha1(metadata=ObjectMeta(name="odd", annotations={"note": "kept"}))
    assert_round_trip(CacheV1alpha1, Cache, examples=[odd], count=20)
