"""A controller that writes in circles is noticed."""

from __future__ import annotations

from kubewright.controllers.loops import Finding, LoopDetector, Slowdown, changed_paths


def write(detector: LoopDetector, before: object, after: object, now: float) -> Finding | None:
    return detector.wrote("t", "ConfigMap shop/t", before=before, after=after, now=now, tree=lambda state: state)


def detecting() -> LoopDetector:
    return LoopDetector(lambda state: str(state).encode())


def test_writes_that_change_nothing_are_a_loop() -> None:
    detector = detecting()
    state = {"spec": {"a": 1}}

    findings = [write(detector, state, state, float(second)) for second in range(10)]

    assert findings[:7] == [None] * 7
    found = findings[8]
    assert found is not None
    assert found.shape == "empty"
    assert "without any change" in str(found)


def test_a_field_that_goes_back_and_forth_is_named() -> None:
    detector = detecting()
    ours, theirs = {"spec": {"replicas": 3, "image": "x"}}, {"spec": {"replicas": 5, "image": "x"}}

    found = None
    for second in range(20):
        found = write(detector, theirs, ours, float(second)) or found

    assert found is not None
    assert found.shape == "oscillating"
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


def test_paths_of_differences() -> None:
    before = {"a": {"b": [1, {"c": 2}], "d": 1}, "e": 1}
    after = {"a": {"b": [1, {"c": 3}], "d": 1}}

    assert changed_paths(before, after) == ["a.b[1].c", "e"]
    assert changed_paths({"a": [1]}, {"a": [1, 2]}) == ["a"]
    assert changed_paths(1, 2) == ["the object"]


def test_what_wakes_a_slowed_object_early_waits_until_its_time() -> None:
    slowdown = Slowdown()
    slowdown.hold("w", until=10.0, generation=3)

    assert slowdown.left("w", now=4.0, generation=3) == 6.0
    assert slowdown.left("x", now=4.0, generation=3) == 0.0
    assert slowdown.left("w", now=10.0, generation=3) == 0.0
    assert slowdown.left("w", now=4.0, generation=3) == 0.0, "once let go, it is not held again"


def test_an_edit_lets_a_slowed_object_go_unless_the_fight_is_about_the_object_itself() -> None:
    slowdown = Slowdown()
    slowdown.hold("child", until=10.0, generation=3)
    slowdown.hold("itself", until=10.0, generation=None)

    assert slowdown.left("child", now=4.0, generation=4) == 0.0
    assert slowdown.left("itself", now=4.0, generation=4) == 6.0
    slowdown.forget("itself")
    assert slowdown.left("itself", now=4.0, generation=4) == 0.0
