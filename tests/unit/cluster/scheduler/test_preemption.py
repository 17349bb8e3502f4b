"""The books of who drives out whom: nominations, and what a pod is told that fits nowhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kubewright.api.codec import from_tree
from kubewright.api.names import ObjectKey
from kubewright.cache.changes import change_of
from kubewright.cluster.scheduler.filters import NodeInfo, Residents, node_info, pod_info, reasons_against
from kubewright.cluster.scheduler.preemption import Attempt, Judge, Preemption
from kubewright.cluster.scheduler.scheduler import Scheduler
from kubewright.k8s.core.v1 import Node, Pod
from kubewright.k8s.policy.v1 import PodDisruptionBudget
from kubewright.testing.clock import VirtualClock

CPU = ("Insufficient cpu",)
CLEARED = "preemption: 0/2 nodes are available: "


def pod(name: str, priority: int = 0, cpu: str = "1", *, status: dict[str, Any] | None = None, **spec: Any) -> Pod:
    container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "shop", "uid": name, "labels": {"app": name}}
    spec = {"containers": [container], "priority": priority, **spec}
    return from_tree(Pod, {"metadata": metadata, "spec": spec, "status": status or {}})


class Plane:
    """Nodes with two processors each, and the books about them."""

    def __init__(self, *names: str, **specs: dict[str, Any]) -> None:
        clock = VirtualClock(start=datetime(2026, 1, 1, tzinfo=UTC))
        self.books = Preemption("default-scheduler", namespaces={}, clock=clock)
        self.nodes = {name: _node(name, specs.get(name.replace("-", "_"), {})) for name in names}

    def put(self, node: str, given: Pod, *, started: str = "2025-01-01T00:00:00Z", **metadata: Any) -> None:
        """A pod that runs there."""
        self.nodes[node].residents.add(pod_info(given))
        status = {"startTime": started, "conditions": metadata.pop("conditions", [])}
        tree = {
            "metadata": {"name": given.metadata.name, "namespace": "shop", "uid": given.metadata.uid, **metadata},
            "spec": {"containers": [], "nodeName": node},
            "status": status,
        }
        assert not self.books.pod_changed(change_of(new=from_tree(Pod, tree)))

    def judge(self, given: Pod) -> Judge:
        facts, nodes = pod_info(given), tuple(self.nodes.values())
        return self.books.minding_nominees(facts, lambda node: reasons_against(given, facts, node, nodes))

    def attempt(self, given: Pod) -> Attempt:
        judge = self.judge(given)
        refusals = [(node, judge(node)) for node in self.nodes.values()]
        assert all(reasons for _, reasons in refusals)
        facts, nodes = pod_info(given), tuple(self.nodes.values())
        return self.books.attempt(given, facts, refusals, lambda node: reasons_against(given, facts, node, nodes))


def _node(name: str, spec: dict[str, Any]) -> NodeInfo:
    status = {"allocatable": {"cpu": "2", "pods": "10"}}
    return node_info(from_tree(Node, {"metadata": {"name": name}, "spec": spec, "status": status}), Residents())


def victims(attempt: Attempt) -> list[str]:
    return [] if attempt.sacrifice is None else [victim.pod.uid for victim in attempt.sacrifice.victims]


def test_the_least_important_pod_leaves_and_its_node_is_nominated() -> None:
    plane = Plane("node-1", "node-2")
    plane.put("node-1", pod("a", 5, "2"))
    plane.put("node-2", pod("b", 3, "2"))

    attempt = plane.attempt(pod("new", 9))

    assert victims(attempt) == ["b"]
    assert (attempt.nominated, attempt.message) == ("node-2", "")
    assert plane.books.node_for("new") == "node-2"


def test_of_equals_the_one_that_started_last_leaves() -> None:
    plane = Plane("node-1", "node-2")
    plane.put("node-1", pod("a", 0, "2"), started="2025-03-01T00:00:00Z")
    plane.put("node-2", pod("b", 0, "2"), started="2025-02-01T00:00:00Z")

    assert victims(plane.attempt(pod("new", 9))) == ["a"]


@pytest.mark.parametrize(
    ("budget", "victim"),
    [
        ({"selector": {"matchLabels": {"app": "a"}}}, "b"),
        ({"selector": {"matchLabels": {"app": "other"}}}, "a"),
        ({"selector": {}}, "a"),
    ],
)
def test_a_node_whose_pods_no_budget_protects_is_preferred(budget: dict[str, Any], victim: str) -> None:
    plane = Plane("node-1", "node-2")
    plane.put("node-1", pod("a", 0, "2"))
    plane.put("node-2", pod("b", 5, "2"))
    given = from_tree(PodDisruptionBudget, {"metadata": {"name": "one", "namespace": "shop"}, "spec": budget})
    assert plane.books.budget_changed(change_of(new=given)) == ()

    assert victims(plane.attempt(pod("new", 9))) == [victim]


def test_a_budget_that_is_gone_protects_nobody() -> None:
    plane = Plane("node-1", "node-2")
    plane.put("node-1", pod("a", 0, "2"))
    plane.put("node-2", pod("b", 5, "2"))
    spec = {"selector": {"matchLabels": {"app": "a"}}}
    given = from_tree(PodDisruptionBudget, {"metadata": {"name": "one", "namespace": "shop"}, "spec": spec})
    plane.books.budget_changed(change_of(new=given))
    plane.books.budget_changed(change_of(old=given))

    assert victims(plane.attempt(pod("new", 9))) == ["a"]


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
            id="nobody is less important",
        ),
        pytest.param(
            pod("new", 5, "2"),
            f"{CLEARED}1 Insufficient cpu, 1 Preemption is not helpful for scheduling.",
            id="not enough even then",
        ),
        pytest.param(
            pod("new", 9, preemptionPolicy="Never"),
            "preemption: not eligible due to preemptionPolicy=Never.",
            id="it must not",
        ),
    ],
)
def test_a_pod_that_nobody_makes_room_for_is_told_why(new: Pod, message: str) -> None:
    taint = {"key": "only", "effect": "NoSchedule"}
    plane = Plane("node-1", "node-2", node_2={"taints": [taint]})
    plane.put("node-1", pod("a", 7))
    plane.put("node-1", pod("b", 0))

    attempt = plane.attempt(new)

    assert (attempt.message, attempt.sacrifice) == (message, None)
    assert attempt.nominated == (None if new.spec.preemption_policy == "Never" else "")
    assert not plane.books.node_for("new")


def test_without_nodes_there_is_nothing_to_say() -> None:
    assert Plane().attempt(pod("new", 9)) == Attempt()


def preempted(plane: Plane, name: str = "new", priority: int = 9) -> Pod:
    """A pod for which the only occupant of the only node leaves."""
    given = pod(name, priority, "2")
    assert plane.attempt(given).nominated == "node-1"
    return given


@pytest.fixture
def plane() -> Plane:
    made = Plane("node-1")
    made.put("node-1", pod("old", 0, "2"))
    return made


def leaves(plane: Plane, name: str) -> bool:
    plane.nodes["node-1"].residents.remove(name)
    return plane.books.pod_changed(change_of(old=pod(name, nodeName="node-1")))


@pytest.mark.parametrize(("priority", "reasons"), [(8, CPU), (9, CPU), (10, ())])
def test_the_place_is_kept_from_those_who_are_not_more_important(
    plane: Plane, priority: int, reasons: tuple[str, ...]
) -> None:
    new = preempted(plane)
    leaves(plane, "old")
    node = plane.nodes["node-1"]

    assert plane.judge(pod("other", priority))(node) == reasons
    assert plane.judge(new)(node) == ()
    assert not node.residents.pods, "nobody is there but in thought"


def test_the_place_is_kept_no_more_when_the_pod_has_one(plane: Plane) -> None:
    new = preempted(plane)
    leaves(plane, "old")

    plane.books.placed("new", new.key)

    assert plane.judge(pod("other"))(plane.nodes["node-1"]) == ()


@pytest.mark.parametrize(("node", "spared"), [("node-1", False), ("node-2", True)])
def test_whoever_waits_hears_of_a_pod_that_went_elsewhere(plane: Plane, node: str, spared: bool) -> None:
    preempted(plane)

    assert plane.books.pod_changed(change_of(new=pod("new", 9, nodeName=node))) is spared
    assert not plane.books.node_for("new")


def test_a_pod_that_is_deleted_gives_up_its_place(plane: Plane) -> None:
    preempted(plane)
    leaves(plane, "old")

    assert plane.books.pod_changed(change_of(old=pod("new", 9)))
    assert plane.judge(pod("other"))(plane.nodes["node-1"]) == ()


def test_a_decision_is_in_force_before_the_pod_is_seen_with_it(plane: Plane) -> None:
    preempted(plane)

    assert not plane.books.pod_changed(change_of(new=pod("new", 9)))
    assert plane.books.node_for("new") == "node-1"


def test_a_nomination_that_somebody_takes_away_is_gone(plane: Plane) -> None:
    preempted(plane)
    assert not plane.books.pod_changed(change_of(new=pod("new", 9, status={"nominatedNodeName": "node-1"})))

    assert plane.books.pod_changed(change_of(new=pod("new", 9)))
    assert not plane.books.node_for("new")


def test_a_nomination_by_somebody_else_counts_unless_another_scheduler_sees_to_the_pod(plane: Plane) -> None:
    leaves(plane, "old")
    status = {"nominatedNodeName": "node-1"}
    plane.books.pod_changed(change_of(new=pod("foreign", 9, "2", status=status, schedulerName="other")))
    assert plane.judge(pod("x"))(plane.nodes["node-1"]) == ()

    plane.books.pod_changed(change_of(new=pod("given", 9, "2", status=status)))

    assert plane.judge(pod("x"))(plane.nodes["node-1"]) == CPU


def test_victims_that_are_on_their_way_are_waited_for(plane: Plane) -> None:
    new = preempted(plane)
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    plane.put("node-1", pod("old", 0, "2"), deletionTimestamp="2026-01-01T00:00:00Z", conditions=[condition])

    attempt = plane.attempt(new)

    assert attempt.message == "preemption: not eligible due to a terminating pod on the nominated node."
    assert (attempt.nominated, attempt.sacrifice) == (None, None)


def test_a_pod_that_leaves_for_other_reasons_is_not_waited_for(plane: Plane) -> None:
    new = preempted(plane)
    plane.put("node-1", pod("old", 0, "2"), deletionTimestamp="2026-01-01T00:00:00Z")

    assert victims(plane.attempt(new)) == ["old"]


def test_a_nominated_node_that_can_help_no_more_is_left_for_another() -> None:
    plane = Plane("node-1", "node-2")
    plane.put("node-1", pod("a", 0, "2"))
    plane.put("node-2", pod("b", 5, "2"))
    new = pod("new", 9)
    assert plane.attempt(new).nominated == "node-1"
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    plane.put("node-1", pod("a", 0, "2"), deletionTimestamp="2026-01-01T00:00:00Z", conditions=[condition])
    plane.nodes["node-1"].unschedulable = True

    assert plane.attempt(new).nominated == "node-2"


def test_less_important_nominees_of_the_node_look_for_another(plane: Plane) -> None:
    mid = preempted(plane, "mid", 5)
    plane.books.pod_changed(change_of(new=pod("mid", 5, "2", status={"nominatedNodeName": "node-1"})))

    attempt = plane.attempt(pod("new", 9, "2"))

    assert [each.uid for each in attempt.outdone] == ["mid"]
    assert plane.books.node_for("new") == "node-1"
    assert plane.books.pod_changed(change_of(new=mid)), "seen without it, it is woken"
    assert not plane.books.node_for("mid")


def test_those_who_wait_are_woken_by_importance() -> None:
    plane = Plane("node-1")
    waiting = [pod("a"), pod("b", 7, "4"), pod("c", -3, "4"), pod("d", 9, "4")]
    plane.put("node-1", pod("old", 100, "2"))
    keys = [given.key for given in waiting]
    assert plane.books.in_order(keys) == tuple(keys)

    for given in waiting:
        plane.attempt(given)

    assert [key.name for key in plane.books.in_order(keys)] == ["d", "b", "a", "c"]
    plane.books.placed("d", ObjectKey("shop", "d"))
    assert [key.name for key in plane.books.in_order(keys[:3])] == ["b", "a", "c"]
