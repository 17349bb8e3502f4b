"""What simulated nodes say of themselves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kubewright.api.quantity import Quantity
from kubewright.client.client import Client
from kubewright.cluster.nodes.node_objects import Nodes, node_status
from kubewright.errors import ConfigError
from kubewright.k8s.core.v1 import Node

NOW = datetime(2030, 1, 1, tzinfo=UTC)
CAPACITY = {"cpu": Quantity("4")}


def status(node: Node, now: datetime = NOW, port: int = 10250) -> Any:
    return node_status(node, capacity=CAPACITY, address="127.0.0.1", port=port, version="v1.35.4", now=now)


def test_a_node_is_well_and_says_where_its_kubelet_listens() -> None:
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


def test_the_same_node_is_the_same_machine() -> None:
    assert status(Node.named("node-1")).node_info == status(Node.named("node-1")).node_info
    assert status(Node.named("node-1")).node_info != status(Node.named("node-2")).node_info


async def test_nodes_have_names_and_there_is_at_least_one() -> None:
    client = cast("Client", SimpleNamespace())

    assert Nodes(client, 2).names == ("node-1", "node-2")
    assert "edge" in Nodes(client, names=["edge"])
    with pytest.raises(ConfigError, match="ask for 1 or more"):
        Nodes(client, 0)
