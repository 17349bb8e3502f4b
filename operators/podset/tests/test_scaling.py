"""A set is made larger and smaller: by its spec, by its scale, by kubectl."""

import json

import pytest
from kubewright.k8s.core.v1 import Pod

from podset.ranking import DELETION_COST
from tests.home import Home, Kubectl


async def test_a_set_that_grows_keeps_the_pods_it_has(home: Home) -> None:
    before = await home.podset(2)

    await home.resize(5)

    after = await home.settled(5)
    assert set(before.status.nodes) < set(after.status.nodes)


async def test_a_set_that_shrinks_keeps_the_pods_that_cost_most(home: Home) -> None:
    before = await home.podset(4)
    dear = before.status.nodes[1:3]
    for name in dear:
        pod = await home.client.get(Pod, home.key(name))
        pod.metadata.annotations[DELETION_COST] = "100"
        await home.client.patch(pod)
    await home.podset(1, name="witness")  # its pod came later, so the operator has seen the costs
    await home.resize(2)

    after = await home.settled(2)

    assert after.status.nodes == dear


async def test_pods_are_deleted_only_if_they_are_the_ones_that_were_meant(home: Home) -> None:
    before = await home.podset(3)
    since = len(home.faults.requests)
    await home.resize(1)

    after = await home.settled(1)

    deletions = home.writes(since, "DELETE")
    gone = set(before.status.nodes) - set(after.status.nodes)
    assert {request.path.rpartition("/")[2] for request in deletions} == gone
    assert all(json.loads(request.body or b"")["preconditions"]["uid"] for request in deletions)


async def test_a_size_that_flips_ends_where_it_ends_and_never_exceeds_the_largest(home: Home) -> None:
    await home.podset(1)
    async with home.counting() as counts:
        for size in (10, 2, 8):
            await home.resize(size)

        await home.settled(8)

    assert max(counts) <= 10
    assert len(await home.pods()) == 8


async def test_kubectl_scale_writes_the_size(home: Home, kubectl: Kubectl) -> None:
    await home.podset(1)

    await kubectl("scale", "podset/web", "--replicas=3", "-n", home.namespace)

    seen = await home.settled(3)
    assert seen.spec.size == 3


async def test_the_scale_object_reads_the_size_the_count_and_the_selector(home: Home, kubectl: Kubectl) -> None:
    await home.podset(2)

    text = await kubectl("get", "podset/web", "--subresource=scale", "-o", "json", "-n", home.namespace)

    scale = json.loads(text)
    assert (scale["kind"], scale["spec"]["replicas"], scale["status"]["replicas"]) == ("Scale", 2, 2)
    selected = await home.client.list(Pod, namespace=home.namespace, labels=scale["status"]["selector"])
    assert len(selected) == 2


async def test_what_one_run_may_not_create_is_left_to_the_next(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podset.controllers.podset.BURST", 4)
    await home.podset(0)
    since = len(home.faults.requests)
    async with home.counting() as counts:
        await home.resize(10)

        await home.settled(10)

    assert max(counts) == 10
    assert len(home.writes(since, "POST", "/pods")) == 10
