"""Fields objects are selected by, and the words in which others are refused."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.field_selectors import field_values, selectable_fields, unsupported_fields

POD = GroupVersionKind("", "v1", "Pod")
EVENT = GroupVersionKind("", "v1", "Event")
NEW_EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")


def test_pods_are_found_by_node_and_phase() -> None:
    pod = {"spec": {"nodeName": "n", "restartPolicy": "Never"}, "status": {"phase": "Running", "podIP": "10.1.1.1"}}

    values = field_values(POD, pod)

    assert set(values) == set(selectable_fields(POD))
    assert (values["spec.nodeName"], values["status.phase"]) == ("n", "Running")
    assert values["spec.hostNetwork"] == "false"


def test_events_are_found_by_what_they_are_about_in_either_version() -> None:
    stored = {"involvedObject": {"kind": "Pod", "name": "p"}, "reason": "Started", "source": {"component": "kubelet"}}

    old, new = field_values(EVENT, stored), field_values(NEW_EVENT, stored)

    assert (old["involvedObject.name"], old["source"]) == ("p", "kubelet")
    assert new["regarding.name"] == "p"
    assert set(selectable_fields(EVENT)) <= set(old)
    assert set(selectable_fields(NEW_EVENT)) <= set(new)


@pytest.mark.parametrize(
    ("kind", "obj", "values"),
    [
        ("v1 Node", {}, {"spec.unschedulable": "false"}),
        ("v1 Node", {"spec": {"unschedulable": True}}, {"spec.unschedulable": "true"}),
        ("v1 Secret", {"type": "Opaque"}, {"type": "Opaque"}),
        ("v1 Namespace", {"status": {"phase": "Active"}}, {"status.phase": "Active"}),
        ("v1 Service", {"spec": {"type": "ClusterIP"}}, {"spec.clusterIP": "", "spec.type": "ClusterIP"}),
        ("v1 ReplicationController", {}, {"status.replicas": "0"}),
        ("batch/v1 Job", {"status": {"succeeded": 3}}, {"status.successful": "3"}),
        ("apps/v1 Deployment", {}, {}),
    ],
)
def test_values_are_text(kind: str, obj: dict[str, Any], values: dict[str, str]) -> None:
    assert values == field_values(GroupVersionKind.of(*kind.split()), obj)


@pytest.mark.parametrize(
    ("kind", "field", "words"),
    [
        ("v1 Pod", "spec.nope", "field label not supported: spec.nope"),
        ("v1 Pod", "metadata.namespace", ""),
        ("v1 Node", "metadata.namespace", "field label not supported: metadata.namespace"),
        ("batch/v1 Job", "spec.nope", 'field label "spec.nope" not supported for Job'),
        (
            "v1 ConfigMap",
            "data.a",
            '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        ("v1 ConfigMap", "metadata.name", ""),
    ],
)
def test_other_fields_have_kube_apiservers_error(kind: str, field: str, words: str) -> None:
    assert words == unsupported_fields(GroupVersionKind.of(*kind.split()), [field])
