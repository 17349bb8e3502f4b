"""Endpoints that somebody writes by hand can be read as EndpointSlices.

Covers: kubewright.cluster.controller_manager.services
"""

from __future__ import annotations

from typing import Any

from tests.waiting import present

from kubewright import Client
from kubewright.api.codec import from_tree, to_tree
from kubewright.k8s.core.v1 import Endpoints, Service
from kubewright.k8s.discovery.v1 import EndpointSlice

PORTS = [{"name": "b", "port": 80}, {"name": "a", "port": 53, "protocol": "UDP"}]


async def by_hand(client: Client, namespace: str, *addresses: str, **meta: Any) -> Endpoints:
    """A Service that selects nothing, and its Endpoints."""
    service = {"metadata": {"name": "db", "namespace": namespace}, "spec": {"ports": [{"port": 80}]}}
    await client.create(from_tree(Service, service))
    subset = {
        "addresses": [{"ip": address} for address in addresses],
        "notReadyAddresses": [{"ip": "10.9.9.9"}],
        "ports": PORTS,
    }
    tree = {"metadata": {"name": "db", "namespace": namespace, **meta}, "subsets": [subset]}
    return await client.create(from_tree(Endpoints, tree))


def shown(slices: dict[str, EndpointSlice]) -> dict[str, list[tuple[str, bool | None]]]:
    """Addresses and whether they are ready, by address type."""
    return {
        item.address_type: sorted(
            (endpoint.addresses[0], endpoint.conditions.ready if endpoint.conditions else None)
            for endpoint in item.endpoints
        )
        for item in slices.values()
    }


async def test_each_address_type_has_a_slice_of_the_endpoints(client: Client, namespace: str) -> None:
    made = await by_hand(
        client, namespace, "10.1.2.3", "fd00::1", labels={"team": "blue"}, annotations={"note": "by hand"}
    )

    wanted = {"IPv4": [("10.1.2.3", True), ("10.9.9.9", False)], "IPv6": [("fd00::1", True)]}
    slices = await present(client, EndpointSlice, namespace, lambda have: shown(have) == wanted)

    for item in slices.values():
        assert item.metadata.labels == {
            "team": "blue",
            "kubernetes.io/service-name": "db",
            "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
        }
        assert item.metadata.annotations == {"note": "by hand"}
        assert [(owner.kind, owner.uid) for owner in item.metadata.owner_references] == [
            ("Endpoints", made.metadata.uid)
        ]
        assert to_tree(item)["ports"] == [
            {"name": "b", "port": 80, "protocol": "TCP"},
            {"name": "a", "port": 53, "protocol": "UDP"},
        ]


async def test_slices_follow_the_endpoints_and_are_deleted_with_them(client: Client, namespace: str) -> None:
    made = await by_hand(client, namespace, "10.1.2.3")
    (first,) = (await present(client, EndpointSlice, namespace, lambda have: len(have) == 1)).values()

    change = {"subsets": [{"addresses": [{"ip": "10.2.3.4"}], "ports": PORTS}]}
    await client.patch_by_name(Endpoints, made.key, change)
    wanted = {"IPv4": [("10.2.3.4", True)]}
    slices = await present(client, EndpointSlice, namespace, lambda have: shown(have) == wanted)
    assert list(slices) == [first.metadata.name]

    await client.delete(made)
    await present(client, EndpointSlice, namespace, lambda have: not have)


async def test_endpoints_with_the_skip_mirror_label_are_not_mirrored(client: Client, namespace: str) -> None:
    made = await by_hand(client, namespace, "10.1.2.3")
    await present(client, EndpointSlice, namespace, lambda have: len(have) == 1)

    skip = {"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}}
    await client.patch_by_name(Endpoints, made.key, skip)

    await present(client, EndpointSlice, namespace, lambda have: not have)
