"""Which pods go first when a set shrinks."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubewright import ObjectMeta
from kubewright.k8s.core.v1 import ContainerStatus, Pod, PodCondition, PodSpec, PodStatus

from podset.pods import is_ready
from podset.ranking import DELETION_COST, deletion_cost, deletion_order, rank

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def pod(
    name: str = "a",
    *,
    node: str | None = "node-1",
    phase: str | None = "Running",
    ready: bool = True,
    cost: str | None = None,
    ready_for: int | None = 60,
    restarts: int = 0,
    age: int = 120,
) -> Pod:
    """A pod; times are in minutes before noon."""
    since = None if ready_for is None else NOON - timedelta(minutes=ready_for)
    state = PodCondition(type="Ready", status=str(ready), last_transition_time=since)
    restarted = ContainerStatus(name="c", image="i", image_id="", ready=ready, restart_count=restarts)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            uid=name,
            creation_timestamp=NOON - timedelta(minutes=age),
            annotations={} if cost is None else {DELETION_COST: cost},
        ),
        spec=PodSpec(containers=[], node_name=node),
        status=PodStatus(phase=phase, conditions=[state], container_statuses=[restarted]),
    )


@pytest.mark.parametrize(
    ("sooner", "later"),
    [
        pytest.param({"node": None, "cost": "9"}, {"phase": "Pending"}, id="not scheduled before scheduled"),
        pytest.param({"phase": "Pending", "cost": "9"}, {"phase": "Unknown"}, id="pending before unknown"),
        pytest.param({"phase": None, "cost": "9"}, {"phase": "Unknown"}, id="no phase counts as pending"),
        pytest.param({"phase": "Unknown", "cost": "9"}, {"phase": "Running"}, id="unknown before running"),
        pytest.param({"ready": False, "cost": "9"}, {"ready": True}, id="not ready before ready"),
        pytest.param({"cost": "-1", "ready_for": 90}, {}, id="lower cost first"),
        pytest.param({}, {"cost": "1", "restarts": 9}, id="no cost is a cost of zero"),
        pytest.param({"cost": "much"}, {"cost": "1"}, id="an unreadable cost is a cost of zero"),
        pytest.param({"ready_for": 5}, {"ready_for": 6, "restarts": 9}, id="ready for a shorter time first"),
        pytest.param({"ready_for": None}, {"ready_for": 1}, id="ready since nobody knows when first"),
        pytest.param({"restarts": 2, "age": 200}, {"restarts": 1}, id="more restarts first"),
        pytest.param({"age": 100}, {"age": 101}, id="newer first"),
    ],
)
def test_the_first_rule_that_differs_decides(sooner: dict[str, Any], later: dict[str, Any]) -> None:
    # The names speak for the other order, so they are not what decides.
    first, second = pod("z", **sooner), pod("a", **later)

    assert deletion_order([first, second]) == [first, second]
    assert deletion_order([second, first]) == [first, second]


def test_the_crowded_node_gives_first() -> None:
    crowded = [pod(name, node="crowded", restarts=0) for name in ("y", "z")]
    lonely = pod("a", node="lonely", restarts=9)

    assert deletion_order([lonely, *crowded])[-1] == lonely


def test_only_ready_siblings_make_a_node_crowded() -> None:
    waiting = [pod(name, node="first", ready=False) for name in ("x", "y")]
    crowd = [pod("a", node="first"), pod("b", node="second", restarts=1)]

    assert deletion_order([*waiting, *crowd])[2:] == [crowd[1], crowd[0]]


def test_equal_pods_go_by_name() -> None:
    assert [one.metadata.name for one in deletion_order([pod("c"), pod("a"), pod("b")])] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "cost"),
    [("7", 7), ("-7", -7), ("0", 0), ("+7", 0), ("07", 0), ("1e3", 0), (" 7", 0), (str(2**31), 0), ("9" * 5000, 0)],
)
def test_a_cost_is_read_as_kubernetes_reads_it(text: str, cost: int) -> None:
    assert deletion_cost(pod(cost=text)) == cost


minutes = st.none() | st.integers(0, 3)
any_pod = st.builds(
    pod,
    name=st.text("abc", min_size=1, max_size=4),
    node=st.sampled_from((None, "node-1", "node-2")),
    phase=st.sampled_from((None, "Pending", "Unknown", "Running")),
    ready=st.booleans(),
    cost=st.sampled_from((None, "", "1", "-1", "many")),
    ready_for=minutes,
    restarts=st.integers(0, 2),
    age=st.integers(0, 3),
)
any_pods = st.lists(any_pod, max_size=6, unique_by=lambda one: one.metadata.name)


@given(any_pods)
def test_any_two_pods_of_a_set_have_an_order(pods: list[Pod]) -> None:
    crowd = Counter(one.spec.node_name for one in pods if is_ready(one))

    assert len({rank(one, crowd) for one in pods}) == len(pods)


@given(any_pods, st.randoms())
def test_the_order_does_not_depend_on_how_the_pods_were_listed(pods: list[Pod], random: Any) -> None:
    shuffled = list(pods)
    random.shuffle(shuffled)

    assert deletion_order(shuffled) == deletion_order(pods)
