"""Which pods a set is about."""

from typing import Any

import pytest
from kubewright.api import from_tree
from kubewright.k8s.core.v1 import Namespace
from made import a_pod, a_set

from sidecarset.selection import Selection, is_open, takes_part


def namespace(**labels: str) -> Namespace:
    return from_tree(Namespace, {"metadata": {"name": "shop", "labels": labels}})


def test_pods_are_selected_by_their_labels_in_every_namespace() -> None:
    selection = Selection.of(a_set().spec)

    assert selection.covers({"app": "web"}, namespace())
    assert selection.covers({"app": "web"}, None)
    assert not selection.covers({"app": "db"}, namespace())


def test_or_only_in_some() -> None:
    selection = Selection.of(a_set(namespaceSelector={"matchLabels": {"team": "x"}}).spec)

    assert selection.covers({"app": "web"}, namespace(team="x"))
    assert not selection.covers({"app": "web"}, namespace(team="y"))
    assert not selection.covers({"app": "web"}, None)


def test_an_empty_selector_selects_nothing() -> None:
    assert not Selection.of(a_set(selector={}).spec).covers({}, namespace())


@pytest.mark.parametrize(
    ("annotations", "taken"),
    [
        ({}, True),
        ({"apps.unisound.io/inject": "true"}, True),
        ({"apps.unisound.io/inject": "false"}, False),
        ({"kubernetes.io/config.mirror": "abc"}, False),
    ],
)
def test_mirror_pods_and_those_that_say_no_take_no_part(annotations: dict[str, Any], taken: bool) -> None:
    assert takes_part(a_pod(metadata={"annotations": annotations})) is taken


def test_some_namespaces_are_closed() -> None:
    assert is_open("shop", namespace())
    assert is_open("shop", None)
    assert not is_open(
        "shop", from_tree(Namespace, {"metadata": {"labels": {"apps.unisound.io/injection": "disabled"}}})
    )
    assert not is_open("kube-system", namespace())
