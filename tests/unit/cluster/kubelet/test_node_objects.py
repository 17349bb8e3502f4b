"""The status and heartbeats of simulated nodes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kubewright.api.quantity import Quantity
from kubewright.client.client import Client
from kubewright.cluster.kubelet.node_objects import Nodes, extended_resource_changes, node_status
from kubewright.errors import ConfigError
from kubewright.k8s.coordination.v1 import Lease
from kubewright.k8s.core.v1 import Node

NOW = datetime(2030, 1, 1, tzinfo=UTC)
CAPACITY = {"cpu": Quantity("4")}


def status(node: Node, now: datetime = NOW, port: int = 10250) -> Any:
    return node_status(node, capacity=CAPACITY, address="127.0.0.1", port=port, version="v1.35.4", now=now)


def test_the_status_of_a_node_is_healthy_and_has_the_kubelet_port() -> None:
    found = status(Node.named("node-1"))

    assert {item.type: item.status for item in found.conditions} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    assert found.daemon_endpoints.kubelet_endpoint.port == 10250
    assert [item.address for item in found.addresses] == ["127.0.0.1", "localhost"]
    assert status(Node.named("node-1"), port=0).daemon_endpoints is None


def test_a_heartbeat_leaves_the_time_of_the_last_change_alone() -> None:
    node = Node.named("node-1")
    node.status = status(node)

    later = status(node, NOW + timedelta(minutes=5))

    ready = later.conditions[-1]
    assert (ready.last_transition_time, ready.last_heartbeat_time) == (NOW, NOW + timedelta(minutes=5))


def test_extended_resources_follow_the_capacity() -> None:
    node = Node.named("node-1")
    node.status = status(node)
    node.status.capacity = {**CAPACITY, "example.com/dongle": Quantity("4"), "example.com/same": Quantity("1")}
    node.status.allocatable = {
        "cpu": Quantity("3"),
        "example.com/same": Quantity("1"),
        "example.com/gone": Quantity("2"),
    }

    assert extended_resource_changes(node) == {"example.com/dongle": "4", "example.com/gone": None}


def test_the_machine_id_depends_only_on_the_name() -> None:
    assert status(Node.named("node-1")).node_info == status(Node.named("node-1")).node_info
    assert status(Node.named("node-1")).node_info != status(Node.named("node-2")).node_info


async def test_nodes_have_names_and_there_is_at_least_one() -> None:
    client = cast("Client", SimpleNamespace())

    assert Nodes(client, 2).names == ("node-1", "node-2")
    assert "edge" in Nodes(client, names=["edge"])
    with pytest.raises(ConfigError, match="ask for 1 or more"):
        Nodes(client, 0)


@pytest.mark.parametrize("silent", [True, False])
async def test_a_node_corrects_its_ready_condition_unless_it_is_silent(silent: bool) -> None:
    node = Node.named("node-1")
    node.status = status(node)
    (node.status.conditions or [])[-1].status = "Unknown"
    node.metadata.annotations = {"simulation.kubewright.io/silent": "true"} if silent else {}
    written: list[type] = []

    async def get(kind: type[Node], name: str) -> Node:
        return node

    async def patch_by_name(kind: type, name: str, patch: object, **options: object) -> None:
        written.append(kind)

    await Nodes(cast("Client", SimpleNamespace(get=get, patch_by_name=patch_by_name)))._heartbeat("node-1")

    assert written == ([Lease] if silent else [Lease, Node])
