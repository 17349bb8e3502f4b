"""What the operator does about EphemeralVolumeClaims, with the rights of its generated roles."""

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from kubewright import Client, Cluster, Duration, Quantity, find_condition
from kubewright.errors import Invalid
from kubewright.k8s.core.v1 import (
    Container,
    PersistentVolumeClaim,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    Volume,
    VolumeMount,
)
from kubewright.k8s.storage.v1 import StorageClass
from kubewright.testing import RunningOperator, VirtualClock, gone, running, until

from evc.api import EphemeralVolumeClaim, EphemeralVolumeClaimSpec


@pytest.fixture(scope="session")
async def cluster() -> AsyncIterator[Cluster]:
    """An embedded cluster; with REAL=1, etcd and kube-apiserver."""
    async with Cluster.real(nodes=1) if os.environ.get("REAL") else Cluster.embedded() as cluster:
        yield cluster


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(start=datetime.now(UTC))


@pytest.fixture
async def operator(cluster: Cluster, clock: VirtualClock) -> AsyncIterator[RunningOperator]:
    """The operator at work, by a clock that the test moves."""
    async with running("evc", on=cluster, clock=clock) as operator:
        yield operator


@pytest.fixture
def client(operator: RunningOperator) -> Client:
    return operator.client


HOUR = Duration("1h")


def evc(name: str, *, storage_class: str | None = None, delete_after: Duration | None = None) -> EphemeralVolumeClaim:
    spec = EphemeralVolumeClaimSpec(size=Quantity("1Gi"), storage_class=storage_class, delete_after=delete_after)
    return EphemeralVolumeClaim.named(name, "default", spec=spec)


def pod_with(claim: str) -> Pod:
    volume = Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim))
    container = Container(name="main", image="nginx", volume_mounts=[VolumeMount(name="data", mount_path="/data")])
    return Pod.named(f"{claim}-user", "default", spec=PodSpec(containers=[container], volumes=[volume]))


def requested(claim: PersistentVolumeClaim) -> Quantity | None:
    assert claim.spec.resources is not None
    return (claim.spec.resources.requests or {}).get("storage")


async def test_a_claim_is_made(client: Client) -> None:
    await client.create(evc("new"))

    seen = await until(client, EphemeralVolumeClaim, "new", lambda seen: seen.status.claim)

    claim = await client.get(PersistentVolumeClaim, "new", namespace="default")
    assert (seen.status.claim, seen.status.phase, requested(claim)) == ("new", "Pending", Quantity("1Gi"))


async def test_labels_are_passed_on_and_taken_back(client: Client) -> None:
    made = evc("labelled")
    made.metadata.labels = {"team": "books", "tier": "web"}
    made = await client.create(made)
    await until(client, PersistentVolumeClaim, "labelled", lambda seen: seen.metadata.labels["team"] == "books")

    made.metadata.labels = {"team": "films"}
    await client.patch(made)

    await until(client, PersistentVolumeClaim, "labelled", lambda seen: seen.metadata.labels == {"team": "films"})


async def test_a_volume_that_is_used_can_grow_but_not_shrink(client: Client) -> None:
    await client.create(
        StorageClass.named("growing", provisioner="kubewright.io/simulated", allow_volume_expansion=True)
    )
    await client.create(evc("large", storage_class="growing"))
    await until(client, PersistentVolumeClaim, "large")
    await client.create(pod_with("large"))
    seen = await until(client, EphemeralVolumeClaim, "large", lambda seen: seen.status.phase == "Bound")

    seen.spec.size = Quantity("2Gi")
    seen = await client.patch(seen)
    await until(client, PersistentVolumeClaim, "large", lambda seen: requested(seen) == Quantity("2Gi"))

    seen.spec.size = Quantity("1Gi")
    with pytest.raises(Invalid, match="cannot shrink"):
        await client.patch(seen)


async def test_a_volume_that_cannot_grow_says_so(client: Client) -> None:
    made = await client.create(evc("unused"))
    await until(client, EphemeralVolumeClaim, "unused", lambda seen: seen.status.claim)

    made.spec.size = Quantity("2Gi")
    await client.patch(made)

    seen = await until(client, EphemeralVolumeClaim, "unused", lambda seen: seen.status.observed_generation == 2)
    fits = find_condition(seen.status.conditions, "Fits")
    assert fits is not None
    assert (fits.status, fits.reason) == ("False", "Refused")
    assert "bound claims" in (fits.message or "")


async def test_what_nobody_uses_is_deleted_when_its_time_is_up(operator: RunningOperator, clock: VirtualClock) -> None:
    client = operator.client
    await client.create(evc("idle", delete_after=HOUR))
    await until(client, EphemeralVolumeClaim, "idle", lambda seen: seen.status.claim)
    await operator.idle()

    await clock.advance(3700)

    await gone(client, EphemeralVolumeClaim, "idle")
    await gone(client, PersistentVolumeClaim, "idle", timeout=90)


async def test_what_a_pod_uses_is_kept(operator: RunningOperator, clock: VirtualClock) -> None:
    client = operator.client
    await client.create(evc("busy", delete_after=HOUR))
    await client.create(pod_with("busy"))
    await until(client, EphemeralVolumeClaim, "busy", lambda seen: seen.status.last_used)
    await operator.idle()

    await clock.advance(3700)
    await operator.idle()
    assert await client.find(EphemeralVolumeClaim, "busy", namespace="default") is not None

    await client.delete(Pod, "busy-user", namespace="default")
    await gone(client, Pod, "busy-user")
    await operator.idle()
    await clock.advance(3700)
    await gone(client, EphemeralVolumeClaim, "busy")
