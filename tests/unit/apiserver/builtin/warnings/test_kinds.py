"""Warnings to those who write: each object of the table is warned of as by kube-apiserver."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kubewright._base.yaml import load_all
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.defaults import apply_defaults
from kubewright.apiserver.builtin.warnings.kinds import deprecation, warnings_for

Tree = dict[str, Any]

HERE = Path(__file__).parents[1]
OBJECTS = {
    f"{obj['apiVersion']} {obj['kind']} {obj['metadata']['name']}": obj
    for obj in load_all((HERE / "warned.yaml").read_text())
}
ANSWERS: dict[str, list[str]] = json.loads((HERE / "warned.json").read_text())
QUIET = load_all((HERE / "created.yaml").read_text())
POD = GroupVersionKind("", "v1", "Pod")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


def defaulted(obj: Tree) -> tuple[GroupVersionKind, Tree]:
    gvk = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
    tree = deepcopy(obj)
    apply_defaults(gvk, tree)
    return gvk, tree


@pytest.mark.parametrize("name", OBJECTS)
def test_warnings_are_those_of_kube_apiserver(name: str) -> None:
    gvk, tree = defaulted(OBJECTS[name])
    always = [deprecation(gvk)] if deprecation(gvk) else []

    assert ANSWERS[name] == always + warnings_for(gvk, tree)


@pytest.mark.parametrize("obj", QUIET, ids=lambda obj: f"{obj['kind']} {obj['metadata']['name']}")
def test_good_objects_have_no_warnings(obj: Tree) -> None:
    gvk, tree = defaulted(obj)
    loud = ("pod-most", "builtin-volume-most")

    assert warnings_for(gvk, tree) == [] or obj["metadata"]["name"] in loud


def test_a_change_that_is_no_new_generation_is_not_warned_of() -> None:
    _, tree = defaulted(OBJECTS["apps/v1 Deployment dotted.name"])
    tree["metadata"]["generation"] = 1
    newer = {**tree, "metadata": {**tree["metadata"], "generation": 2}}

    assert warnings_for(DEPLOYMENT, tree, tree) == []
    assert "env[1]: hides previous definition" in " ".join(warnings_for(DEPLOYMENT, newer, tree))


def test_pods_are_warned_of_once() -> None:
    _, tree = defaulted(OBJECTS["v1 Pod dotted.name"])

    assert warnings_for(POD, tree, tree) == []


def test_the_old_endpoints_are_deprecated() -> None:
    assert deprecation(GroupVersionKind("", "v1", "Endpoints")).startswith("v1 Endpoints is deprecated in v1.33+")
    assert deprecation(POD) == ""
