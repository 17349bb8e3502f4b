"""More addresses for Services: a ServiceCIDR is ready at once, and stays while a Service has an address of it alone.

Covers: kubewright.apiserver.builtin, kubewright.cluster.controller_manager.services
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random
from uuid import uuid4

import pytest
from tests.builders.services import service
from tests.waiting import present

from kubewright import Client
from kubewright.api.codec import from_tree
from kubewright.errors import Invalid
from kubewright.k8s.networking.v1 import ServiceCIDR

FINALIZER = "networking.k8s.io/service-cidr-finalizer"


@pytest.fixture
async def addresses(client: Client) -> AsyncIterator[ServiceCIDR]:
    """256 addresses nobody else has."""
    name = f"more-{uuid4().hex[:8]}"
    network = f"10.{200 + Random(name).randrange(50)}.{Random(name[::-1]).randrange(256)}"
    made = await client.create(_range(name, f"{network}.0/24"))
    yield made
    await client.delete(made)


def _range(name: str, network: str) -> ServiceCIDR:
    return from_tree(ServiceCIDR, {"metadata": {"name": name}, "spec": {"cidrs": [network]}})


async def _says(client: Client, name: str, status: str) -> ServiceCIDR:
    def holds(found: dict[str, ServiceCIDR]) -> bool:
        return name in found and [item.status for item in found[name].status.conditions or ()] == [status]

    return (await present(client, ServiceCIDR, "", holds, seconds=30))[name]


async def test_services_get_addresses_of_an_added_range(client: Client, namespace: str, addresses: ServiceCIDR) -> None:
    ready = await _says(client, addresses.metadata.name, "True")
    wanted = (addresses.spec.cidrs or [""])[0].replace(".0/24", ".77")

    made = await client.create(service("one", namespace, clusterIP=wanted))
    with pytest.raises(Invalid, match="provided IP is already allocated"):
        await client.create(service("two", namespace, clusterIP=wanted))
    with pytest.raises(Invalid, match="the provided network does not match the current range"):
        await client.create(service("two", namespace, clusterIP="172.30.1.1"))

    assert ready.metadata.finalizers == [FINALIZER]
    assert [item.message for item in ready.status.conditions or ()] == ["Kubernetes Service CIDR is ready"]
    assert made.spec.cluster_ips == [wanted]
    await client.delete(made)


async def test_a_range_in_use_is_not_deleted_and_allocates_no_more(client: Client, namespace: str) -> None:
    name = f"used-{uuid4().hex[:8]}"
    network = f"10.{150 + Random(name).randrange(50)}.{Random(name[::-1]).randrange(256)}"
    made = await client.create(_range(name, f"{network}.0/24"))
    await _says(client, name, "True")
    first = await client.create(service("one", namespace, clusterIP=f"{network}.77"))

    await client.delete(made)
    left = await _says(client, name, "False")

    assert left.metadata.finalizers == [FINALIZER]
    assert [item.reason for item in left.status.conditions or ()] == ["Terminating"]
    with pytest.raises(Invalid, match="the provided network does not match the current range"):
        await client.create(service("two", namespace, clusterIP=f"{network}.78"))
    await client.delete(first)
