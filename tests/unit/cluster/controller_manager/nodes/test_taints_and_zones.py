"""Toleration times, zone disruption and node health.

Covers: kubewright.cluster.controller_manager.nodes
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from tests.builders import nodes as builders

from kubewright.api.codec import from_tree
from kubewright.cluster.controller_manager.nodes.health import (
    NodeHealth,
    NodeMonitorOptions,
    grace_period_end,
    probe_node,
)
from kubewright.cluster.controller_manager.nodes.taint_eviction import min_toleration_time
from kubewright.cluster.controller_manager.nodes.zones import Zones
from kubewright.errors import ConfigError
from kubewright.k8s.core.v1 import Node, Taint, Toleration

BROKEN = Taint(key="broken", effect="NoExecute", value="yes")
DIRTY = Taint(key="dirty", effect="NoExecute")
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def toleration(key: str | None = None, seconds: int | None = None, **more: str) -> Toleration:
    return Toleration(
        key=key, operator=more.get("operator", "Exists"), toleration_seconds=seconds, value=more.get("value")
    )


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0),
        ([toleration("broken")], 0),
        ([toleration("broken"), toleration("dirty")], math.inf),
        ([toleration("broken", 30), toleration("dirty")], 30),
        ([toleration("broken", 30), toleration("dirty", 5)], 5),
        ([toleration("broken", -1), toleration("dirty", 5)], 0),
        ([toleration(), toleration("dirty", 5)], math.inf),
        ([toleration("broken", operator="Equal", value="no"), toleration("dirty")], 0),
        ([toleration("broken", operator="Equal", value="yes"), toleration("dirty")], math.inf),
    ],
)
def test_taints_are_tolerated_for_the_shortest_toleration(tolerations: list[Toleration], seconds: float) -> None:
    assert min_toleration_time([BROKEN, DIRTY], tolerations) == seconds


def test_without_taints_a_pod_stays() -> None:
    assert min_toleration_time([], []) == math.inf


def node(name: str, zone: str = "", **labels: str) -> Node:
    return builders.node(name, zone=zone, labels=labels)


def zones(ready: int, ill: int, *, zone: str = "") -> Zones:
    books = Zones(interval=10)
    for number in range(ready + ill):
        books.set_node(node(f"{zone}{number}", zone), ready=number < ready)
    return books


def test_nodes_of_a_zone_are_evicted_one_after_the_other() -> None:
    books = zones(ready=5, ill=2)
    assert books.eviction_delay(node("0"), 100.0) == 0
    books.record_eviction(node("0"), 100.0)
    assert books.eviction_delay(node("1"), 104.0) == 6
    assert books.eviction_delay(node("1", "elsewhere"), 104.0) == 0
    assert books.eviction_delay(node("1"), 111.0) == 0


def test_under_full_disruption_no_node_is_evicted() -> None:
    books = zones(ready=0, ill=2)
    assert books.all_disrupted
    assert books.eviction_delay(node("0"), 100.0) is None
    books.set_node(node("new", "elsewhere"), ready=True)
    assert not books.all_disrupted
    assert books.eviction_delay(node("0"), 100.0) == 0
    books.remove_node("new")
    assert books.all_disrupted


def test_a_partially_disrupted_zone_is_not_evicted_or_slowly_if_it_is_large() -> None:
    assert zones(ready=2, ill=3).eviction_delay(node("4"), 0.0) is None
    large = zones(ready=40, ill=60)
    large.record_eviction(node("0"), 0.0)
    assert large.eviction_delay(node("1"), 0.0) == 100


def test_a_node_excluded_from_disruption_does_not_count() -> None:
    books = Zones(interval=10)
    books.set_node(node("apart", **{"node.kubernetes.io/exclude-disruption": ""}), ready=False)
    assert not books.all_disrupted


def test_a_renewed_lease_and_a_new_status_are_heartbeats() -> None:
    times = NodeMonitorOptions()
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2029-12-31T23:59:00Z"}
    given = from_tree(Node, {"metadata": {"name": "n", "uid": "u"}, "status": {"conditions": [ready]}})
    heard = probe_node(given, None, None, NOW)
    assert heard.probe_time == NOW

    later = NOW + timedelta(seconds=20)
    assert probe_node(given, heard, None, later).probe_time == NOW
    assert probe_node(given, heard, NOW + timedelta(seconds=10), later).probe_time == NOW + timedelta(seconds=10)
    assert probe_node(given, NodeHealth(NOW, NOW, "u"), None, later).probe_time == later
    assert probe_node(given, NodeHealth(NOW, heard.heartbeat, "another"), None, later).probe_time == later
    assert grace_period_end(given, heard, times) == NOW + timedelta(seconds=50)


def test_a_negative_time_is_an_error() -> None:
    with pytest.raises(ConfigError, match="grace_period is -1 s"):
        NodeMonitorOptions(grace_period=-1)
