"""What the operator does about Memcached objects, with the rights of its generated roles."""

import os
from collections.abc import AsyncIterator

import pytest
from kubewright import Client, Cluster, find_condition
from kubewright.errors import Invalid
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Pod
from kubewright.testing import gone, running, until

from memcached.api import Memcached, MemcachedSpec
from memcached.controller import IMAGE


@pytest.fixture(scope="session")
async def cluster() -> AsyncIterator[Cluster]:
    """An embedded cluster; with REAL=1, etcd and kube-apiserver."""
    async with Cluster.real(nodes=1) if os.environ.get("REAL") else Cluster.embedded() as cluster:
        yield cluster


@pytest.fixture
async def client(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    """An administrator's client, while the operator is at work."""
    monkeypatch.setenv(IMAGE, "memcached:1.6-alpine")
    async with running("memcached", on=cluster) as operator:
        yield operator.client


def is_available(memcached: Memcached) -> bool:
    found = find_condition(memcached.status.conditions, "Available")
    return found is not None and found.status == "True" and found.observed_generation == memcached.metadata.generation


async def test_a_memcached_gets_as_many_pods_as_it_asks_for(client: Client) -> None:
    await client.create(Memcached.named("books", "default", spec=MemcachedSpec(size=2)))

    seen = await until(client, Memcached, "books", is_available)

    pods = await client.list(Pod, namespace="default", labels={"app.kubernetes.io/instance": "books"})
    assert seen.status.nodes == sorted(pod.metadata.name for pod in pods)
    assert {pod.spec.containers[0].image for pod in pods} == {"memcached:1.6-alpine"}


async def test_the_status_follows_the_size(client: Client) -> None:
    await client.create(Memcached.named("films", "default", spec=MemcachedSpec(size=1)))
    films = await until(client, Memcached, "films", is_available)

    films.spec.size = 3
    await client.patch(films)
    films = await until(client, Memcached, "films", lambda seen: is_available(seen) and len(seen.status.nodes) == 3)

    films.spec.size = 1
    await client.patch(films)
    await until(client, Memcached, "films", lambda seen: is_available(seen) and len(seen.status.nodes) == 1)


async def test_a_deployment_that_somebody_scales_is_put_right(client: Client) -> None:
    await client.create(Memcached.named("songs", "default", spec=MemcachedSpec(size=2)))
    await until(client, Memcached, "songs", is_available)

    await client.scales.set(Deployment, "songs", 5, namespace="default")

    await until(client, Deployment, "songs", lambda seen: seen.spec.replicas == 2)


async def test_the_deployment_goes_with_its_memcached(client: Client) -> None:
    await client.create(Memcached.named("games", "default"))
    seen = await until(client, Memcached, "games", is_available)
    assert seen.metadata.finalizers == ["cache.example.com/memcached"]

    await client.delete(Memcached, "games", namespace="default")

    await gone(client, Memcached, "games")
    await gone(client, Deployment, "games", timeout=90)


async def test_sizes_that_make_no_sense_are_refused(client: Client) -> None:
    with pytest.raises(Invalid, match=r"spec\.size"):
        await client.create(Memcached.named("crowd", "default", spec=MemcachedSpec(size=6)))


async def test_without_an_image_it_says_so(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(IMAGE)

    await client.create(Memcached.named("blank", "default"))

    seen = await until(client, Memcached, "blank", lambda seen: seen.status.conditions)
    assert seen.status.conditions[0].reason == "NoImage"
