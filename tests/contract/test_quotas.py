"""Quotas keep a namespace small, and say how full it is.

Covers: kubewright.apiserver.admission
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TypeVar

import pytest
from tests.builders.pods import pod
from tests.waiting import NO_LEASES, present, quota_heeded

from kubewright import Client
from kubewright.api import KubeObject, copy_of
from kubewright.api.codec import from_tree
from kubewright.api.metadata import ObjectMeta
from kubewright.api.quantity import Quantity
from kubewright.errors import Forbidden
from kubewright.k8s.core.v1 import (
    ConfigMap,
    PersistentVolumeClaim,
    ResourceQuota,
    ResourceQuotaSpec,
    ServiceAccount,
)
from kubewright.k8s.resource.v1 import ResourceClaim
from kubewright.testing import time_limit

K = TypeVar("K", bound=KubeObject)


async def limited(client: Client, namespace: str, **hard: str) -> ResourceQuota:
    """A quota that counts."""
    amounts = {name.replace("_", "/"): Quantity(amount) for name, amount in hard.items()}
    metadata = ObjectMeta(name="few", namespace=namespace)
    quota = await client.create(ResourceQuota(metadata=metadata, spec=ResourceQuotaSpec(hard={**amounts, **NO_LEASES})))
    await quota_heeded(client, namespace)
    return quota


async def reaches(client: Client, quota: ResourceQuota, used: Mapping[str, str | None]) -> None:
    """Wait until this much is used; None is any amount."""

    def holds(found: dict[str, ResourceQuota]) -> bool:
        have = found["few"].status.used or {}
        return all(name in have and amount in (None, str(have[name])) for name, amount in used.items())

    await present(client, ResourceQuota, quota.metadata.namespace, holds, seconds=30)


async def settings(client: Client, namespace: str, name: str) -> ConfigMap:
    return await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace)))


async def taken(client: Client, obj: K) -> None:
    """Create it: who keeps to the quotas hears a moment later of what is counted, and refuses till then."""
    async with time_limit(30):
        while True:
            try:
                await client.create(copy_of(obj))
                return
            except Forbidden:
                await asyncio.sleep(0.02)


async def test_one_more_than_a_quota_allows_is_refused_until_one_is_gone(client: Client, namespace: str) -> None:
    await present(client, ConfigMap, namespace, lambda have: "kube-root-ca.crt" in have)
    quota = await limited(client, namespace, count_configmaps="3")
    await reaches(client, quota, {"count/configmaps": "1"})
    first = ConfigMap.named("first", namespace)
    await taken(client, first)
    await settings(client, namespace, "second")

    with pytest.raises(Forbidden) as refusal:
        await settings(client, namespace, "third")

    words = "exceeded quota: few, requested: count/configmaps=1, used: count/configmaps=3, limited: count/configmaps=3"
    assert words in str(refusal.value)
    await client.delete(ConfigMap, first.key)
    await reaches(client, quota, {"count/configmaps": "2"})
    await taken(client, ConfigMap.named("third", namespace))


async def test_pods_are_refused_by_what_they_ask_for(client: Client, namespace: str) -> None:
    await present(client, ServiceAccount, namespace, lambda have: "default" in have)
    quota = await limited(client, namespace, cpu="500m", pods="5")
    await taken(client, pod("small", namespace, container={"requests": {"cpu": "300m"}}))
    await reaches(client, quota, {"cpu": "300m", "pods": "1"})

    with pytest.raises(Forbidden) as refusal:
        await client.create(pod("large", namespace, container={"requests": {"cpu": "300m"}}))

    assert "exceeded quota: few, requested: cpu=300m, used: cpu=300m, limited: cpu=500m" in str(refusal.value)


def devices(name: str, namespace: str, *requests: Mapping[str, object]) -> ResourceClaim:
    named = [{"name": f"r{number}", **request} for number, request in enumerate(requests)]
    tree = {"metadata": {"name": name, "namespace": namespace}, "spec": {"devices": {"requests": named}}}
    return from_tree(ResourceClaim, tree)


async def test_claims_of_devices_are_counted_by_class_at_their_worst(client: Client, namespace: str) -> None:
    counted = "gold.deviceclass.resource.k8s.io/devices"
    amounts = {counted: Quantity("40"), "count/resourceclaims.resource.k8s.io": Quantity("3"), **NO_LEASES}
    metadata = ObjectMeta(name="few", namespace=namespace)
    quota = await client.create(ResourceQuota(metadata=metadata, spec=ResourceQuotaSpec(hard=amounts)))
    await quota_heeded(client, namespace)
    either = {
        "firstAvailable": [
            {"name": "a", "deviceClassName": "gold", "count": 2},
            {"name": "b", "deviceClassName": "gold", "count": 5},
            {"name": "c", "deviceClassName": "tin", "count": 9},
        ]
    }
    exactly = {"exactly": {"deviceClassName": "gold"}}

    await taken(client, devices("some", namespace, either, exactly))
    await reaches(client, quota, {counted: "6", "count/resourceclaims.resource.k8s.io": "1"})
    await client.create(devices("all", namespace, {"exactly": {"deviceClassName": "gold", "allocationMode": "All"}}))
    await reaches(client, quota, {counted: "38"})

    with pytest.raises(Forbidden) as refusal:
        await client.create(devices("more", namespace, exactly, exactly, exactly))
    assert f"exceeded quota: few, requested: {counted}=3, used: {counted}=38, limited: {counted}=40" in str(
        refusal.value
    )


async def test_claims_of_volumes_count_where_their_attributes_class_does(client: Client, namespace: str) -> None:
    chosen = {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}
    hard = {"persistentvolumeclaims": "1", "requests.storage": "9Gi"}
    spec = {"hard": hard, "scopeSelector": {"matchExpressions": [chosen]}}
    tree = {"metadata": {"name": "few", "namespace": namespace}, "spec": spec}
    quota = await client.create(from_tree(ResourceQuota, tree))
    await quota_heeded(client, namespace, forbidden=storage("large", namespace, "gold", size="10Gi"))

    for name, attributes in (("one", "tin"), ("two", "gold")):
        await taken(client, storage(name, namespace, attributes))

    await reaches(client, quota, {"persistentvolumeclaims": "1"})
    with pytest.raises(Forbidden, match="exceeded quota: few, requested: persistentvolumeclaims=1"):
        await client.create(storage("three", namespace, "gold"))


def storage(name: str, namespace: str, attributes: str, *, size: str = "1Gi") -> PersistentVolumeClaim:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "storageClassName": "",
        "volumeAttributesClassName": attributes,
    }
    return from_tree(PersistentVolumeClaim, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})
