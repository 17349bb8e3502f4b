"""What counts as another revision of a set."""

from typing import Any

import pytest
from made import LOG, a_set

from sidecarset.hashes import revision_of

NATIVE = {"name": "proxy", "image": "envoy:1.31", "restartPolicy": "Always"}
BASE = revision_of(a_set().spec)


def test_another_image_changes_one_hash_and_leaves_the_other() -> None:
    changed = revision_of(a_set(containers=[{**LOG, "image": "fluent-bit:3.2"}]).spec)

    assert changed.hash != BASE.hash
    assert changed.without_image == BASE.without_image


@pytest.mark.parametrize(
    "containers",
    [
        [{**LOG, "env": [{"name": "LEVEL", "value": "debug"}]}],
        [{**LOG, "name": "logs"}],
        [{**LOG, "podInjectPolicy": "AfterAppContainer"}],
        [LOG, {"name": "more", "image": "fluent-bit:3.1"}],
    ],
)
def test_any_other_change_of_a_container_changes_both(containers: list[dict[str, object]]) -> None:
    changed = revision_of(a_set(containers=containers).spec)

    assert changed.hash != BASE.hash
    assert changed.without_image != BASE.without_image


@pytest.mark.parametrize(
    "spec",
    [
        {"selector": {"matchLabels": {"app": "other"}}},
        {"namespaceSelector": {"matchLabels": {"team": "a"}}},
        {"volumes": [{"name": "spare", "emptyDir": {}}]},
        {"updateStrategy": {"paused": True, "maxUnavailable": "20%"}},
        {"injectionStrategy": {"paused": True}},
        {"imagePullSecrets": [{"name": "registry"}]},
        {"initContainers": [{"name": "prepare", "image": "busybox:1.36"}]},
    ],
)
def test_what_does_not_run_beside_the_app_is_no_other_revision(spec: dict[str, Any]) -> None:
    # K2: a generation would call every pod out of date for any of these.
    assert revision_of(a_set(**spec).spec) == BASE


def test_an_init_container_that_never_ends_is_part_of_the_revision() -> None:
    native = revision_of(a_set(initContainers=[NATIVE]).spec)
    newer = revision_of(a_set(initContainers=[{**NATIVE, "image": "envoy:1.32"}]).spec)

    assert native.hash != BASE.hash
    assert newer.hash != native.hash
    assert newer.without_image == native.without_image


def test_what_is_said_by_default_makes_no_difference() -> None:
    explicit = {**LOG, "imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File"}

    assert revision_of(a_set(containers=[explicit]).spec) == BASE
