"""The scale of a workload, read and written."""

from __future__ import annotations

from typing import Any

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.scale import has_scale, scale_of, with_scale

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
CONTROLLER = GroupVersionKind("", "v1", "ReplicationController")


def workload(**spec: Any) -> dict[str, Any]:
    metadata = {
        "name": "a",
        "namespace": "b",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 3,
        "labels": {"x": "y"},
    }
    return {"metadata": metadata, "spec": spec, "status": {"replicas": 2, "readyReplicas": 1}}


def test_scale_has_desired_and_actual_replicas() -> None:
    expressions = [{"key": "d", "operator": "NotIn", "values": ["f", "e"]}, {"key": "b", "operator": "Exists"}]
    selector = {"matchLabels": {"c": "1"}, "matchExpressions": expressions}

    scale = scale_of(DEPLOYMENT, workload(replicas=3, selector=selector))

    assert scale == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "7"},
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "b,c=1,d notin (e,f)"},
    }


def test_zero_replicas_are_left_out() -> None:
    assert scale_of(DEPLOYMENT, workload(replicas=0, selector={}))["spec"] == {}


def test_an_old_controller_selects_by_labels_alone() -> None:
    scale = scale_of(CONTROLLER, workload(replicas=1, selector={"b": "2", "a": "1"}))

    assert scale["status"]["selector"] == "a=1,b=2"


def test_writing_a_scale_changes_the_replicas_only() -> None:
    before = workload(replicas=3, paused=True)

    after = with_scale(before, {"metadata": {"resourceVersion": "5"}, "spec": {"replicas": 9}})

    assert after["spec"] == {"replicas": 9, "paused": True}
    assert after["metadata"]["resourceVersion"] == "5"
    assert before["spec"]["replicas"] == 3


def test_a_scale_without_replicas_means_zero() -> None:
    assert with_scale(workload(replicas=3), {"spec": {}})["spec"]["replicas"] == 0


def test_workloads_with_replicas_have_a_scale() -> None:
    assert has_scale(DEPLOYMENT)
    assert not has_scale(GroupVersionKind("apps", "v1", "DaemonSet"))
