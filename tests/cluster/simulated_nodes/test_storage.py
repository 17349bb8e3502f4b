"""Pods with claims on simulated nodes: they wait for their volumes, and the standard class makes them.

Covers: kubewright.cluster.kubelet, kubewright.cluster.scheduler
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.builders.pods import pod
from tests.builders.storage import volume_claim
from tests.cluster.simulated_nodes.conftest import is_ready
from tests.planes import fresh_namespace

from kubewright import Client, ObjectKey
from kubewright.api.codec import from_tree
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.k8s.apps.v1 import StatefulSet
from kubewright.k8s.core.v1 import Namespace, PersistentVolume, PersistentVolumeClaim, Pod, ServiceAccount
from kubewright.k8s.storage.v1 import StorageClass
from kubewright.testing import gone, time_limit, until

REQUEST: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@pytest.fixture(scope="module")
async def client() -> AsyncIterator[Client]:
    """Hides the real plane of this folder: nodes are the same on both, and this one is there at once."""
    async with EmbeddedCluster(nodes=2) as cluster:
        await cluster.wait_for_controllers()
        yield cluster.client


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    name = await fresh_namespace(client)
    await until(client, ServiceAccount, ObjectKey(name, "default"))
    yield name
    await client.delete(Namespace, name)


def using(name: str, namespace: str, *claims: str, **spec: Any) -> Pod:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return pod(name, namespace, volumes=volumes, terminationGracePeriodSeconds=0, **spec)


async def ready(client: Client, namespace: str, name: str) -> Pod:
    return await until(client, Pod, ObjectKey(namespace, name), is_ready)


async def refused(client: Client, namespace: str, name: str, words: str) -> str:
    """The message of a pod that has no node, once these words are in it.

    Others may come before: the scheduler hears of each kind by a watch of its own.
    """

    def told(each: Pod) -> bool:
        return any(words in (condition.message or "") for condition in each.status.conditions or ())

    found = await until(client, Pod, ObjectKey(namespace, name), told)
    (condition,) = found.status.conditions or []
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
    return condition.message or ""


async def test_there_is_a_default_class(client: Client) -> None:
    standard = await client.get(StorageClass, "standard")
    assert standard.metadata.annotations == {"storageclass.kubernetes.io/is-default-class": "true"}
    assert (standard.volume_binding_mode, standard.reclaim_policy) == ("WaitForFirstConsumer", "Delete")


async def test_a_stateful_set_with_claims_runs_and_its_volumes_are_deleted_with_it(
    client: Client, namespace: str
) -> None:
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
    template["spec"]["terminationGracePeriodSeconds"] = 0  # type: ignore[index]  # mypy joins the two dicts to object
    tree = {
        "metadata": {"name": "db", "namespace": namespace},
        "spec": {
            "replicas": 2,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": REQUEST}],
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
        },
    }
    made = await client.create(from_tree(StatefulSet, tree))

    await until(client, StatefulSet, made.key, lambda each: each.status is not None and each.status.ready_replicas == 2)
    claims = await client.list(PersistentVolumeClaim, namespace=namespace)
    assert {each.status.phase for each in claims} == {"Bound"}
    for each in claims:
        replica = await client.get(Pod, ObjectKey(namespace, each.metadata.name.removeprefix("data-")))
        assert each.metadata.annotations["volume.kubernetes.io/selected-node"] == replica.spec.node_name

    await client.patch_by_name(StatefulSet, made.key, {"spec": {"replicas": 1}})
    await gone(client, PersistentVolumeClaim, ObjectKey(namespace, "data-db-1"))
    await client.delete(made)
    await gone(client, PersistentVolumeClaim, ObjectKey(namespace, "data-db-0"))
    for each in claims:
        await gone(client, PersistentVolume, each.spec.volume_name or "")


async def test_a_pod_is_scheduled_where_its_volume_is(client: Client, namespace: str) -> None:
    await client.create(volume_claim("data", namespace))
    first = await client.create(using("first", namespace, "data"))
    home = (await ready(client, namespace, "first")).spec.node_name
    await client.delete(first)

    await client.create(using("crowd", namespace, nodeSelector={"kubernetes.io/hostname": home}))
    await client.create(using("second", namespace, "data"))

    assert (await ready(client, namespace, "second")).spec.node_name == home
    await client.create(using("astray", namespace, "data", nodeSelector={"kubernetes.io/hostname": "nowhere"}))
    await refused(client, namespace, "astray", "didn't match Pod's node affinity/selector")


async def test_a_pod_waits_for_a_missing_or_unbound_claim(client: Client, namespace: str) -> None:
    await client.create(using("early", namespace, "data"))
    rest = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    message = f'0/2 nodes are available: persistentvolumeclaim "data" not found. {rest}'
    assert await refused(client, namespace, "early", "not found") == message

    await client.create(volume_claim("alone", namespace, storageClassName=""))
    await client.create(using("late", namespace, "alone"))
    message = f"0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. {rest}"
    assert await refused(client, namespace, "late", "unbound") == message

    await client.create(volume_claim("data", namespace))
    await ready(client, namespace, "early")
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    await client.create(from_tree(PersistentVolume, {"metadata": {"name": namespace}, "spec": spec}))
    await ready(client, namespace, "late")
    await client.delete(PersistentVolume, namespace)


async def test_without_a_provisioner_a_pod_is_scheduled_to_the_node_of_the_only_volume(
    client: Client, namespace: str
) -> None:
    local = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    await client.create(from_tree(StorageClass, {"metadata": {"name": namespace}, **local}))
    await client.create(volume_claim("data", namespace, storageClassName=namespace))
    await client.create(using("web", namespace, "data"))
    assert await refused(client, namespace, "web", "didn't find") == (
        "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )

    here = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-2"]}]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": namespace,
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [here]}},
    }
    await client.create(from_tree(PersistentVolume, {"metadata": {"name": namespace}, "spec": spec}))

    assert (await ready(client, namespace, "web")).spec.node_name == "node-2"
    assert (await client.get(PersistentVolume, namespace)).status.phase == "Bound"
    await client.delete(StorageClass, namespace)
    await client.delete(PersistentVolume, namespace)


async def test_a_generic_ephemeral_volume_is_created_with_its_pod(client: Client, namespace: str) -> None:
    template = {"metadata": {"labels": {"kept": "no"}}, "spec": REQUEST}
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    made = await client.create(pod("web", namespace, volumes=[volume], terminationGracePeriodSeconds=0))
    await ready(client, namespace, "web")

    own = await client.get(PersistentVolumeClaim, ObjectKey(namespace, "web-scratch"))
    assert own.metadata.labels == {"kept": "no"}
    assert [(each.kind, each.uid, each.controller) for each in own.metadata.owner_references] == [
        ("Pod", made.metadata.uid, True)
    ]
    await client.delete(made)
    await gone(client, PersistentVolumeClaim, own.key)
    await gone(client, PersistentVolume, own.spec.volume_name or "")


async def test_a_claim_that_is_older_than_the_default_class_gets_it(client: Client, namespace: str) -> None:
    mark = "storageclass.kubernetes.io/is-default-class"
    await client.patch_by_name(StorageClass, "standard", {"metadata": {"annotations": {mark: "false"}}})
    await default_heeded(client, namespace, None)
    made = await client.create(volume_claim("data", namespace))
    assert made.spec.storage_class_name is None

    await client.patch_by_name(StorageClass, "standard", {"metadata": {"annotations": {mark: "true"}}})

    await until(client, PersistentVolumeClaim, made.key, lambda each: each.spec.storage_class_name == "standard")
    await default_heeded(client, namespace, "standard")


async def default_heeded(client: Client, namespace: str, wanted: str | None) -> None:
    """Returns when claims that name no class get this one: the server hears of a change a moment later."""
    async with time_limit(60):
        while (await client.create(volume_claim("probe", namespace), dry_run=True)).spec.storage_class_name != wanted:
            pass
