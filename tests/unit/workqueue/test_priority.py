"""Higher priorities go first, equals in order of arrival, and nobody waits for ever."""

from __future__ import annotations

import pytest

from kubewright.errors import ConfigError
from kubewright.workqueue.item import QueueEntry
from kubewright.workqueue.priority import PriorityOrder


def push(order: PriorityOrder[str], key: str, priority: int = 0, at: float = 0.0) -> QueueEntry[str]:
    entry = QueueEntry(key, priority, None, at)
    order.push(entry)
    return entry


def pop_all(order: PriorityOrder[str], now: float = 0.0) -> list[str]:
    return [order.pop(now).key for _ in range(order.size)]


def test_equals_leave_in_the_order_they_came() -> None:
    order = PriorityOrder[str]()
    for key in "cab":
        push(order, key)

    assert pop_all(order) == ["c", "a", "b"]


def test_a_higher_priority_leaves_first() -> None:
    order = PriorityOrder[str]()
    push(order, "resync", -100)
    push(order, "edit", 0)
    push(order, "urgent", 50)

    assert pop_all(order) == ["urgent", "edit", "resync"]


def test_a_promoted_key_goes_behind_those_of_its_new_priority() -> None:
    order = PriorityOrder[str]()
    moved = push(order, "moved", -100)
    push(order, "stays", -100)
    push(order, "edit", 0)

    order.promote(moved, 0)

    assert order.depths() == {0: 2, -100: 1}
    assert pop_all(order) == ["edit", "moved", "stays"]


def test_the_last_key_of_a_priority_can_be_promoted() -> None:
    order = PriorityOrder[str]()
    only = push(order, "only", -100)

    order.promote(only, 7)

    assert order.depths() == {7: 1}
    assert order.size == 1
    assert order.pop(0.0).priority == 7


def test_while_nobody_has_aged_the_lower_priority_waits() -> None:
    order = PriorityOrder[str](ageing=10.0)
    push(order, "old", -100, at=0.0)
    for i in range(20):
        push(order, f"edit{i}", 0, at=9.0)

    assert [order.pop(9.0).key for _ in range(20)] == [f"edit{i}" for i in range(20)]


def test_an_aged_key_gets_a_turn_before_fresh_ones_of_higher_priority() -> None:
    order = PriorityOrder[str](ageing=10.0, aged_every=4)
    push(order, "old", -100, at=0.0)
    for i in range(20):
        push(order, f"edit{i}", 0, at=11.0)

    assert pop_all(order, now=11.0)[:5] == ["edit0", "edit1", "edit2", "old", "edit3"]


def test_an_aged_backlog_takes_only_its_share_from_fresh_edits() -> None:
    order = PriorityOrder[str](ageing=10.0, aged_every=4)
    for i in range(100):
        push(order, f"old{i}", -100, at=0.0)
    for i in range(9):
        push(order, f"edit{i}", 0, at=1000.0)

    first_twelve = [order.pop(1000.0).key for _ in range(12)]

    assert [key for key in first_twelve if key.startswith("edit")] == [f"edit{i}" for i in range(9)]
    assert [key for key in first_twelve if key.startswith("old")] == ["old0", "old1", "old2"]


def test_emptied_priorities_leave_nothing_behind() -> None:
    order = PriorityOrder[str]()
    for priority in range(1000):
        push(order, "a", priority)
        push(order, "b", priority + 1)
        pop_all(order)

    push(order, "last", 5)

    assert order.depths() == {5: 1}
    assert len(order._levels) == len(order._by_priority) == 1


@pytest.mark.parametrize(("ageing", "aged_every"), [(0.0, 4), (-1.0, 4), (10.0, 0)])
def test_settings_that_would_starve_are_refused(ageing: float, aged_every: int) -> None:
    with pytest.raises(ConfigError, match="starve"):
        PriorityOrder[str](ageing=ageing, aged_every=aged_every)
