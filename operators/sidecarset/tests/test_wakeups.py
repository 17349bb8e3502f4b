"""Which sets look again when something changes."""

from typing import Any

import pytest
from kubewright import ObjectKey
from kubewright.api import from_tree
from kubewright.cache import change_of
from kubewright.k8s.core.v1 import Namespace, Pod
from made import a_pod, a_set, injected, running

from sidecarset.records import HASH, INJECTED_LIST
from sidecarset.wakeups import Wakeups, pod_matters


@pytest.fixture
def wakeups() -> Wakeups:
    """Sets a and b for labels, c for labels in some namespaces."""
    known = Wakeups()
    for name, label in (("a", "web"), ("b", "db")):
        assert list(known.note(change_of(new=a_set(name, selector={"matchLabels": {"app": label}})))) == []
    team = {"matchLabels": {"team": "x"}}
    known.note(change_of(new=a_set("c", selector={"matchLabels": {"app": "job"}}, namespaceSelector=team)))
    return known


def pod(app: str, **annotations: str) -> Pod:
    return a_pod(metadata={"labels": {"app": app}, "annotations": annotations})


def woken(found: Any) -> list[str]:
    assert all(isinstance(key, ObjectKey) for key in found)
    return sorted(key.name for key in found)


def test_a_pod_wakes_the_sets_that_select_it(wakeups: Wakeups) -> None:
    assert woken(wakeups.by_pod(change_of(new=pod("web")))) == ["a"]
    assert woken(wakeups.by_pod(change_of(old=pod("web")))) == ["a"]
    assert woken(wakeups.by_pod(change_of(new=pod("other")))) == []


def test_a_pod_that_changes_its_label_wakes_the_old_and_the_new_set(wakeups: Wakeups) -> None:
    # K4: both, whatever else has changed.
    assert woken(wakeups.by_pod(change_of(old=pod("web"), new=running(pod("db"))))) == ["a", "b"]


def test_a_pod_wakes_the_sets_that_injected_it_though_they_select_it_no_more(wakeups: Wakeups) -> None:
    assert woken(wakeups.by_pod(change_of(new=pod("other", **{INJECTED_LIST: "a,gone"})))) == ["a", "gone"]


def test_selectors_follow_the_sets(wakeups: Wakeups) -> None:
    wakeups.note(change_of(old=a_set("b"), new=a_set("b")))
    wakeups.note(change_of(old=a_set("a")))

    assert woken(wakeups.by_pod(change_of(new=pod("web")))) == ["b"]


def test_a_set_with_a_broken_selector_is_woken_by_no_pod(wakeups: Wakeups) -> None:
    # K7: and it disturbs nobody.
    wakeups.note(change_of(new=a_set("bad", selector={"matchExpressions": [{"key": "a", "operator": "Like"}]})))

    assert woken(wakeups.by_pod(change_of(new=pod("web")))) == ["a"]


def namespace(**labels: str) -> Namespace:
    tree = {"name": "shop", "labels": {key.replace("__", "/"): value for key, value in labels.items()}}
    return from_tree(Namespace, {"metadata": tree})


def test_a_namespace_wakes_the_sets_that_ask_for_its_labels(wakeups: Wakeups) -> None:
    assert woken(list(wakeups.by_namespace(change_of(old=namespace(), new=namespace(team="x"))))) == ["c"]


def test_a_namespace_that_is_closed_or_opened_wakes_everybody(wakeups: Wakeups) -> None:
    closed = namespace(**{"apps.unisound.io__injection": "disabled"})

    assert woken(list(wakeups.by_namespace(change_of(old=namespace(), new=closed)))) == ["a", "b", "c"]


BASE = running(injected(pod("web"), a_set()))


def changed(**how: Any) -> Pod:
    other = running(BASE, ready=how.get("ready", True), **how.get("ids", {}))
    other.metadata.labels = {**BASE.metadata.labels, **how.get("labels", {})}
    other.metadata.annotations = {**BASE.metadata.annotations, **how.get("annotations", {})}
    other.metadata.deletion_timestamp = how.get("deletion_timestamp")
    other.status.phase = how.get("phase", "Running")
    return other


@pytest.mark.parametrize(
    "how",
    [
        {"ready": False},
        {"labels": {"more": "labels"}},
        {"annotations": {HASH: "{}"}},
        {"phase": "Failed"},
        {"ids": {"log": "another"}},
    ],
)
def test_changes_that_can_alter_a_count_matter(how: dict[str, Any]) -> None:
    assert pod_matters(change_of(old=BASE, new=changed(**how)))


def test_pods_that_come_or_go_matter() -> None:
    assert pod_matters(change_of(new=BASE))
    assert pod_matters(change_of(old=BASE))


def test_other_changes_do_not() -> None:
    assert not pod_matters(change_of(old=BASE, new=changed(annotations={"somebody.else/note": "x"})))
    assert not pod_matters(change_of(old=BASE, new=BASE, resync=True))


def test_equal_deletion_timestamps_are_no_change() -> None:
    # K5: values are compared, not whether it is the same object.
    from datetime import UTC, datetime

    first, second = (changed(deletion_timestamp=datetime(2030, 1, 1, tzinfo=UTC)) for _ in range(2))

    assert not pod_matters(change_of(old=first, new=second))
    assert pod_matters(change_of(old=BASE, new=first))
