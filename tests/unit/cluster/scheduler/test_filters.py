"""The filter plugins and their reasons."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.builders.nodes import schedulable_node
from tests.builders.pods import container_tree, pod

from kubewright.cluster.scheduler.filters import is_resolvable, run_filters
from kubewright.cluster.scheduler.fit_error import fit_error, pre_filter_error
from kubewright.cluster.scheduler.node_info import NodeInfo, new_pod_info
from kubewright.k8s.core.v1 import Pod

SELECTOR = ("node(s) didn't match Pod's node affinity/selector",)
TAINT = ("node(s) had untolerated taint(s)",)


node = partial(schedulable_node, allocatable={"cpu": "2", "memory": "1Gi", "pods": "3"})


def requests(**amounts: str) -> dict[str, Any]:
    return container_tree(requests=amounts)


def reasons(pending: Pod, target: NodeInfo, *others: NodeInfo) -> tuple[str, ...]:
    return run_filters(pending, new_pod_info(pending), target, (target, *others))


def assign(target: NodeInfo, *pods: Pod) -> NodeInfo:
    for item in pods:
        target.assigned.add(new_pod_info(item))
    return target


def test_a_plain_pod_fits_a_plain_node() -> None:
    assert reasons(pod(), node()) == ()


def test_the_node_selector_has_to_match() -> None:
    assert reasons(pod(nodeSelector={"disk": "ssd"}), node()) == SELECTOR
    assert reasons(pod(nodeSelector={"disk": "ssd"}), node(labels={"disk": "ssd"})) == ()


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
    pending = pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})

    assert (reasons(pending, node(labels={"zone": "a", "cores": "8"})) == ()) is fits


def test_node_affinity_may_name_the_node() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["node-2"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    pending = pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})

    assert reasons(pending, node("node-1")) == SELECTOR
    assert reasons(pending, node("node-2")) == ()


def test_taints_have_to_be_tolerated() -> None:
    tainted = node(taints=[{"key": "only", "value": "db", "effect": "NoSchedule"}])

    assert reasons(pod(), tainted) == TAINT
    assert reasons(pod(tolerations=[{"key": "only", "value": "web"}]), tainted) == TAINT
    assert reasons(pod(tolerations=[{"key": "only", "value": "db", "effect": "NoSchedule"}]), tainted) == ()
    assert reasons(pod(tolerations=[{"operator": "Exists"}]), tainted) == ()


def test_a_taint_prefer_no_schedule_rejects_no_pod() -> None:
    assert reasons(pod(), node(taints=[{"key": "x", "effect": "PreferNoSchedule"}])) == ()


def test_a_cordoned_node_rejects_all_pods() -> None:
    assert reasons(pod(), node(unschedulable=True)) == ("node(s) were unschedulable",)


def test_requests_must_fit_the_free_resources() -> None:
    busy = assign(node(), pod("a", containers=[requests(cpu="1500m")]))

    assert reasons(pod(containers=[requests(cpu="500m")]), busy) == ()
    assert reasons(pod(containers=[requests(cpu="501m", memory="2Gi")]), busy) == (
        "Insufficient cpu",
        "Insufficient memory",
    )
    assert reasons(pod(containers=[requests(**{"example.io/gpu": "1"})]), busy) == ("Insufficient example.io/gpu",)


def test_the_largest_init_container_counts() -> None:
    pending = pod(initContainers=[requests(cpu="3")])

    assert reasons(pending, node()) == ("Insufficient cpu",)


def test_a_sidecar_counts_in_addition_to_the_containers() -> None:
    sidecar = {**requests(cpu="1500m"), "restartPolicy": "Always"}

    assert reasons(pod(initContainers=[sidecar], containers=[requests(cpu="1")]), node()) == ("Insufficient cpu",)


def test_a_full_node_rejects_all_pods() -> None:
    assert reasons(pod(), assign(node(), pod("a"), pod("b"), pod("c"))) == ("Too many pods",)


def test_a_host_port_can_be_used_once() -> None:
    pending = pod(containers=[{"name": "main", "image": "nginx", "ports": [{"containerPort": 80, "hostPort": 80}]}])

    assert reasons(pending, assign(node(), pod("a", containers=pending.spec.containers and [
        {"name": "main", "image": "nginx", "ports": [{"containerPort": 8080, "hostPort": 80}]}
    ]))) == ("node(s) didn't have free ports for the requested pod ports",)  # fmt: skip


def anti_affinity(**labels: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_required_anti_affinity_keeps_pods_apart() -> None:
    first = assign(node("node-1"), pod("a", labels={"app": "web"}))
    second = node("node-2")

    pending = pod("b", labels={"app": "web"}, affinity=anti_affinity(app="web"))

    assert reasons(pending, first, second) == ("node(s) didn't match pod anti-affinity rules",)
    assert reasons(pending, second, first) == ()


def test_the_anti_affinity_of_an_existing_pod_counts_too() -> None:
    first = assign(node("node-1"), pod("a", labels={"app": "web"}, affinity=anti_affinity(app="web")))

    assert reasons(pod("b", labels={"app": "web"}), first) == (
        "node(s) didn't satisfy existing pods anti-affinity rules",
    )


def test_required_affinity_keeps_pods_together_and_the_first_pod_may_go_anywhere() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    pending = pod(
        "b",
        labels={"app": "web"},
        affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    first, second = assign(node("node-1"), pod("a", labels={"app": "web"})), node("node-2")

    assert reasons(pending, first, second) == ()
    assert reasons(pending, second, first) == ("node(s) didn't match pod affinity rules",)
    assert reasons(pending, node("node-3")) == ()


def test_a_removed_pod_frees_its_resources() -> None:
    target = assign(node(), pod("a", affinity=anti_affinity(app="web"), containers=[requests(cpu="2")]))
    assert reasons(pod(containers=[requests(cpu="1")]), target) == ("Insufficient cpu",)

    assert target.assigned.remove("a")

    assert reasons(pod(containers=[requests(cpu="1")], labels={"app": "web"}), target) == ()
    assert not target.assigned.remove("a")


def test_the_fit_error_counts_nodes_by_reason() -> None:
    rejections = [("Insufficient cpu",), ("Insufficient cpu",), SELECTOR]

    assert fit_error(rejections) == (
        "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 2 Insufficient cpu."
    )
    assert fit_error([]) == "no nodes available to schedule pods"


def test_a_pre_filter_error_is_not_resolved_by_preemption() -> None:
    assert pre_filter_error("no claim", 2) == (
        "0/2 nodes are available: no claim. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert pre_filter_error("no claim", 2, never_preempts=True) == (
        "0/2 nodes are available: no claim. preemption: not eligible due to preemptionPolicy=Never."
    )
    assert pre_filter_error("no claim", 0) == "no nodes available to schedule pods"


@pytest.mark.parametrize(
    ("term", "rejected"),
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
def test_a_term_matches_pods_of_named_and_selected_namespaces(term: dict[str, Any], rejected: bool) -> None:
    namespaces = {"shop": {"team": "sales"}, "bank": {"team": "money"}}
    web = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname", **term}
    pending = pod(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [web]}})
    target = assign(node(), pod("other", labels={"app": "web"}))

    reasons = run_filters(pending, new_pod_info(pending, namespaces), target, (target,))

    assert bool(reasons) is rejected


@pytest.mark.parametrize(
    ("cpu", "reasons", "resolvable"),
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
def test_only_reasons_that_depend_on_other_pods_are_resolvable(
    cpu: str, reasons: tuple[str, ...], resolvable: bool
) -> None:
    assert is_resolvable(reasons, new_pod_info(pod(containers=[requests(cpu=cpu)])), node()) is resolvable


def test_assigned_pods_count_their_priorities() -> None:
    assigned = assign(node(), pod("a", priority=5), pod("b"), pod("c")).assigned
    assert assigned.priorities == {5: 1, 0: 2}

    assigned.remove("a")
    assigned.remove("b")

    assert list(assigned.priorities) == [0]
