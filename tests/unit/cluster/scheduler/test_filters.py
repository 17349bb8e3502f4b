"""Which nodes a pod fits, and the words for those it does not."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.api.codec import from_tree
from kubewright.cluster.scheduler.filters import (
    NodeInfo,
    Residents,
    failure_message,
    hopeless_message,
    is_curable,
    node_info,
    pod_info,
    reasons_against,
)
from kubewright.k8s.core.v1 import Node, Pod

SELECTOR = ("node(s) didn't match Pod's node affinity/selector",)
TAINT = ("node(s) had untolerated taint(s)",)


def node(name: str = "node-1", *, labels: dict[str, str] | None = None, **spec: Any) -> NodeInfo:
    tree = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "3"}},
    }
    return node_info(from_tree(Node, tree), Residents())


def pod(name: str = "web", *, labels: dict[str, str] | None = None, **spec: Any) -> Pod:
    spec.setdefault("containers", [{"name": "main", "image": "nginx"}])
    return from_tree(
        Pod, {"metadata": {"name": name, "namespace": "shop", "uid": name, "labels": labels or {}}, "spec": spec}
    )


def requests(**amounts: str) -> dict[str, Any]:
    return {"name": "main", "image": "nginx", "resources": {"requests": amounts}}


def against(given: Pod, target: NodeInfo, *others: NodeInfo) -> tuple[str, ...]:
    return reasons_against(given, pod_info(given), target, (target, *others))


def put(target: NodeInfo, *pods: Pod) -> NodeInfo:
    for item in pods:
        target.residents.add(pod_info(item))
    return target


def test_a_plain_pod_fits_a_plain_node() -> None:
    assert against(pod(), node()) == ()


def test_the_node_selector_has_to_match() -> None:
    assert against(pod(nodeSelector={"disk": "ssd"}), node()) == SELECTOR
    assert against(pod(nodeSelector={"disk": "ssd"}), node(labels={"disk": "ssd"})) == ()


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ({"key": "zone", "operator": "In", "values": ["a", "b"]}, True),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False),
        ({"key": "zone", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "DoesNotExist"}, True),
        ({"key": "cores", "operator": "Gt", "values": ["4"]}, True),
        ({"key": "cores", "operator": "Lt", "values": ["4"]}, False),
    ],
)
def test_required_node_affinity_has_to_match(expression: dict[str, Any], fits: bool) -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    given = pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})

    assert (against(given, node(labels={"zone": "a", "cores": "8"})) == ()) is fits


def test_node_affinity_may_name_the_node() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["node-2"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    given = pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})

    assert against(given, node("node-1")) == SELECTOR
    assert against(given, node("node-2")) == ()


def test_taints_have_to_be_tolerated() -> None:
    tainted = node(taints=[{"key": "only", "value": "db", "effect": "NoSchedule"}])

    assert against(pod(), tainted) == TAINT
    assert against(pod(tolerations=[{"key": "only", "value": "web"}]), tainted) == TAINT
    assert against(pod(tolerations=[{"key": "only", "value": "db", "effect": "NoSchedule"}]), tainted) == ()
    assert against(pod(tolerations=[{"operator": "Exists"}]), tainted) == ()


def test_a_preference_of_a_taint_keeps_nobody_away() -> None:
    assert against(pod(), node(taints=[{"key": "x", "effect": "PreferNoSchedule"}])) == ()


def test_a_cordoned_node_takes_nobody() -> None:
    assert against(pod(), node(unschedulable=True)) == ("node(s) were unschedulable",)


def test_resources_are_what_is_left() -> None:
    busy = put(node(), pod("a", containers=[requests(cpu="1500m")]))

    assert against(pod(containers=[requests(cpu="500m")]), busy) == ()
    assert against(pod(containers=[requests(cpu="501m", memory="2Gi")]), busy) == (
        "Insufficient cpu",
        "Insufficient memory",
    )
    assert against(pod(containers=[requests(**{"example.io/gpu": "1"})]), busy) == ("Insufficient example.io/gpu",)


def test_the_hungriest_init_container_counts() -> None:
    given = pod(initContainers=[requests(cpu="3")])

    assert against(given, node()) == ("Insufficient cpu",)


def test_a_sidecar_counts_beside_the_others() -> None:
    sidecar = {**requests(cpu="1500m"), "restartPolicy": "Always"}

    assert against(pod(initContainers=[sidecar], containers=[requests(cpu="1")]), node()) == ("Insufficient cpu",)


def test_a_full_node_takes_nobody() -> None:
    assert against(pod(), put(node(), pod("a"), pod("b"), pod("c"))) == ("Too many pods",)


def test_a_host_port_is_free_once() -> None:
    given = pod(containers=[{"name": "main", "image": "nginx", "ports": [{"containerPort": 80, "hostPort": 80}]}])

    assert against(given, put(node(), pod("a", containers=given.spec.containers and [
        {"name": "main", "image": "nginx", "ports": [{"containerPort": 8080, "hostPort": 80}]}
    ]))) == ("node(s) didn't have free ports for the requested pod ports",)  # fmt: skip


def apart(**labels: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_pods_that_want_to_be_apart_are() -> None:
    first = put(node("node-1"), pod("a", labels={"app": "web"}))
    second = node("node-2")

    given = pod("b", labels={"app": "web"}, affinity=apart(app="web"))

    assert against(given, first, second) == ("node(s) didn't match pod anti-affinity rules",)
    assert against(given, second, first) == ()


def test_the_wish_of_a_present_pod_counts_too() -> None:
    first = put(node("node-1"), pod("a", labels={"app": "web"}, affinity=apart(app="web")))

    assert against(pod("b", labels={"app": "web"}), first) == (
        "node(s) didn't satisfy existing pods anti-affinity rules",
    )


def test_pods_that_want_to_be_together_are_but_the_first_may_choose() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    given = pod(
        "b",
        labels={"app": "web"},
        affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    first, second = put(node("node-1"), pod("a", labels={"app": "web"})), node("node-2")

    assert against(given, first, second) == ()
    assert against(given, second, first) == ("node(s) didn't match pod affinity rules",)
    assert against(given, node("node-3")) == ()


def test_who_leaves_gives_back_what_he_used() -> None:
    target = put(node(), pod("a", affinity=apart(app="web"), containers=[requests(cpu="2")]))
    assert against(pod(containers=[requests(cpu="1")]), target) == ("Insufficient cpu",)

    assert target.residents.remove("a")

    assert against(pod(containers=[requests(cpu="1")], labels={"app": "web"}), target) == ()
    assert not target.residents.remove("a")


def test_the_sentence_counts_nodes_by_reason() -> None:
    refusals = [("Insufficient cpu",), ("Insufficient cpu",), SELECTOR]

    assert failure_message(refusals) == (
        "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 2 Insufficient cpu."
    )
    assert failure_message([]) == "no nodes available to schedule pods"


def test_a_problem_of_the_pod_itself_is_cured_by_no_preemption() -> None:
    assert hopeless_message("no claim", 2) == (
        "0/2 nodes are available: no claim. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert hopeless_message("no claim", 2, never=True) == (
        "0/2 nodes are available: no claim. preemption: not eligible due to preemptionPolicy=Never."
    )
    assert hopeless_message("no claim", 0) == "no nodes available to schedule pods"


@pytest.mark.parametrize(
    ("term", "refused"),
    [
        ({}, True),
        ({"namespaces": ["bank"]}, False),
        ({"namespaces": ["bank", "shop"]}, True),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "sales"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "money"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "money"}}, "namespaces": ["shop"]}, True),
    ],
)
def test_other_pods_count_where_their_namespace_is_named_or_chosen(term: dict[str, Any], refused: bool) -> None:
    namespaces = {"shop": {"team": "sales"}, "bank": {"team": "money"}}
    web = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname", **term}
    given = pod(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [web]}})
    target = put(node(), pod("other", labels={"app": "web"}))

    reasons = reasons_against(given, pod_info(given, namespaces), target, (target,))

    assert bool(reasons) is refused


@pytest.mark.parametrize(
    ("cpu", "reasons", "curable"),
    [
        ("2", ("Insufficient cpu",), True),
        ("3", ("Insufficient cpu",), False),
        ("3", ("node(s) didn't have free ports for the requested pod ports",), True),
        ("1", ("Too many pods",), True),
        ("1", ("node(s) didn't match pod anti-affinity rules",), True),
        ("1", ("node(s) didn't match pod affinity rules",), False),
        ("1", SELECTOR, False),
        ("1", TAINT, False),
        ("1", ("node(s) were unschedulable",), False),
    ],
)
def test_only_what_other_pods_are_to_blame_for_is_cured_when_they_leave(
    cpu: str, reasons: tuple[str, ...], curable: bool
) -> None:
    assert is_curable(reasons, pod_info(pod(containers=[requests(cpu=cpu)])), node()) is curable


def test_residents_know_which_priorities_they_have() -> None:
    residents = put(node(), pod("a", priority=5), pod("b"), pod("c")).residents
    assert residents.priorities == {5: 1, 0: 2}

    residents.remove("a")
    residents.remove("b")

    assert list(residents.priorities) == [0]
