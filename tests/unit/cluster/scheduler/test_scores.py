"""What a pod likes about nodes, in points as kube-scheduler gives them."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.api.codec import from_tree
from kubewright.cluster.scheduler.filters import NodeInfo, Residents, node_info, pod_info
from kubewright.cluster.scheduler.scores import score
from kubewright.k8s.core.v1 import Node, Pod

WEB = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
HOST = "kubernetes.io/hostname"


def node(name: str, *pods: Pod, labels: dict[str, str] | None = None, **spec: Any) -> NodeInfo:
    named = {HOST: name, **({"zone": name[0]} if labels is None else labels)}
    made = node_info(from_tree(Node, {"metadata": {"name": name, "labels": named}, "spec": spec}), Residents())
    for each in pods:
        made.residents.add(pod_info(each))
    return made


def pod(name: str = "new", *, app: str = "web", **spec: Any) -> Pod:
    metadata = {"name": name, "namespace": "shop", "uid": name, "labels": {"app": app}}
    return from_tree(Pod, {"metadata": metadata, "spec": {"containers": [], **spec}})


def liked(given: Pod, *nodes: NodeInfo, beside: tuple[NodeInfo, ...] = (), leaving: str = "") -> list[int]:
    """The points of each node; those beside do not fit."""
    return list(score(given, pod_info(given), nodes, (*nodes, *beside), lambda uid: uid == leaving).values())


def company(verb: str, *terms: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    weighted = [{"weight": weight, "podAffinityTerm": term} for weight, term in terms]
    return {verb: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def spread(**fields: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **WEB, **fields}


def test_who_has_no_preferences_likes_all_nodes_the_same() -> None:
    assert liked(pod(), node("a"), node("b", pod("other"))) == [0, 0]


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], [0, 150, 300]),
        ([{"key": "slow", "operator": "Exists"}], [0, 300, 300]),
        ([{"key": "slow", "operator": "Exists", "effect": "NoSchedule"}], [0, 150, 300]),
        ([{"operator": "Exists", "effect": "PreferNoSchedule"}], [0, 0, 0]),
    ],
)
def test_the_fewer_taints_ask_it_to_stay_away_the_better(
    tolerations: list[dict[str, str]], expected: list[int]
) -> None:
    slow, old = {"key": "slow", "effect": "PreferNoSchedule"}, {"key": "old", "effect": "PreferNoSchedule"}
    must = {"key": "db", "effect": "NoSchedule"}

    nodes = node("a", taints=[slow, old, must]), node("b", taints=[slow]), node("c")

    assert liked(pod(tolerations=tolerations), *nodes) == expected


def test_the_more_of_its_wishes_for_a_node_come_true_the_better() -> None:
    def wish(weight: int, **expression: Any) -> dict[str, Any]:
        return {"weight": weight, "preference": {"matchExpressions": [expression]} if expression else {}}

    wishes = [
        wish(3, key="disk", operator="In", values=["ssd"]),
        wish(1, key="zone", operator="In", values=["a", "b"]),
        wish(50),  # chooses nothing
    ]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}

    nodes = node("a", labels={"zone": "a", "disk": "ssd"}), node("b"), node("c")

    assert liked(pod(affinity=affinity), *nodes) == [200, 50, 0]
    assert liked(pod(affinity=affinity), nodes[2]) == [0]


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
def test_the_fewer_of_its_like_are_there_the_better(constraint: dict[str, Any], expected: list[int]) -> None:
    nodes = node("a1", pod("one"), pod("two")), node("a2"), node("b1")

    assert liked(pod(topologySpreadConstraints=[constraint]), *nodes) == expected


def test_who_leaves_and_who_is_on_nodes_out_of_the_question_counts_for_the_spread_as_it_should() -> None:
    given = pod(topologySpreadConstraints=[spread()], nodeSelector={"zone": "a"})
    full = node("a9", pod("nine"))

    assert liked(given, node("a1"), node("b1", pod("one")), beside=(full,)) == [0, 200]  # b is none to spread over
    assert liked(given, node("a1"), node("b1"), beside=(full,), leaving="nine") == [200, 200]


def test_a_node_without_the_labels_is_not_liked_for_being_empty() -> None:
    given = pod(topologySpreadConstraints=[spread()])

    assert liked(given, node("a1"), node("none", labels={})) == [200, 0]


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (company("podAffinity", (5, WEB)), [200, 200, 0]),
        (company("podAntiAffinity", (5, WEB)), [0, 0, 200]),
        (company("podAffinity", (5, WEB), (10, {**WEB, "topologyKey": HOST})), [200, 66, 0]),
        (company("podAffinity", (5, {**WEB, "namespaces": ["bank"]})), [0, 0, 0]),
        (company("podAffinity", (5, {**WEB, "topologyKey": "rack"})), [0, 0, 0]),
    ],
    ids=["near", "away", "nearer", "elsewhere", "no such label"],
)
def test_it_goes_where_those_are_that_it_likes(affinity: dict[str, Any], expected: list[int]) -> None:
    nodes = node("a1", pod("one")), node("a2"), node("b1", pod("other", app="db"))

    assert liked(pod(affinity=affinity), *nodes) == expected


def test_it_goes_where_it_is_liked() -> None:
    fan = pod("fan", app="db", affinity=company("podAffinity", (7, WEB)))
    foe = pod("foe", app="db", affinity=company("podAntiAffinity", (7, WEB)))
    bound = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [WEB]}}

    assert liked(pod(), node("a", fan), node("b", foe), node("c")) == [200, 0, 100]
    assert liked(pod(), node("a", pod("tied", app="db", affinity=bound)), node("b")) == [200, 0]
    assert liked(pod(app="db"), node("a", fan), node("b", foe)) == [0, 0]
