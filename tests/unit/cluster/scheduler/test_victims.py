"""Who has to leave a node for a more important pod, and which node suffers least."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from kubewright.api.codec import from_tree
from kubewright.api.names import ObjectKey
from kubewright.api.selectors import Selector
from kubewright.cluster.scheduler.filters import PodInfo, Residents
from kubewright.cluster.scheduler.victims import Budget, Occupant, Victims, budget_of, least_harm, sacrifice_on
from kubewright.k8s.policy.v1 import PodDisruptionBudget

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ROOM = 4
TOO_SMALL = ("Insufficient cpu",)


def occupant(name: str, priority: int = 0, *, size: int = 1, app: str = "", at: int = 0) -> Occupant:
    """A pod that started so many minutes after noon."""
    labels = {"app": app} if app else {}
    facts = PodInfo(key=ObjectKey("shop", name), uid=name, labels=labels, requests={"cpu": size}, priority=priority)
    return Occupant(facts, NOON + timedelta(minutes=at))


def budget(app: str, allowed: int = 0, *, disrupted: Sequence[str] = (), namespace: str = "shop") -> Budget:
    return Budget(namespace, Selector.of({"app": app}), allowed, frozenset(disrupted))


def chosen(size: int, occupants: Sequence[Occupant], *budgets: Budget) -> Victims | tuple[str, ...]:
    """For a pod of that size on a node with room for four."""
    residents = Residents()
    for each in occupants:
        residents.add(each.pod)
    before = dict(residents.pods)
    used = dict(residents.used)

    outcome = sacrifice_on(
        "node-1",
        residents,
        occupants,
        budgets,
        refused=lambda: TOO_SMALL if residents.used["cpu"] + size > ROOM else (),
    )

    assert residents.pods == before, "a look changes nothing"
    assert residents.used == used
    return outcome


def names(outcome: Victims | tuple[str, ...]) -> list[str]:
    assert isinstance(outcome, Victims)
    return [victim.pod.uid for victim in outcome.victims]


FOUR = [occupant("a", 3), occupant("b", 2), occupant("c", 1), occupant("d", 0)]


@pytest.mark.parametrize(
    ("size", "occupants", "budgets", "victims", "violations"),
    [
        pytest.param(1, FOUR, (), ["d"], 0, id="the least important one leaves"),
        pytest.param(2, FOUR, (), ["c", "d"], 0, id="as many as needed leave, the more important first"),
        pytest.param(4, FOUR, (), ["a", "b", "c", "d"], 0, id="all leave if need be"),
        pytest.param(
            2, [occupant("small", 5), occupant("large", 1, size=3)], (), ["large"], 0, id="who is not in the way stays"
        ),
        pytest.param(
            3, [occupant("large", 5, size=3), occupant("small", 1)], (), ["large"], 0, id="even if he is less important"
        ),
        pytest.param(
            1,
            [occupant("old", at=0), occupant("new", at=5), occupant("mid", at=3), occupant("first", at=-1)],
            (),
            ["new"],
            0,
            id="of equals the youngest leaves",
        ),
        pytest.param(
            1,
            [occupant("kept", 0, app="db"), *FOUR[:3]],
            (budget("db"),),
            ["c"],
            0,
            id="a protected pod stays before more important ones",
        ),
        pytest.param(
            1,
            [occupant("kept", 0, app="db"), *FOUR[:3]],
            (budget("db", 1),),
            ["kept"],
            0,
            id="not if the budget allows it",
        ),
        pytest.param(
            1,
            [occupant("kept", 0, app="db"), *FOUR[:3]],
            (budget("db", namespace="other"),),
            ["kept"],
            0,
            id="nor by a budget of another namespace",
        ),
        pytest.param(
            1,
            [occupant("kept", 0, app="db"), *FOUR[:3]],
            (budget("db", disrupted=["kept"]),),
            ["kept"],
            0,
            id="nor if its disruption is counted already",
        ),
        pytest.param(
            2,
            [occupant("x", 1, app="db"), occupant("y", 0, app="db"), occupant("z", 0, app="db", at=1), FOUR[0]],
            (budget("db", 1),),
            ["a", "x"],
            0,
            id="the budget counts for the most important ones first",
        ),
        pytest.param(
            3,
            [occupant("x", 1, app="db"), occupant("y", 0, app="db"), occupant("z", 9), occupant("w", 8, app="db")],
            (budget("db", 1),),
            ["z", "w", "y"],
            1,
            id="budgets are violated if nothing else helps",
        ),
    ],
)
def test_as_few_as_possible_leave(
    size: int, occupants: Sequence[Occupant], budgets: Sequence[Budget], victims: list[str], violations: int
) -> None:
    outcome = chosen(size, occupants, *budgets)

    assert names(outcome) == victims
    assert isinstance(outcome, Victims)
    assert outcome.violations == violations


def test_a_node_that_is_too_small_even_without_them_says_so() -> None:
    assert chosen(5, FOUR) == TOO_SMALL


def on(node: str, *victims: Occupant, violations: int = 0) -> Victims:
    return Victims(node=node, victims=victims, violations=violations)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param(on("n", occupant("a", 9)), on("m", occupant("b", 1), violations=1), id="fewer violations"),
        pytest.param(
            on("n", occupant("a", 1), occupant("b", 1)), on("m", occupant("c", 2)), id="a lower highest priority"
        ),
        pytest.param(
            on("n", occupant("a", 2), occupant("b", 0)),
            on("m", occupant("c", 2), occupant("d", 1)),
            id="a smaller sum of priorities",
        ),
        pytest.param(
            on("n", occupant("a", -5)), on("m", occupant("b", -5), occupant("c", -5)), id="fewer negative ones"
        ),
        pytest.param(
            on("n", occupant("a", 2, at=5), occupant("b", 0, at=-9)),
            on("m", occupant("c", 2, at=4), occupant("d", 0, at=9)),
            id="a later start of the highest",
        ),
        pytest.param(
            on("n", occupant("a", 2, at=6), occupant("b", 2, at=5)),
            on("m", occupant("c", 2, at=4), occupant("d", 2, at=9)),
            id="a later start of the eldest of the highest",
        ),
    ],
)
def test_the_node_that_suffers_least_is_taken(better: Victims, worse: Victims) -> None:
    assert least_harm([worse, better]) is better
    assert least_harm([better, worse]) is better


def test_of_equal_nodes_the_first_is_taken_and_of_none_none() -> None:
    first, second = on("n", occupant("a")), on("m", occupant("b"))

    assert least_harm([first, second]) is first
    assert least_harm([]) is None


def test_a_budget_is_what_the_object_says() -> None:
    status = {
        "disruptionsAllowed": 2,
        "currentHealthy": 3,
        "desiredHealthy": 1,
        "expectedPods": 3,
        "disruptedPods": {"web-1": "2026-01-01T00:00:00Z"},
    }
    tree = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"selector": {"matchLabels": {"app": "web"}}}}

    assert budget_of(from_tree(PodDisruptionBudget, {**tree, "status": status})) == budget(
        "web", 2, disrupted=["web-1"]
    )
    assert budget_of(from_tree(PodDisruptionBudget, tree)) == budget("web", 0)


@pytest.mark.parametrize("selector", [None, {}, {"matchExpressions": [{"key": "a", "operator": "Near"}]}])
def test_a_budget_without_a_usable_selector_protects_nobody(selector: object) -> None:
    spec = {} if selector is None else {"selector": selector}
    tree = {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}

    assert budget_of(from_tree(PodDisruptionBudget, tree)) is None


def test_a_pod_without_labels_is_protected_by_no_budget() -> None:
    absent = Selector.parse("!app")

    assert not Budget("shop", absent, 0).chooses(occupant("bare").pod)
    assert Budget("shop", absent, 0).chooses(
        PodInfo(key=ObjectKey("shop", "x"), uid="x", labels={"b": "c"}, requests={})
    )
