"""Quotas keep a namespace small, and say how full it is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.scenarios.conftest import present

from kubewright import Client
from kubewright.api.metadata import ObjectMeta
from kubewright.api.quantity import Quantity
from kubewright.errors import Forbidden
from kubewright.k8s.core.v1 import (
    ConfigMap,
    Container,
    Pod,
    PodSpec,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceRequirements,
    ServiceAccount,
)


async def limited(client: Client, namespace: str, **hard: str) -> ResourceQuota:
    """A quota that counts."""
    amounts = {name.replace("_", "/"): Quantity(amount) for name, amount in hard.items()}
    metadata = ObjectMeta(name="few", namespace=namespace)
    quota = await client.create(ResourceQuota(metadata=metadata, spec=ResourceQuotaSpec(hard=dict(amounts))))
    await reaches(client, quota, dict.fromkeys(amounts))
    return quota


async def reaches(client: Client, quota: ResourceQuota, used: Mapping[str, str | None]) -> None:
    """Wait until this much is used; None is any amount."""

    def holds(found: dict[str, ResourceQuota]) -> bool:
        have = found["few"].status.used or {}
        return all(name in have and amount in (None, str(have[name])) for name, amount in used.items())

    await present(client, ResourceQuota, quota.metadata.namespace, holds, seconds=30)


def pod(name: str, namespace: str, cpu: str) -> Pod:
    resources = ResourceRequirements(requests={"cpu": Quantity(cpu)})
    containers = [Container(name="main", image="nginx", resources=resources)]
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace), spec=PodSpec(containers=containers))


async def settings(client: Client, namespace: str, name: str) -> ConfigMap:
    return await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace)))


async def test_one_more_than_a_quota_allows_is_refused_until_one_is_gone(client: Client, namespace: str) -> None:
    quota = await limited(client, namespace, count_configmaps="3")
    await reaches(client, quota, {"count/configmaps": "1"})  # every namespace has one from the start
    first = await settings(client, namespace, "first")
    await settings(client, namespace, "second")

    with pytest.raises(Forbidden) as refusal:
        await settings(client, namespace, "third")

    words = "exceeded quota: few, requested: count/configmaps=1, used: count/configmaps=3, limited: count/configmaps=3"
    assert words in str(refusal.value)
    await client.delete(first)
    await reaches(client, quota, {"count/configmaps": "2"})
    await settings(client, namespace, "third")


async def test_pods_are_refused_by_what_they_ask_for(client: Client, namespace: str) -> None:
    await present(client, ServiceAccount, namespace, lambda have: "default" in have)
    quota = await limited(client, namespace, cpu="500m", pods="5")
    await client.create(pod("small", namespace, "300m"))
    await reaches(client, quota, {"cpu": "300m", "pods": "1"})

    with pytest.raises(Forbidden) as refusal:
        await client.create(pod("large", namespace, "300m"))

    assert "exceeded quota: few, requested: cpu=300m, used: cpu=300m, limited: cpu=500m" in str(refusal.value)
