"""One object in two versions: both as kube-apiserver shows them."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kubewright.api.kinds import GroupKind, GroupVersionKind
from kubewright.apiserver.builtin.conversion import convert, storage_version

Tree = dict[str, Any]

ANSWERS: dict[str, Tree] = json.loads((Path(__file__).parent / "converted.json").read_text())
V1 = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
V2 = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
CORE = GroupVersionKind("", "v1", "Event")
NEW = GroupVersionKind("events.k8s.io", "v1", "Event")


@pytest.mark.parametrize(("source", "target"), [(V2, V1), (CORE, NEW), (NEW, CORE)])
def test_object_converts_as_in_kube_apiserver(source: GroupVersionKind, target: GroupVersionKind) -> None:
    given = ANSWERS[str(source)]
    untouched = deepcopy(given)

    assert ANSWERS[str(target)] == convert(given, target)
    assert untouched == given


def test_an_autoscaler_round_trips_with_the_cpu_last() -> None:
    back = convert(convert(ANSWERS[str(V2)], V1), V2)

    metrics = [metric["type"] for metric in back["spec"]["metrics"]]
    assert metrics == ["Pods", "External", "Object", "Object", "Resource", "ContainerResource", "Resource"]
    assert back["spec"]["behavior"] == ANSWERS[str(V2)]["spec"]["behavior"]
    assert back["status"] == ANSWERS[str(V2)]["status"]
    assert back["metadata"] == ANSWERS[str(V2)]["metadata"]


def test_an_old_autoscaler_without_target_aims_at_eighty_per_cent() -> None:
    old = {"apiVersion": "autoscaling/v1", "kind": V1.kind, "metadata": {"name": "a"}, "spec": {"maxReplicas": 3}}

    new = convert(old, V2)

    assert new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 80
    assert convert(new, V1)["spec"]["targetCPUUtilizationPercentage"] == 80


def test_annotations_that_do_not_decode_are_ignored() -> None:
    annotations = {"autoscaling.alpha.kubernetes.io/metrics": "{", "autoscaling.alpha.kubernetes.io/behavior": "[]"}
    old = {"apiVersion": "autoscaling/v1", "kind": V1.kind, "metadata": {"name": "a", "annotations": annotations}}

    new = convert(old, V2)

    assert len(new["spec"]["metrics"]) == 1
    assert "behavior" not in new["spec"]
    assert "annotations" not in new["metadata"]


def test_the_same_version_is_the_same_object() -> None:
    given = ANSWERS[str(V2)]

    assert convert(given, V2) is given


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("Pod", "v1"),
        ("Event.events.k8s.io", "v1"),
        ("Event", "v1"),
        ("HorizontalPodAutoscaler.autoscaling", "autoscaling/v2"),
        ("Deployment.apps", "apps/v1"),
        ("ResourceClaim.resource.k8s.io", "resource.k8s.io/v1"),
        ("Lease.coordination.k8s.io", "coordination.k8s.io/v1"),
    ],
)
def test_objects_are_stored_in_one_version(kind: str, version: str) -> None:
    assert version == storage_version(GroupKind.parse(kind))
