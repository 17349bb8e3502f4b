"""Victim selection on a node, and the choice of the node."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from kubewright.api.codec import from_tree
from kubewright.api.names import ObjectKey
from kubewright.api.selectors import Selector
from kubewright.cluster.scheduler.node_info import AssignedPods, PodInfo
from kubewright.cluster.scheduler.victims import (
    Candidate,
    DisruptionBudget,
    PotentialVictim,
    new_disruption_budget,
    select_candidate,
    select_victims_on_node,
)
from kubewright.k8s.policy.v1 import PodDisruptionBudget

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CAPACITY = 4
TOO_SMALL = ("Insufficient cpu",)


def victim(name: str, priority: int = 0, *, size: int = 1, app: str = "", at: int = 0) -> PotentialVictim:
    """A pod that started so many minutes after noon."""
    labels = {"app": app} if app else {}
    info = PodInfo(key=ObjectKey("shop", name), uid=name, labels=labels, requests={"cpu": size}, priority=priority)
    return PotentialVictim(info, NOON + timedelta(minutes=at))


def budget(app: str, allowed: int = 0, *, disrupted: Sequence[str] = (), namespace: str = "shop") -> DisruptionBudget:
    return DisruptionBudget(namespace, Selector.of({"app": app}), allowed, frozenset(disrupted))


def select(size: int, potential: Sequence[PotentialVictim], *budgets: DisruptionBudget) -> Candidate | tuple[str, ...]:
    """For a pod of that size on a node with room for four."""
    assigned = AssignedPods()
    for each in potential:
        assigned.add(each.pod)
    before = dict(assigned.pods)
    requested = dict(assigned.requested)

    outcome = select_victims_on_node(
        "node-1",
        assigned,
        potential,
        budgets,
        run_filters=lambda: TOO_SMALL if assigned.requested["cpu"] + size > CAPACITY else (),
    )

    assert assigned.pods == before, "the dry run restores all pods"
    assert assigned.requested == requested
    return outcome


def names(outcome: Candidate | tuple[str, ...]) -> list[str]:
    assert isinstance(outcome, Candidate)
    return [victim.pod.uid for victim in outcome.victims]


FOUR_PODS = [victim("a", 3), victim("b", 2), victim("c", 1), victim("d", 0)]


@pytest.mark.parametrize(
    ("size", "potential", "budgets", "victims", "pdb_violations"),
    [
        pytest.param(1, FOUR_PODS, (), ["d"], 0, id="the least important pod is evicted"),
        pytest.param(2, FOUR_PODS, (), ["c", "d"], 0, id="as many as needed, the more important first"),
        pytest.param(4, FOUR_PODS, (), ["a", "b", "c", "d"], 0, id="all if necessary"),
        pytest.param(
            2,
            [victim("small", 5), victim("large", 1, size=3)],
            (),
            ["large"],
            0,
            id="a pod whose eviction does not help stays",
        ),
        pytest.param(
            3, [victim("large", 5, size=3), victim("small", 1)], (), ["large"], 0, id="even if it is less important"
        ),
        pytest.param(
            1,
            [victim("old", at=0), victim("new", at=5), victim("mid", at=3), victim("first", at=-1)],
            (),
            ["new"],
            0,
            id="of equal priorities the last started",
        ),
        pytest.param(
            1,
            [victim("kept", 0, app="db"), *FOUR_PODS[:3]],
            (budget("db"),),
            ["c"],
            0,
            id="a protected pod stays before more important ones",
        ),
        pytest.param(
            1,
            [victim("kept", 0, app="db"), *FOUR_PODS[:3]],
            (budget("db", 1),),
            ["kept"],
            0,
            id="not if the budget allows it",
        ),
        pytest.param(
            1,
            [victim("kept", 0, app="db"), *FOUR_PODS[:3]],
            (budget("db", namespace="other"),),
            ["kept"],
            0,
            id="nor by a budget of another namespace",
        ),
        pytest.param(
            1,
            [victim("kept", 0, app="db"), *FOUR_PODS[:3]],
            (budget("db", disrupted=["kept"]),),
            ["kept"],
            0,
            id="nor if its disruption is counted already",
        ),
        pytest.param(
            2,
            [victim("x", 1, app="db"), victim("y", 0, app="db"), victim("z", 0, app="db", at=1), FOUR_PODS[0]],
            (budget("db", 1),),
            ["a", "x"],
            0,
            id="the budget counts for the most important ones first",
        ),
        pytest.param(
            3,
            [victim("x", 1, app="db"), victim("y", 0, app="db"), victim("z", 9), victim("w", 8, app="db")],
            (budget("db", 1),),
            ["z", "w", "y"],
            1,
            id="budgets are violated if nothing else helps",
        ),
    ],
)
def test_as_few_pods_as_possible_are_victims(
    size: int,
    potential: Sequence[PotentialVictim],
    budgets: Sequence[DisruptionBudget],
    victims: list[str],
    pdb_violations: int,
) -> None:
    outcome = select(size, potential, *budgets)

    assert names(outcome) == victims
    assert isinstance(outcome, Candidate)
    assert outcome.pdb_violations == pdb_violations


def test_a_node_that_is_too_small_even_without_all_victims_returns_the_reasons() -> None:
    assert select(5, FOUR_PODS) == TOO_SMALL


def candidate(node: str, *victims: PotentialVictim, pdb_violations: int = 0) -> Candidate:
    return Candidate(node=node, victims=victims, pdb_violations=pdb_violations)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param(
            candidate("n", victim("a", 9)), candidate("m", victim("b", 1), pdb_violations=1), id="fewer violations"
        ),
        pytest.param(
            candidate("n", victim("a", 1), victim("b", 1)),
            candidate("m", victim("c", 2)),
            id="a lower highest priority",
        ),
        pytest.param(
            candidate("n", victim("a", 2), victim("b", 0)),
            candidate("m", victim("c", 2), victim("d", 1)),
            id="a smaller sum of priorities",
        ),
        pytest.param(
            candidate("n", victim("a", -5)), candidate("m", victim("b", -5), victim("c", -5)), id="fewer negative ones"
        ),
        pytest.param(
            candidate("n", victim("a", 2, at=5), victim("b", 0, at=-9)),
            candidate("m", victim("c", 2, at=4), victim("d", 0, at=9)),
            id="a later start of the highest",
        ),
        pytest.param(
            candidate("n", victim("a", 2, at=6), victim("b", 2, at=5)),
            candidate("m", victim("c", 2, at=4), victim("d", 2, at=9)),
            id="a later start of the first of the highest",
        ),
    ],
)
def test_the_candidate_with_the_lowest_cost_is_selected(better: Candidate, worse: Candidate) -> None:
    assert select_candidate([worse, better]) is better
    assert select_candidate([better, worse]) is better


def test_of_equal_candidates_the_first_is_selected_and_of_none_none() -> None:
    first, second = candidate("n", victim("a")), candidate("m", victim("b"))

    assert select_candidate([first, second]) is first
    assert select_candidate([]) is None


def test_a_budget_is_decoded() -> None:
    status = {
        "disruptionsAllowed": 2,
        "currentHealthy": 3,
        "desiredHealthy": 1,
        "expectedPods": 3,
        "disruptedPods": {"web-1": "2026-01-01T00:00:00Z"},
    }
    tree = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"selector": {"matchLabels": {"app": "web"}}}}

    assert new_disruption_budget(from_tree(PodDisruptionBudget, {**tree, "status": status})) == budget(
        "web", 2, disrupted=["web-1"]
    )
    assert new_disruption_budget(from_tree(PodDisruptionBudget, tree)) == budget("web", 0)


@pytest.mark.parametrize("selector", [None, {}, {"matchExpressions": [{"key": "a", "operator": "Near"}]}])
def test_a_budget_without_a_usable_selector_matches_no_pod(selector: object) -> None:
    spec = {} if selector is None else {"selector": selector}
    tree = {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}

    assert new_disruption_budget(from_tree(PodDisruptionBudget, tree)) is None


def test_a_pod_without_labels_matches_no_budget() -> None:
    absent = Selector.parse("!app")

    assert not DisruptionBudget("shop", absent, 0).matches(victim("bare").pod)
    assert DisruptionBudget("shop", absent, 0).matches(
        PodInfo(key=ObjectKey("shop", "x"), uid="x", labels={"b": "c"}, requests={})
    )
