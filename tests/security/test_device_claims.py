"""A claim of devices takes a bounded time of the loop, whatever it asks for and however many nodes there are.

Covers: kubewright.cluster.scheduler.devices
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.security.spending import Spending, spending

from kubewright.api.codec import from_tree
from kubewright.cluster.scheduler.devices.allocation import Allocator
from kubewright.cluster.scheduler.node_info import AssignedPods, NodeInfo
from kubewright.k8s.resource.v1 import DeviceClass, ResourceClaim, ResourceSlice

DRIVER = "gpu.example.com"
DEVICES = 100
ITEMS = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
TIMED_OUT = "timed out trying to allocate devices"


def nested(depth: int, innermost: str) -> str:
    text = innermost
    for number in range(depth):
        text = f"{ITEMS}.all(x{number}, {text})"
    return text


def request(name: str, *selectors: str, count: int = 1) -> dict[str, Any]:
    cel = [{"cel": {"expression": text}} for text in selectors]
    return {"name": name, "exactly": {"deviceClassName": "any", "selectors": cel, "count": count}}


def scheduled(requests: list[dict[str, Any]], *, nodes: int = 1) -> tuple[set[str], Spending]:
    """The answers for the nodes of one scheduling cycle, and what they cost."""
    devices = [{"name": f"d{number}", "attributes": {"n": {"int": number}}} for number in range(DEVICES)]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "allNodes": True, "devices": devices}
    claim = {"devices": {"requests": requests}}
    allocator = Allocator(
        [from_tree(ResourceClaim, {"metadata": {"name": "c", "namespace": "ns"}, "spec": claim})],
        classes={"any": from_tree(DeviceClass, {"metadata": {"name": "any"}, "spec": {}})},
        slices=[from_tree(ResourceSlice, {"metadata": {"name": "s"}, "spec": spec})],
        allocated={},
    )
    with spending() as spent:
        answers = {allocator.allocate(node(f"node-{number}")).reason for number in range(nodes)}
    return answers, spent


def node(name: str) -> NodeInfo:
    return NodeInfo(name=name, labels={}, taints=(), unschedulable=False, allocatable={}, assigned=AssignedPods())


def test_a_search_without_end_costs_the_same_on_many_nodes() -> None:
    search = [request("r", count=8), request("never", "false")]
    alone, once = scheduled(search)
    together, spent = scheduled(search, nodes=20)

    assert alone == together == {TIMED_OUT}
    assert spent.calls < 2 * once.calls


@pytest.mark.parametrize(
    "selectors",
    [
        # Each of these alone is within the limits of Kubernetes; no result of one device is that of another.
        [nested(5, "true")],
        [f"device.driver != '{number}' || {'true && ' * 1200}true" for number in range(32)],
    ],
    ids=["loops", "long ones"],
)
def test_selectors_of_a_claim_share_a_budget(selectors: list[str]) -> None:
    answers, spent = scheduled([request(f"r{number}", *selectors) for number in range(3)] + [request("x", "false")])

    assert answers == {TIMED_OUT}
    assert spent.calls < 5_000_000


def test_a_hundred_nodes_with_a_hundred_devices_are_searched() -> None:
    first = f'device.attributes["{DRIVER}"].n >= 90'
    answers, _ = scheduled([request("r", first), request("s"), request("t", first)], nodes=100)

    assert answers == {""}
