"""DefaultPreemption and the nominator: victims, nominations and messages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.builders import pods as builders
from tests.builders.nodes import schedulable_node

from kubewright.api.codec import from_tree
from kubewright.api.names import ObjectKey
from kubewright.cache.changes import change_of
from kubewright.cluster.scheduler.filters import PodFilter, run_filters
from kubewright.cluster.scheduler.node_info import new_pod_info
from kubewright.cluster.scheduler.preemption import DefaultPreemption, PostFilterResult
from kubewright.cluster.scheduler.scheduler import Scheduler
from kubewright.k8s.core.v1 import Pod
from kubewright.k8s.policy.v1 import PodDisruptionBudget
from kubewright.testing.clock import VirtualClock

CPU = ("Insufficient cpu",)
CLEARED = "preemption: 0/2 nodes are available: "


def pod(name: str, priority: int = 0, cpu: str = "1", **options: Any) -> Pod:
    return builders.pod(name, container={"requests": {"cpu": cpu}}, priority=priority, **options)


class Nodes:
    """Nodes with two CPUs each, and the preemption of their scheduler."""

    def __init__(self, *names: str, **specs: dict[str, Any]) -> None:
        clock = VirtualClock(start=datetime(2026, 1, 1, tzinfo=UTC))
        self.preemption = DefaultPreemption("default-scheduler", namespaces={}, clock=clock)
        self.nodes = {
            name: schedulable_node(
                name, allocatable={"cpu": "2", "pods": "10"}, **specs.get(name.replace("-", "_"), {})
            )
            for name in names
        }

    def assign(self, node: str, given: Pod, *, started: str = "2025-01-01T00:00:00Z", **metadata: Any) -> None:
        """Bind a pod to the node."""
        self.nodes[node].assigned.add(new_pod_info(given))
        status = {"startTime": started, "conditions": metadata.pop("conditions", [])}
        tree = {
            "metadata": {"name": given.metadata.name, "namespace": "shop", "uid": given.metadata.uid, **metadata},
            "spec": {"containers": [], "nodeName": node},
            "status": status,
        }
        assert not self.preemption.pod_changed(change_of(new=from_tree(Pod, tree)))

    def pod_filter(self, given: Pod) -> PodFilter:
        info, nodes = new_pod_info(given), tuple(self.nodes.values())
        return self.preemption.nominator.with_nominated_pods(info, lambda node: run_filters(given, info, node, nodes))

    def post_filter(self, given: Pod) -> PostFilterResult:
        pod_filter = self.pod_filter(given)
        rejections = [(node, pod_filter(node)) for node in self.nodes.values()]
        assert all(reasons for _, reasons in rejections)
        info, nodes = new_pod_info(given), tuple(self.nodes.values())
        return self.preemption.post_filter(given, info, rejections, lambda node: run_filters(given, info, node, nodes))


def victims(post_filter: PostFilterResult) -> list[str]:
    return [] if post_filter.candidate is None else [victim.pod.uid for victim in post_filter.candidate.victims]


def test_the_least_important_pod_is_the_victim_and_its_node_is_nominated() -> None:
    nodes = Nodes("node-1", "node-2")
    nodes.assign("node-1", pod("a", 5, "2"))
    nodes.assign("node-2", pod("b", 3, "2"))

    post_filter = nodes.post_filter(pod("new", 9))

    assert victims(post_filter) == ["b"]
    assert (post_filter.nominated_node, post_filter.message) == ("node-2", "")
    assert nodes.preemption.nominator.nominated_node("new") == "node-2"


def test_of_equal_priorities_the_pod_that_started_last_is_the_victim() -> None:
    nodes = Nodes("node-1", "node-2")
    nodes.assign("node-1", pod("a", 0, "2"), started="2025-03-01T00:00:00Z")
    nodes.assign("node-2", pod("b", 0, "2"), started="2025-02-01T00:00:00Z")

    assert victims(nodes.post_filter(pod("new", 9))) == ["a"]


@pytest.mark.parametrize(
    ("budget", "victim"),
    [
        ({"selector": {"matchLabels": {"app": "a"}}}, "b"),
        ({"selector": {"matchLabels": {"app": "other"}}}, "a"),
        ({"selector": {}}, "a"),
    ],
)
def test_a_node_whose_pods_no_budget_protects_is_preferred(budget: dict[str, Any], victim: str) -> None:
    nodes = Nodes("node-1", "node-2")
    nodes.assign("node-1", pod("a", 0, "2"))
    nodes.assign("node-2", pod("b", 5, "2"))
    given = from_tree(PodDisruptionBudget, {"metadata": {"name": "one", "namespace": "shop"}, "spec": budget})
    assert nodes.preemption.budget_changed(change_of(new=given)) == ()

    assert victims(nodes.post_filter(pod("new", 9))) == [victim]


def test_a_deleted_budget_protects_no_pod() -> None:
    nodes = Nodes("node-1", "node-2")
    nodes.assign("node-1", pod("a", 0, "2"))
    nodes.assign("node-2", pod("b", 5, "2"))
    spec = {"selector": {"matchLabels": {"app": "a"}}}
    given = from_tree(PodDisruptionBudget, {"metadata": {"name": "one", "namespace": "shop"}, "spec": spec})
    nodes.preemption.budget_changed(change_of(new=given))
    nodes.preemption.budget_changed(change_of(old=given))

    assert victims(nodes.post_filter(pod("new", 9))) == ["a"]


def test_the_scheduler_watches_budgets() -> None:
    assert PodDisruptionBudget in Scheduler().declaration().kinds


@pytest.mark.parametrize(
    ("new", "message"),
    [
        pytest.param(
            pod("new", 9, "4"), f"{CLEARED}2 Preemption is not helpful for scheduling.", id="larger than any node"
        ),
        pytest.param(
            pod("new", 0),
            f"{CLEARED}1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.",
            id="no lower priority",
        ),
        pytest.param(
            pod("new", 5, "2"),
            f"{CLEARED}1 Insufficient cpu, 1 Preemption is not helpful for scheduling.",
            id="not enough without all victims",
        ),
        pytest.param(
            pod("new", 9, preemptionPolicy="Never"),
            "preemption: not eligible due to preemptionPolicy=Never.",
            id="policy Never",
        ),
    ],
)
def test_the_message_says_why_there_are_no_victims(new: Pod, message: str) -> None:
    taint = {"key": "only", "effect": "NoSchedule"}
    nodes = Nodes("node-1", "node-2", node_2={"taints": [taint]})
    nodes.assign("node-1", pod("a", 7))
    nodes.assign("node-1", pod("b", 0))

    post_filter = nodes.post_filter(new)

    assert (post_filter.message, post_filter.candidate) == (message, None)
    assert post_filter.nominated_node == (None if new.spec.preemption_policy == "Never" else "")
    assert not nodes.preemption.nominator.nominated_node("new")


def test_without_nodes_the_result_is_empty() -> None:
    assert Nodes().post_filter(pod("new", 9)) == PostFilterResult()


def preempt(nodes: Nodes, name: str = "new", priority: int = 9) -> Pod:
    """A pod that preempts the only pod of the only node."""
    given = pod(name, priority, "2")
    assert nodes.post_filter(given).nominated_node == "node-1"
    return given


@pytest.fixture
def nodes() -> Nodes:
    made = Nodes("node-1")
    made.assign("node-1", pod("old", 0, "2"))
    return made


def delete(nodes: Nodes, name: str) -> bool:
    nodes.nodes["node-1"].assigned.remove(name)
    return nodes.preemption.pod_changed(change_of(old=pod(name, nodeName="node-1")))


@pytest.mark.parametrize(("priority", "reasons"), [(8, CPU), (9, CPU), (10, ())])
def test_a_nominated_pod_counts_for_pods_of_the_same_and_lower_priority(
    nodes: Nodes, priority: int, reasons: tuple[str, ...]
) -> None:
    new = preempt(nodes)
    delete(nodes, "old")
    node = nodes.nodes["node-1"]

    assert nodes.pod_filter(pod("other", priority))(node) == reasons
    assert nodes.pod_filter(new)(node) == ()
    assert not node.assigned.pods, "nominated pods are assigned only during a filter"


def test_a_nomination_does_not_count_after_the_pod_is_assigned(nodes: Nodes) -> None:
    new = preempt(nodes)
    delete(nodes, "old")

    nodes.preemption.pod_assigned("new", new.key)

    assert nodes.pod_filter(pod("other"))(nodes.nodes["node-1"]) == ()


@pytest.mark.parametrize(("node", "freed"), [("node-1", False), ("node-2", True)])
def test_a_pod_bound_to_another_node_frees_its_nominated_node(nodes: Nodes, node: str, freed: bool) -> None:
    preempt(nodes)

    assert nodes.preemption.pod_changed(change_of(new=pod("new", 9, nodeName=node))) is freed
    assert not nodes.preemption.nominator.nominated_node("new")


def test_a_deleted_pod_frees_its_nominated_node(nodes: Nodes) -> None:
    preempt(nodes)
    delete(nodes, "old")

    assert nodes.preemption.pod_changed(change_of(old=pod("new", 9)))
    assert nodes.pod_filter(pod("other"))(nodes.nodes["node-1"]) == ()


def test_a_nomination_counts_before_the_watch_shows_it(nodes: Nodes) -> None:
    preempt(nodes)

    assert not nodes.preemption.pod_changed(change_of(new=pod("new", 9)))
    assert nodes.preemption.nominator.nominated_node("new") == "node-1"


def test_a_nomination_removed_from_the_status_is_removed(nodes: Nodes) -> None:
    preempt(nodes)
    assert not nodes.preemption.pod_changed(change_of(new=pod("new", 9, status={"nominatedNodeName": "node-1"})))

    assert nodes.preemption.pod_changed(change_of(new=pod("new", 9)))
    assert not nodes.preemption.nominator.nominated_node("new")


def test_a_nomination_in_the_status_counts_unless_the_pod_has_another_scheduler(nodes: Nodes) -> None:
    delete(nodes, "old")
    status = {"nominatedNodeName": "node-1"}
    nodes.preemption.pod_changed(change_of(new=pod("foreign", 9, "2", status=status, schedulerName="other")))
    assert nodes.pod_filter(pod("x"))(nodes.nodes["node-1"]) == ()

    nodes.preemption.pod_changed(change_of(new=pod("given", 9, "2", status=status)))

    assert nodes.pod_filter(pod("x"))(nodes.nodes["node-1"]) == CPU


def test_a_pod_waits_for_its_terminating_victims(nodes: Nodes) -> None:
    new = preempt(nodes)
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    nodes.assign("node-1", pod("old", 0, "2"), deletionTimestamp="2026-01-01T00:00:00Z", conditions=[condition])

    post_filter = nodes.post_filter(new)

    assert post_filter.message == "preemption: not eligible due to a terminating pod on the nominated node."
    assert (post_filter.nominated_node, post_filter.candidate) == (None, None)


def test_a_pod_does_not_wait_for_pods_that_terminate_for_other_reasons(nodes: Nodes) -> None:
    new = preempt(nodes)
    nodes.assign("node-1", pod("old", 0, "2"), deletionTimestamp="2026-01-01T00:00:00Z")

    assert victims(nodes.post_filter(new)) == ["old"]


def test_a_nominated_node_that_becomes_unresolvable_is_replaced() -> None:
    nodes = Nodes("node-1", "node-2")
    nodes.assign("node-1", pod("a", 0, "2"))
    nodes.assign("node-2", pod("b", 5, "2"))
    new = pod("new", 9)
    assert nodes.post_filter(new).nominated_node == "node-1"
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    nodes.assign("node-1", pod("a", 0, "2"), deletionTimestamp="2026-01-01T00:00:00Z", conditions=[condition])
    nodes.nodes["node-1"].unschedulable = True

    assert nodes.post_filter(new).nominated_node == "node-2"


def test_nominations_of_a_lower_priority_are_cleared(nodes: Nodes) -> None:
    mid = preempt(nodes, "mid", 5)
    nodes.preemption.pod_changed(change_of(new=pod("mid", 5, "2", status={"nominatedNodeName": "node-1"})))

    post_filter = nodes.post_filter(pod("new", 9, "2"))

    assert [each.uid for each in post_filter.lower_nominees] == ["mid"]
    assert nodes.preemption.nominator.nominated_node("new") == "node-1"
    assert nodes.preemption.pod_changed(change_of(new=mid)), "its status without the nomination frees the node"
    assert not nodes.preemption.nominator.nominated_node("mid")


def test_unschedulable_pods_are_ordered_by_priority() -> None:
    nodes = Nodes("node-1")
    unschedulable = [pod("a"), pod("b", 7, "4"), pod("c", -3, "4"), pod("d", 9, "4")]
    nodes.assign("node-1", pod("old", 100, "2"))
    keys = [given.key for given in unschedulable]
    assert nodes.preemption.by_priority(keys) == tuple(keys)

    for given in unschedulable:
        nodes.post_filter(given)

    assert [key.name for key in nodes.preemption.by_priority(keys)] == ["d", "b", "a", "c"]
    nodes.preemption.pod_assigned("d", ObjectKey("shop", "d"))
    assert [key.name for key in nodes.preemption.by_priority(keys[:3])] == ["b", "a", "c"]
