"""The score plugins, with the weights of kube-scheduler."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.builders import pods as builders
from tests.builders.nodes import schedulable_node

from kubewright.cluster.scheduler.node_info import NodeInfo, new_pod_info
from kubewright.cluster.scheduler.scores import score_nodes
from kubewright.k8s.core.v1 import Pod

WEB = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
HOST = "kubernetes.io/hostname"


def node(name: str, *pods: Pod, labels: dict[str, str] | None = None, **spec: Any) -> NodeInfo:
    return schedulable_node(name, *pods, labels={"zone": name[0]} if labels is None else labels, **spec)


pod = partial(builders.pod, app="web", containers=[])


def scores(given: Pod, *nodes: NodeInfo, infeasible: tuple[NodeInfo, ...] = (), terminating: str = "") -> list[int]:
    """The scores of the feasible nodes."""
    return list(
        score_nodes(given, new_pod_info(given), nodes, (*nodes, *infeasible), lambda uid: uid == terminating).values()
    )


def preferred(verb: str, *terms: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    weighted = [{"weight": weight, "podAffinityTerm": term} for weight, term in terms]
    return {verb: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def spread(**fields: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **WEB, **fields}


def test_without_preferences_all_scores_are_equal() -> None:
    assert scores(pod(), node("a"), node("b", pod("other"))) == [0, 0]


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], [0, 150, 300]),
        ([{"key": "slow", "operator": "Exists"}], [0, 300, 300]),
        ([{"key": "slow", "operator": "Exists", "effect": "NoSchedule"}], [0, 150, 300]),
        ([{"operator": "Exists", "effect": "PreferNoSchedule"}], [0, 0, 0]),
    ],
)
def test_fewer_untolerated_taints_score_higher(tolerations: list[dict[str, str]], expected: list[int]) -> None:
    slow, old = {"key": "slow", "effect": "PreferNoSchedule"}, {"key": "old", "effect": "PreferNoSchedule"}
    must = {"key": "db", "effect": "NoSchedule"}

    nodes = node("a", taints=[slow, old, must]), node("b", taints=[slow]), node("c")

    assert scores(pod(tolerations=tolerations), *nodes) == expected


def test_more_matching_preferred_node_terms_score_higher() -> None:
    def preference(weight: int, **expression: Any) -> dict[str, Any]:
        return {"weight": weight, "preference": {"matchExpressions": [expression]} if expression else {}}

    preferences = [
        preference(3, key="disk", operator="In", values=["ssd"]),
        preference(1, key="zone", operator="In", values=["a", "b"]),
        preference(50),  # an empty term matches no node
    ]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferences}}

    nodes = node("a", labels={"zone": "a", "disk": "ssd"}), node("b"), node("c")

    assert scores(pod(affinity=affinity), *nodes) == [200, 50, 0]
    assert scores(pod(affinity=affinity), nodes[2]) == [0]


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        (spread(), [0, 0, 200]),
        (spread(topologyKey=HOST), [0, 200, 200]),
        (spread(maxSkew=3), [80, 80, 200]),
        (spread(labelSelector={"matchLabels": {"app": "other"}}), [200, 200, 200]),
        (spread(topologyKey="rack"), [0, 0, 0]),
        (spread(whenUnsatisfiable="DoNotSchedule"), [0, 0, 0]),
    ],
    ids=["zones", "nodes", "some skew", "others", "no such label", "a must"],
)
def test_fewer_matching_pods_score_higher(constraint: dict[str, Any], expected: list[int]) -> None:
    nodes = node("a1", pod("one"), pod("two")), node("a2"), node("b1")

    assert scores(pod(topologySpreadConstraints=[constraint]), *nodes) == expected


def test_the_spread_ignores_terminating_pods_and_nodes_outside_the_node_affinity() -> None:
    given = pod(topologySpreadConstraints=[spread()], nodeSelector={"zone": "a"})
    full = node("a9", pod("nine"))

    assert scores(given, node("a1"), node("b1", pod("one")), infeasible=(full,)) == [
        0,
        200,
    ]  # the node affinity excludes b
    assert scores(given, node("a1"), node("b1"), infeasible=(full,), terminating="nine") == [200, 200]


def test_a_node_without_topology_labels_gets_no_points_for_the_spread() -> None:
    given = pod(topologySpreadConstraints=[spread()])

    assert scores(given, node("a1"), node("none", labels={})) == [200, 0]


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (preferred("podAffinity", (5, WEB)), [200, 200, 0]),
        (preferred("podAntiAffinity", (5, WEB)), [0, 0, 200]),
        (preferred("podAffinity", (5, WEB), (10, {**WEB, "topologyKey": HOST})), [200, 66, 0]),
        (preferred("podAffinity", (5, {**WEB, "namespaces": ["bank"]})), [0, 0, 0]),
        (preferred("podAffinity", (5, {**WEB, "topologyKey": "rack"})), [0, 0, 0]),
    ],
    ids=["near", "away", "nearer", "elsewhere", "no such label"],
)
def test_preferred_affinity_scores_domains_with_matching_pods_higher(
    affinity: dict[str, Any], expected: list[int]
) -> None:
    nodes = node("a1", pod("one")), node("a2"), node("b1", pod("other", app="db"))

    assert scores(pod(affinity=affinity), *nodes) == expected


def test_the_terms_of_existing_pods_count() -> None:
    fan = pod("fan", app="db", affinity=preferred("podAffinity", (7, WEB)))
    foe = pod("foe", app="db", affinity=preferred("podAntiAffinity", (7, WEB)))
    bound = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [WEB]}}

    assert scores(pod(), node("a", fan), node("b", foe), node("c")) == [200, 0, 100]
    assert scores(pod(), node("a", pod("tied", app="db", affinity=bound)), node("b")) == [200, 0]
    assert scores(pod(app="db"), node("a", fan), node("b", foe)) == [0, 0]
