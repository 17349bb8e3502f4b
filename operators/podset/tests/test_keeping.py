"""The number of pods is kept, whatever happens to them."""

import time

from kubewright.k8s.core.v1 import ContainerStatus, Pod
from kubewright.testing import gone, until

from podset.api.v1alpha1.podset import PodSet
from podset.pods import LABEL
from tests.home import Home, condition, owner_of


async def test_a_set_gets_as_many_pods_as_it_asks_for(home: Home) -> None:
    seen = await home.podset(3)

    pods = await home.pods()
    assert seen.status.nodes == sorted(pod.metadata.name for pod in pods)
    assert len(pods) == 3
    assert seen.status.selector == f"{LABEL}=web"
    assert [condition(seen, kind).status for kind in ("Ready", "Progressing", "Degraded")] == ["True", "False", "False"]


async def test_each_pod_sleeps_and_belongs_to_its_set(home: Home) -> None:
    seen = await home.podset(1)

    (pod,) = await home.pods()
    (container,) = pod.spec.containers
    assert pod.metadata.name.startswith("web-")
    assert (container.name, container.image, container.command) == ("busybox", "busybox", ["sleep", "3600"])
    assert (pod.spec.restart_policy, pod.spec.termination_grace_period_seconds) == ("Always", 5)
    (owner,) = pod.metadata.owner_references
    assert (owner.uid, owner.controller, owner.block_owner_deletion) == (seen.metadata.uid, True, True)


async def test_a_set_of_size_zero_is_ready_and_says_so_with_an_empty_list(home: Home) -> None:
    await home.podset(2)
    await home.resize(0)

    seen = await home.settled(0)

    stored = await home.client.request("GET", f"/apis/apps.jicki.cn/v1alpha1/namespaces/{home.namespace}/podsets/web")
    assert b'"nodes":[]' in stored.body
    assert condition(seen, "Ready").status == "True"
    await home.pods_until(lambda pods: not pods)


class Patience:
    """Five seconds, or where a new set takes longer than that to be ready, a few times as long as it takes."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def seconds(self) -> float:
        """To be asked when the set is ready."""
        return max(5.0, 3 * (time.monotonic() - self._begun))


async def test_a_deleted_pod_is_replaced_within_five_seconds(home: Home) -> None:
    patience = Patience()
    seen = await home.podset(3)
    limit = patience.seconds()
    first = seen.status.nodes[0]

    await home.client.delete(Pod, home.key(first))

    await until(
        home.client,
        PodSet,
        home.key("web"),
        lambda seen: first not in seen.status.nodes and seen.status.ready_replicas == 3,
        timeout=limit,
    )


async def test_all_pods_deleted_at_once_are_replaced_within_five_seconds(home: Home) -> None:
    patience = Patience()
    before = set((await home.podset(4)).status.nodes)
    limit = patience.seconds()

    await home.client.delete_collection(Pod, namespace=home.namespace)

    await until(
        home.client,
        PodSet,
        home.key("web"),
        lambda seen: not before & set(seen.status.nodes) and seen.status.ready_replicas == 4,
        timeout=limit,
    )


async def test_a_pod_that_will_not_leave_is_replaced_at_once_and_not_counted(home: Home) -> None:
    seen = await home.podset(2)
    stuck = await home.client.get(Pod, home.key(seen.status.nodes[0]))
    stuck.metadata.finalizers.append("example.io/lost-node")
    await home.client.patch(stuck)

    await home.client.delete(Pod, stuck.key)

    after = await home.until(lambda seen: stuck.metadata.name not in seen.status.nodes and seen.status.replicas == 2)
    terminating = await home.client.get(Pod, stuck.key)
    assert terminating.metadata.deletion_timestamp is not None
    assert after.status.replicas == 2
    terminating.metadata.finalizers.clear()
    await home.client.patch(terminating)
    await gone(home.client, Pod, stuck.key, timeout=60)


async def test_a_pod_that_ended_is_replaced_and_then_deleted(home: Home) -> None:
    seen = await home.podset(2)
    evicted = await home.client.get(Pod, home.key(seen.status.nodes[0]))
    evicted.status.phase, evicted.status.reason = "Failed", "Evicted"
    evicted.status.container_statuses = list[ContainerStatus]()
    await home.client.patch(evicted, subresource="status")

    await gone(home.client, Pod, evicted.key, timeout=60)
    after = await home.settled(2)

    assert evicted.metadata.name not in after.status.nodes


async def test_a_set_that_is_deleted_takes_its_pods_with_it(home: Home) -> None:
    seen = await home.podset(2)

    await home.client.delete(seen, propagation="Foreground")

    # A real garbage collector learns of a new kind of owner within half a minute, and looks again after that.
    await gone(home.client, PodSet, seen.key, timeout=90)
    await home.pods_until(lambda pods: not any(owner_of(pod) == seen.metadata.uid for pod in pods.values()))


async def test_two_sets_in_one_namespace_do_not_touch_each_other(home: Home) -> None:
    first, second = await home.podset(2, name="first"), await home.podset(3, name="second")

    pods = await home.pods()

    owners = sorted(owner_of(pod) for pod in pods)
    assert owners == sorted([first.metadata.uid] * 2 + [second.metadata.uid] * 3)
