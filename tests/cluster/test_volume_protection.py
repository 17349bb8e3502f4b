"""Claims and volumes are not deleted while they are in use.

Covers: kubewright.cluster.controller_manager.storage
"""

from __future__ import annotations

from uuid import uuid4

from tests.builders.storage import volume_claim

from kubewright import Client, ObjectKey, Quantity
from kubewright.api.metadata import ObjectMeta
from kubewright.k8s.core.v1 import (
    Container,
    Event,
    HostPathVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimVolumeSource,
    PersistentVolumeSpec,
    Pod,
    PodSpec,
    Volume,
)
from kubewright.k8s.storage.v1 import VolumeAttributesClass
from kubewright.testing import gone, time_limit

SIZE = {"storage": Quantity("1Gi")}


async def test_an_unused_claim_is_deleted(client: Client, namespace: str) -> None:
    made = await client.create(volume_claim("data", namespace, storageClassName=""))
    assert made.metadata.finalizers == ["kubernetes.io/pvc-protection"]

    await client.delete(made)

    await gone(client, PersistentVolumeClaim, made.key)


async def test_a_claim_that_a_pod_uses_is_deleted_after_the_pod(client: Client, namespace: str) -> None:
    made = await client.create(volume_claim("data", namespace, storageClassName=""))
    source = PersistentVolumeClaimVolumeSource(claim_name="data")
    spec = PodSpec(
        containers=[Container(name="c", image="i:1")],
        volumes=[Volume(name="data", persistent_volume_claim=source)],
        node_name="nowhere",  # a node without a kubelet: the pod stays as it is
    )
    pod = await client.create(Pod.named("user", namespace, spec=spec))

    await client.delete(made)
    other = await client.create(volume_claim("unused", namespace, storageClassName=""))
    await client.delete(other)
    await gone(client, PersistentVolumeClaim, other.key)  # had the first been let go, it would be gone before
    left = await client.get(PersistentVolumeClaim, made.key)
    assert left.metadata.deletion_timestamp is not None

    await client.delete(pod, grace_period=0)
    await gone(client, PersistentVolumeClaim, made.key)


async def test_a_volume_that_is_not_bound_is_deleted(client: Client) -> None:
    spec = PersistentVolumeSpec(
        capacity=SIZE,
        access_modes=["ReadWriteOnce"],
        host_path=HostPathVolumeSource(path="/data"),
        storage_class_name="kept-by-hand",
    )
    made = await client.create(PersistentVolume.named(f"volume-{uuid4().hex[:8]}", spec=spec))
    assert made.metadata.finalizers == ["kubernetes.io/pv-protection"]

    await client.delete(made)

    await gone(client, PersistentVolume, ObjectKey("", made.metadata.name))
    assert await client.find(PersistentVolume, made.metadata.name) is None


async def until_seen(client: Client, claim: PersistentVolumeClaim) -> None:
    """Until the controllers know of a claim: one of them has said that there is no volume for it."""
    place = claim.metadata.namespace
    async with time_limit(30), client.watch(Event, namespace=place, initial_events=True) as events:
        async for event in events:
            if event.object.involved_object.name == claim.metadata.name and event.object.reason == "FailedBinding":
                return


async def test_an_attributes_class_in_use_is_deleted_after_the_claim(client: Client, namespace: str) -> None:
    name = f"gold-{uuid4().hex[:8]}"
    made = await client.create(
        VolumeAttributesClass(metadata=ObjectMeta(name=name), driver_name="a.example.io", parameters={"iops": "3"})
    )
    assert made.metadata.finalizers == ["kubernetes.io/vac-protection"]
    user = volume_claim("data", namespace, storageClassName="")
    user.spec.volume_attributes_class_name = name
    await client.create(user)
    await until_seen(client, user)

    await client.delete(made)
    left = await client.get(VolumeAttributesClass, made.key)
    assert left.metadata.deletion_timestamp is not None

    await client.delete(user)
    await gone(client, VolumeAttributesClass, made.key)
