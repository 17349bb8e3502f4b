"""A controller that writes in a loop is noticed."""

from __future__ import annotations

import pytest

from kubewright.controllers import write_loops as loops
from kubewright.controllers.write_loops import LoopDetector, Slowdown, WriteLoop, changed_paths


def write(detector: LoopDetector, before: object, after: object, now: float) -> WriteLoop | None:
    return detector.record_write("t", "ConfigMap shop/t", before=before, after=after, now=now, tree=lambda state: state)


def detecting() -> LoopDetector:
    return LoopDetector(lambda state: str(state).encode())


def test_writes_that_change_nothing_are_a_loop() -> None:
    detector = detecting()
    state = {"spec": {"a": 1}}

    findings = [write(detector, state, state, float(second)) for second in range(10)]

    assert findings[:7] == [None] * 7
    found = findings[8]
    assert found is not None
    assert found.pattern == "empty"
    assert "without any change" in str(found)


def test_a_field_that_goes_back_and_forth_is_named() -> None:
    detector = detecting()
    ours, theirs = {"spec": {"replicas": 3, "image": "x"}}, {"spec": {"replicas": 5, "image": "x"}}

    found = None
    for second in range(20):
        found = write(detector, theirs, ours, float(second)) or found

    assert found is not None
    assert found.pattern == "oscillating"
    assert found.paths == ("spec.replicas",)


def test_the_wait_grows_and_is_bounded() -> None:
    detector = detecting()
    state = {"a": 1}

    waits = [found.wait for second in range(40) if (found := write(detector, state, state, float(second)))]

    assert waits[:3] == [2.0, 4.0, 8.0]
    assert max(waits) == 300.0


def test_progress_is_no_loop() -> None:
    detector = detecting()

    assert [write(detector, {"n": n - 1}, {"n": n}, float(n)) for n in range(100)] == [None] * 100


def test_progress_ends_a_loop_and_the_next_one_starts_with_a_short_wait() -> None:
    detector = detecting()
    first, second = {"a": 1}, {"a": 2}
    in_circles = [write(detector, first, first, float(now)) for now in range(10)]

    assert write(detector, first, second, 10.0) is None
    again = [write(detector, second, second, float(now)) for now in range(11, 19)]

    assert [found.wait for found in in_circles if found] == [2.0, 4.0, 8.0]
    assert [found.wait for found in again if found] == [2.0]


def test_what_was_not_written_for_long_is_forgotten_when_there_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_MAX_OBJECTS", 2)
    detector = detecting()

    def write(target: str) -> WriteLoop | None:
        return detector.record_write(target, target, before="same", after="same", now=0.0, tree=str)

    for _ in range(7):
        assert (write("old"), write("kept")) == (None, None)
    write("new")

    assert write("kept") is not None
    assert write("old") is None


def test_only_so_many_deleted_objects_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_MAX_DELETED", 2)
    detector = detecting()

    def remade(target: str) -> WriteLoop | None:
        found = detector.record_creation(target, target, now=0.0)
        detector.record_deletion(target)
        return found

    for _ in range(8):
        assert (remade("old"), remade("kept")) == (None, None)
    remade("new")

    assert remade("kept") is not None
    assert remade("old") is None


def test_slow_repetition_is_no_loop() -> None:
    detector = detecting()
    state = {"a": 1}

    assert [write(detector, state, state, 30.0 * step) for step in range(50)] == [None] * 50


def test_forgotten_object_starts_over() -> None:
    detector = detecting()
    state = {"a": 1}
    for second in range(7):
        write(detector, state, state, float(second))

    detector.forget("t")

    assert write(detector, state, state, 8.0) is None


def make(detector: LoopDetector, now: float, *, owner: str = "o") -> WriteLoop | None:
    """Another one each time, as the server's uid and time of creation tell."""
    return detector.record_write(
        "t", "ConfigMap shop/t", before=None, after={"uid": now}, now=now, tree=lambda state: state, owner=owner
    )


def test_an_object_that_somebody_keeps_deleting_is_a_loop() -> None:
    detector = detecting()
    detector.record_deletion("t")  # one of somebody else's

    findings = []
    for second in range(11):
        findings.append(make(detector, float(second)))
        detector.record_deletion("t")

    assert findings[:8] == [None] * 8, "the first is no repetition"
    assert [found.wait for found in findings[8:] if found] == [2.0, 4.0, 8.0]
    assert findings[8] is not None
    assert findings[8].pattern == "deleted"
    assert str(findings[8]) == "ConfigMap shop/t was made anew 8 times within a minute; somebody keeps deleting it"


def test_an_object_that_is_only_made_is_followed_as_well() -> None:
    detector = detecting()

    found = None
    for second in range(9):
        found = detector.record_creation("t", "Pod shop/t", now=float(second), owner="o")
        detector.record_deletion("t")

    assert found is not None
    assert found.pattern == "deleted"


def test_what_the_controller_deletes_itself_it_may_make_again() -> None:
    detector = detecting()

    findings = []
    for second in range(20):
        findings.append(make(detector, float(second)))
        detector.forget("t")  # and then the deletion is seen
        detector.record_deletion("t")

    assert findings == [None] * 20


def test_what_is_made_now_and_then_or_for_another_owner_is_no_loop() -> None:
    detector = detecting()

    for step in range(20):
        assert make(detector, 30.0 * step) is None
        detector.record_deletion("t")
        assert make(detector, 1000.0, owner=str(step)) is None
        detector.record_deletion("t")


def test_paths_of_differences() -> None:
    before = {"a": {"b": [1, {"c": 2}], "d": 1}, "e": 1}
    after = {"a": {"b": [1, {"c": 3}], "d": 1}}

    assert changed_paths(before, after) == ["a.b[1].c", "e"]
    assert changed_paths({"a": [1]}, {"a": [1, 2]}) == ["a"]
    assert changed_paths({"a": {"b": 1}, "c": [1]}, {"a": None, "c": {"0": 1}}) == ["a", "c"]
    assert changed_paths(1, 2) == ["the object"]


def test_a_held_key_waits_whatever_enqueues_it_earlier() -> None:
    slowdown = Slowdown()
    slowdown.hold("w", until=10.0, generation=3)

    assert slowdown.remaining("w", now=4.0, generation=3) == 6.0
    assert slowdown.remaining("x", now=4.0, generation=3) == 0.0
    assert slowdown.remaining("w", now=10.0, generation=3) == 0.0
    assert slowdown.remaining("w", now=4.0, generation=3) == 0.0, "once let go, it is not held again"


def test_an_edit_lets_a_slowed_object_go_unless_the_fight_is_about_the_object_itself() -> None:
    slowdown = Slowdown()
    slowdown.hold("child", until=10.0, generation=3)
    slowdown.hold("itself", until=10.0, generation=None)

    assert slowdown.remaining("child", now=4.0, generation=4) == 0.0
    assert slowdown.remaining("itself", now=4.0, generation=4) == 6.0
    slowdown.forget("itself")
    assert slowdown.remaining("itself", now=4.0, generation=4) == 0.0
