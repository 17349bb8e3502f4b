"""Claims find their volumes, or a reason why not; volumes outlive their claims as their policy says.

Covers: kubewright.cluster.controller_manager.storage
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest

from kubewright import Client, ObjectKey
from kubewright.api.codec import from_tree
from kubewright.errors import Forbidden
from kubewright.k8s.core.v1 import Event, PersistentVolume, PersistentVolumeClaim
from kubewright.k8s.storage.v1 import StorageClass
from kubewright.testing import gone, time_limit, until

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


class Shelf:
    """Volumes and claims of one class, so that nobody else's get in the way."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.name = f"shelf-{uuid4().hex[:8]}"
        self._made: list[tuple[type[Any], str]] = []

    async def volume(self, name: str, size: str, **spec: Any) -> str:
        full = f"{self.name}-{name}"
        content = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": self.name,
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/data/kept"},
            **spec,
        }
        await self.client.create(from_tree(PersistentVolume, {"metadata": {"name": full}, "spec": content}))
        self._made.append((PersistentVolume, full))
        return full

    async def claim(self, name: str, size: str = "1Gi", **spec: Any) -> PersistentVolumeClaim:
        content = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": self.name,
            "resources": {"requests": {"storage": size}},
            **spec,
        }
        metadata = {"name": name, "namespace": self.namespace}
        return await self.client.create(from_tree(PersistentVolumeClaim, {"metadata": metadata, "spec": content}))

    async def storage_class(self, provisioner: str, mode: str = "Immediate") -> None:
        metadata = {"name": self.name}
        tree = {"metadata": metadata, "provisioner": provisioner, "volumeBindingMode": mode}
        await self.client.create(from_tree(StorageClass, tree))
        self._made.append((StorageClass, self.name))

    async def bound(self, name: str) -> PersistentVolumeClaim:
        return await self.claimed(name, lambda claim: claim.status.phase == "Bound")

    async def claimed(self, name: str, holds: Callable[[PersistentVolumeClaim], object]) -> PersistentVolumeClaim:
        return await until(self.client, PersistentVolumeClaim, ObjectKey(self.namespace, name), holds)

    async def phase(self, volume: str, phase: str) -> PersistentVolume:
        return await until(self.client, PersistentVolume, volume, lambda each: each.status.phase == phase)

    async def told(self, about: str, reason: str) -> tuple[str | None, str | None]:
        """Type and message of the first event of that reason."""
        watch = self.client.watch(Event, namespace=self.namespace, initial_events=True)
        async with time_limit(60), watch as events:
            async for event in events:
                found = event.object
                if found.involved_object.name == about and found.reason == reason:
                    return found.type, found.message
        raise AssertionError("the watch ended")

    async def clear(self) -> None:
        for kind, name in self._made:
            if await self.client.find(kind, name) is not None:
                await self.client.delete(kind, name)


@pytest.fixture
async def shelf(client: Client, namespace: str) -> AsyncIterator[Shelf]:
    shelf = Shelf(client, namespace)
    yield shelf
    await shelf.clear()


async def test_a_claim_gets_the_smallest_matching_volume(shelf: Shelf) -> None:
    for name, size in (("small", "1Gi"), ("middle", "3Gi"), ("big", "9Gi")):
        await shelf.phase(await shelf.volume(name, size), "Available")

    made = await shelf.claim("data", "2Gi")
    assert made.status.phase == "Pending"

    claim = await shelf.bound("data")
    assert claim.spec.volume_name == f"{shelf.name}-middle"
    assert claim.metadata.annotations == {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    assert claim.status.access_modes == ["ReadWriteOnce"]
    assert {name: str(size) for name, size in (claim.status.capacity or {}).items()} == {"storage": "3Gi"}
    volume = await shelf.phase(claim.spec.volume_name, "Bound")
    assert volume.metadata.annotations == {BOUND_BY_CONTROLLER: "yes"}
    reference = volume.spec.claim_ref
    assert reference is not None
    assert (reference.kind, reference.api_version) == ("PersistentVolumeClaim", "v1")
    assert (reference.name, reference.uid) == ("data", claim.metadata.uid)
    assert reference.resource_version == made.metadata.resource_version


async def test_a_claim_waits_for_a_volume_with_its_labels_and_modes(shelf: Shelf) -> None:
    await shelf.phase(await shelf.volume("plain", "1Gi"), "Available")
    await shelf.phase(await shelf.volume("shared", "1Gi", accessModes=["ReadWriteOnce", "ReadWriteMany"]), "Available")

    await shelf.claim("shared", accessModes=["ReadWriteMany"])
    assert (await shelf.bound("shared")).spec.volume_name == f"{shelf.name}-shared"

    await shelf.claim("block", volumeMode="Block")
    await shelf.claim("plain")
    assert (await shelf.bound("plain")).spec.volume_name == f"{shelf.name}-plain"
    assert (await shelf.client.get(PersistentVolumeClaim, ObjectKey(shelf.namespace, "block"))).spec.volume_name is None


async def test_a_pre_bound_volume_is_bound_to_its_claim(shelf: Shelf) -> None:
    kept = await shelf.volume("kept", "5Gi", claimRef={"namespace": shelf.namespace, "name": "owner"})
    await shelf.phase(kept, "Available")

    await shelf.claim("owner")

    assert (await shelf.bound("owner")).spec.volume_name == kept
    volume = await shelf.phase(kept, "Bound")
    assert volume.metadata.annotations == {}


async def test_a_claim_that_names_a_volume_gets_that_one_if_it_is_free(shelf: Shelf) -> None:
    small = await shelf.volume("small", "1Gi")
    await shelf.volume("large", "5Gi")
    await shelf.phase(small, "Available")
    await shelf.claim("first", volumeName=f"{shelf.name}-large")
    assert (await shelf.bound("first")).metadata.annotations == {BIND_COMPLETED: "yes"}

    await shelf.claim("second", volumeName=f"{shelf.name}-large")
    assert await shelf.told("second", "FailedBinding") == (
        "Warning",
        f'volume "{shelf.name}-large" already bound to a different claim.',
    )
    await shelf.claim("third", "2Gi", volumeName=small)
    assert await shelf.told("third", "VolumeMismatch") == (
        "Warning",
        f'Cannot bind to requested volume "{small}": requested PV is too small',
    )


async def test_a_claim_without_a_volume_has_an_event(shelf: Shelf) -> None:
    await shelf.claim("none", storageClassName="")
    assert await shelf.told("none", "FailedBinding") == (
        "Normal",
        "no persistent volumes available for this claim and no storage class is set",
    )
    await shelf.claim("classless")
    assert await shelf.told("classless", "ProvisioningFailed") == (
        "Warning",
        f'storageclass.storage.k8s.io "{shelf.name}" not found',
    )


async def test_a_claim_is_annotated_for_the_provisioner_of_its_class(shelf: Shelf) -> None:
    await shelf.storage_class("example.com/disks")
    await shelf.claim("data")

    claim = await shelf.claimed("data", lambda each: len(each.metadata.annotations) == 2)

    assert claim.metadata.annotations == {
        "volume.beta.kubernetes.io/storage-provisioner": "example.com/disks",
        "volume.kubernetes.io/storage-provisioner": "example.com/disks",
    }
    kind, message = await shelf.told("data", "ExternalProvisioning")
    assert kind == "Normal"
    assert "by the external provisioner 'example.com/disks' or manually" in (message or "")


async def test_a_wait_for_first_consumer_claim_is_bound_when_a_node_is_selected(shelf: Shelf) -> None:
    await shelf.storage_class("example.com/disks", "WaitForFirstConsumer")
    # No volume yet: a controller that has not seen the class would bind at once.
    await shelf.claim("data")
    assert await shelf.told("data", "WaitForFirstConsumer") == (
        "Normal",
        "waiting for first consumer to be created before binding",
    )
    await shelf.phase(await shelf.volume("free", "1Gi"), "Available")

    chosen = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "somewhere"}}}
    await shelf.client.patch_by_name(PersistentVolumeClaim, ObjectKey(shelf.namespace, "data"), chosen)
    claim = await shelf.claimed("data", lambda each: len(each.metadata.annotations) == 3)
    assert claim.spec.volume_name is None

    reference = {"namespace": shelf.namespace, "name": "data", "uid": claim.metadata.uid}
    made = await shelf.volume("made", "1Gi", claimRef=reference)
    assert (await shelf.bound("data")).spec.volume_name == made


@pytest.mark.parametrize(
    ("spec", "phase", "message"),
    [
        ({"persistentVolumeReclaimPolicy": "Retain"}, "Released", None),
        (
            {"persistentVolumeReclaimPolicy": "Delete"},
            "Failed",
            "host_path deleter only supports /tmp/.+ but received provided /data/kept",
        ),
        (
            {"persistentVolumeReclaimPolicy": "Delete", "csi": {"driver": "d", "volumeHandle": "h"}, "hostPath": None},
            "Released",
            None,
        ),
    ],
)
async def test_a_volume_without_its_claim_is_released_and_stays_if_it_cannot_be_deleted(
    shelf: Shelf, spec: dict[str, Any], phase: str, message: str | None
) -> None:
    volume = await shelf.volume("old", "1Gi", **spec)
    claim = await shelf.claim("data")
    await shelf.bound("data")

    await shelf.client.delete(claim)

    left = await shelf.phase(volume, phase)
    assert left.status.message == message
    assert left.spec.claim_ref is not None
    assert left.spec.claim_ref.uid == claim.metadata.uid
    await shelf.claim("next")
    assert (await shelf.client.get(PersistentVolume, volume)).status.phase == phase


async def test_a_volume_of_a_temporary_folder_is_deleted_with_its_claim(shelf: Shelf) -> None:
    source = {"path": f"/tmp/{shelf.name}/data"}
    volume = await shelf.volume("short", "1Gi", hostPath=source, persistentVolumeReclaimPolicy="Delete")
    claim = await shelf.claim("data")
    await shelf.bound("data")

    await shelf.client.delete(claim)

    await gone(shelf.client, PersistentVolume, volume)


async def test_a_claim_expands_only_if_its_class_allows_it(shelf: Shelf) -> None:
    await shelf.storage_class("example.com/disks")
    await shelf.volume("small", "1Gi")
    claim = await shelf.claim("data")
    await shelf.bound("data")
    more = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}

    with pytest.raises(Forbidden) as caught:
        await shelf.client.patch_by_name(PersistentVolumeClaim, claim.key, more)
    assert caught.value.message == (
        'persistentvolumeclaims "data" is forbidden: only dynamically provisioned pvc can be resized and the '
        "storageclass that provisions the pvc must support resize"
    )

    await shelf.client.patch_by_name(StorageClass, shelf.name, {"allowVolumeExpansion": True})
    async with time_limit(30):
        while True:  # a server may learn of the change of another object a moment later
            try:
                grown = await shelf.client.patch_by_name(PersistentVolumeClaim, claim.key, more)
                break
            except Forbidden:
                continue
    assert grown.spec.resources is not None
    assert {name: str(size) for name, size in (grown.spec.resources.requests or {}).items()} == {"storage": "2Gi"}


async def test_a_claim_whose_volume_is_deleted_is_lost(shelf: Shelf) -> None:
    volume = await shelf.volume("doomed", "1Gi")
    await shelf.claim("data")
    await shelf.bound("data")

    await shelf.client.delete(PersistentVolume, volume)
    await shelf.client.patch_by_name(PersistentVolume, volume, {"metadata": {"finalizers": None}})

    lost = await shelf.claimed("data", lambda each: each.status.phase == "Lost")
    assert lost.status.capacity is None
    assert await shelf.told("data", "ClaimLost") == (
        "Warning",
        "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
    )
