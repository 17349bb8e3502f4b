"""The filter of PodTopologySpread."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.builders import pods as builders
from tests.builders.nodes import schedulable_node

from kubewright.cluster.scheduler.filters import run_filters
from kubewright.cluster.scheduler.node_info import NodeInfo, new_pod_info
from kubewright.cluster.scheduler.topology_spread import CONSTRAINTS_NOT_MATCHED, new_topology_spread
from kubewright.k8s.core.v1 import Pod

WEB = {"matchLabels": {"app": "web"}}
NODE_LABEL_NOT_MATCHED = f"{CONSTRAINTS_NOT_MATCHED} (missing required label)"


def node(name: str, zone: str = "", **spec: Any) -> NodeInfo:
    return schedulable_node(name, labels={"zone": zone} if zone else {}, **spec)


pod = partial(builders.pod, app="web", labels={"pod-template-hash": "abc"}, containers=[])


def constraint(**fields: Any) -> dict[str, Any]:
    default = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
    return {**default, **fields}


def reasons(given: Pod, *nodes: NodeInfo, terminating: str = "") -> list[str]:
    """The reasons of each node."""
    plugin = new_topology_spread(given, new_pod_info(given), nodes, lambda uid: uid == terminating)
    assert plugin is not None
    return [", ".join(plugin.filter(each)) for each in nodes]


def zones(**pods: list[Pod]) -> list[NodeInfo]:
    """A node in each zone, with its pods."""
    made = [node(f"node-{name}", name) for name in pods]
    for each, assigned in zip(made, pods.values(), strict=True):
        for resident in assigned:
            each.assigned.add(new_pod_info(resident))
    return made


TWO = [pod("a1"), pod("a2")]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, [CONSTRAINTS_NOT_MATCHED, ""], id="no more than one more"),
        pytest.param({"maxSkew": 2}, [CONSTRAINTS_NOT_MATCHED, ""], id="nor more than two"),
        pytest.param({"maxSkew": 3}, ["", ""], id="three are"),
        pytest.param({"labelSelector": {"matchLabels": {"app": "other"}}}, ["", ""], id="others do not count"),
        pytest.param({"labelSelector": None}, ["", ""], id="no selector"),
        pytest.param({"labelSelector": {}}, ["", ""], id="empty selector"),
        pytest.param(
            {"minDomains": 3, "maxSkew": 1}, [CONSTRAINTS_NOT_MATCHED, ""], id="fewer zones than wanted, one is free"
        ),
        pytest.param(
            {"matchLabelKeys": ["pod-template-hash"]}, [CONSTRAINTS_NOT_MATCHED, ""], id="of the same template"
        ),
        pytest.param({"topologyKey": "kubernetes.io/hostname"}, [CONSTRAINTS_NOT_MATCHED, ""], id="over nodes"),
        pytest.param(
            {"topologyKey": "rack"}, [NODE_LABEL_NOT_MATCHED, NODE_LABEL_NOT_MATCHED], id="over what no node has"
        ),
    ],
)
def test_a_domain_takes_no_more_pods_than_the_skew_allows(fields: dict[str, Any], expected: list[str]) -> None:
    given = pod(topologySpreadConstraints=[constraint(**fields)])

    assert reasons(given, *zones(a=TWO, b=[])) == expected


def test_with_fewer_domains_than_min_domains_the_minimum_is_zero() -> None:
    given = pod(topologySpreadConstraints=[constraint(minDomains=3)])

    assert reasons(given, *zones(a=[pod("a1")], b=[pod("b1")])) == [CONSTRAINTS_NOT_MATCHED, CONSTRAINTS_NOT_MATCHED]


def test_nodes_of_a_zone_are_one_domain() -> None:
    first, second = node("node-1", "a"), node("node-2", "a")
    first.assigned.add(new_pod_info(pod("a1")))
    given = pod(topologySpreadConstraints=[constraint()])

    assert reasons(given, first, second, node("node-3", "b")) == [CONSTRAINTS_NOT_MATCHED, CONSTRAINTS_NOT_MATCHED, ""]


def test_pods_of_other_namespaces_and_terminating_pods_do_not_count() -> None:
    given = pod(topologySpreadConstraints=[constraint()])

    assert reasons(given, *zones(a=[pod("a1", namespace="other")], b=[])) == ["", ""]
    assert reasons(given, *zones(a=[pod("a1")], b=[]), terminating="a1") == ["", ""]


@pytest.mark.parametrize(
    ("policy", "expected"), [(None, ["", ""]), ("Honor", ["", ""]), ("Ignore", [CONSTRAINTS_NOT_MATCHED, ""])]
)
def test_the_node_affinity_policy_includes_nodes(policy: str | None, expected: list[str]) -> None:
    given = pod(topologySpreadConstraints=[constraint(nodeAffinityPolicy=policy)], nodeSelector={"zone": "a"})

    assert reasons(given, *zones(a=[pod("a1")], b=[])) == expected


def test_the_node_taints_policy_excludes_tainted_nodes() -> None:
    tainted = node("node-2", "b", taints=[{"key": "only", "effect": "NoSchedule"}])
    busy = node("node-1", "a")
    busy.assigned.add(new_pod_info(pod("a1")))

    assert reasons(pod(topologySpreadConstraints=[constraint()]), busy, tainted) == [CONSTRAINTS_NOT_MATCHED, ""]
    honor = constraint(nodeTaintsPolicy="Honor")
    assert reasons(pod(topologySpreadConstraints=[honor]), busy, tainted)[0] == ""


def test_every_constraint_must_hold() -> None:
    given = pod(topologySpreadConstraints=[constraint(maxSkew=3), constraint(topologyKey="kubernetes.io/hostname")])

    assert reasons(given, *zones(a=TWO, b=[])) == [CONSTRAINTS_NOT_MATCHED, ""]


def test_a_pod_that_a_dry_run_removes_does_not_count() -> None:
    given = pod(topologySpreadConstraints=[constraint()])
    first, second = zones(a=TWO, b=[pod("b1")])
    plugin = new_topology_spread(given, new_pod_info(given), (first, second), lambda uid: False)
    assert plugin is not None
    assert plugin.filter(first) == (CONSTRAINTS_NOT_MATCHED,)

    first.assigned.remove("a1")

    assert plugin.filter(first) == ()


def test_constraints_schedule_anyway_filter_nothing() -> None:
    given = pod(topologySpreadConstraints=[constraint(whenUnsatisfiable="ScheduleAnyway")])

    assert new_topology_spread(given, new_pod_info(given), zones(a=TWO, b=[]), lambda uid: False) is None
    assert new_topology_spread(pod(), new_pod_info(pod()), (), lambda uid: False) is None


def test_the_spread_is_filtered_before_inter_pod_affinity() -> None:
    given = pod()

    assert run_filters(
        given, new_pod_info(given), node("node-1"), (), spread=lambda node: (CONSTRAINTS_NOT_MATCHED,)
    ) == (CONSTRAINTS_NOT_MATCHED,)
