"""Which part of an object an endpoint may write: each change of the table ends as in kube-apiserver."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.builders.admission import Admission

from kubewright._base.yaml import load_all
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.patches import apply_merge_patch
from kubewright.apiserver.builtin.defaults import apply_defaults
from kubewright.apiserver.builtin.preparation.strategies import (
    allows_create_on_update,
    allows_unconditional_update,
    default_propagation,
    deletes_gracefully,
    grace_period,
    is_namespaced,
    prepare_for_create,
    prepare_for_update,
)
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.k8s import documents

Tree = dict[str, Any]

HERE = Path(__file__).parents[1]
CASES = {case["name"]: case for case in load_all((HERE / "updated.yaml").read_text())}
ANSWERS: dict[str, dict[str, Tree]] = json.loads((HERE / "updated.json").read_text())

POD = GroupVersionKind("", "v1", "Pod")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
REQUEST = GroupVersionKind("certificates.k8s.io", "v1", "CertificateSigningRequest")


def newest_time(tree: Tree) -> str:
    return max(re.findall(r"20[0-9]{2}-[0-9-]{5}T[0-9:]{8}Z", json.dumps(tree)), default="")


@pytest.mark.parametrize("name", CASES)
def test_change_ends_as_in_kube_apiserver(name: str) -> None:
    case, before, after = CASES[name], ANSWERS[name]["before"], ANSWERS[name]["after"]
    gvk = GroupVersionKind.of(before["apiVersion"], before["kind"])
    subresource = case.get("subresource", "")
    untouched = deepcopy(before)

    tree = deepcopy(apply_merge_patch(before, case["patch"]))
    apply_defaults(gvk, tree)
    Admission().mutate(gvk, tree, old=before, subresource=subresource)
    if gvk.kind == "Service" and not subresource:
        allocator = ServiceAllocator()
        allocator.rebuild([before])
        allocator.assign(tree, before).keep()
    prepare_for_update(gvk, tree, before, subresource=subresource, now=newest_time(after))

    assert after == tree
    assert untouched == before


def test_scope_is_that_of_discovery() -> None:
    for group in documents.discovery():
        for version in group["versions"]:
            for resource in version["resources"]:
                kind = resource["responseKind"]["kind"]
                gvk = GroupVersionKind(group["metadata"].get("name", ""), version["version"], kind)
                assert (resource["scope"] == "Namespaced") == is_namespaced(gvk), gvk


@pytest.mark.parametrize(
    ("kind", "creates", "unconditional"),
    [
        ("v1 ConfigMap", False, True),
        ("v1 Service", True, True),
        ("v1 Endpoints", True, True),
        ("v1 Event", True, True),
        ("rbac.authorization.k8s.io/v1 ClusterRole", True, True),
        ("coordination.k8s.io/v1 Lease", True, False),
        ("policy/v1 PodDisruptionBudget", False, False),
        ("storage.k8s.io/v1 StorageClass", False, True),
        ("admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration", False, False),
    ],
)
def test_what_a_put_may_do_depends_on_the_kind(kind: str, creates: bool, unconditional: bool) -> None:
    gvk = GroupVersionKind.of(*kind.split())

    assert (creates, unconditional) == (allows_create_on_update(gvk), allows_unconditional_update(gvk))


@pytest.mark.parametrize(
    ("spec", "phase", "asked", "period"),
    [
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", 5, 5),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", 0, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", -5, 1),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Succeeded", None, 0),
        ({"terminationGracePeriodSeconds": 30}, "Pending", None, 0),
    ],
)
def test_only_scheduled_pods_have_a_grace_period(spec: Tree, phase: str, asked: int | None, period: int) -> None:
    assert period == grace_period(POD, {"spec": spec, "status": {"phase": phase}}, requested=asked)
    assert grace_period(DEPLOYMENT, {}, requested=asked) == 0
    assert deletes_gracefully(POD)
    assert not deletes_gracefully(DEPLOYMENT)


def test_jobs_orphan_their_pods_by_default() -> None:
    assert default_propagation(GroupVersionKind("batch", "v1", "Job")) == "Orphan"
    assert default_propagation(DEPLOYMENT) == "Background"


def test_the_user_of_a_signing_request_is_that_of_the_request() -> None:
    request: Tree = {"metadata": {"name": "a"}, "spec": {"username": "liar", "extra": {"a": ["b"]}}, "status": {"x": 1}}

    prepare_for_create(REQUEST, request, user={"username": "jo", "groups": ["g"]})

    assert request["spec"]["username"] == "jo"
    assert request["spec"]["groups"] == ["g"]
    assert "extra" not in request["spec"]
    assert request["status"] == {}


def test_a_signer_cannot_change_an_approval() -> None:
    approved = {"type": "Approved", "status": "True", "reason": "ok", "lastUpdateTime": "t", "lastTransitionTime": "t"}
    old = {"metadata": {"name": "a"}, "spec": {}, "status": {"conditions": [approved]}}
    changed = {**approved, "reason": "forged"}
    new = {"metadata": {"name": "a"}, "spec": {}, "status": {"conditions": [changed], "certificate": "eA=="}}

    prepare_for_update(REQUEST, new, old, subresource="status")

    assert new["status"] == {"conditions": [approved], "certificate": "eA=="}


def test_a_stored_field_of_a_disabled_feature_stays() -> None:
    gvk = GroupVersionKind("coordination.k8s.io", "v1", "Lease")
    old = {"metadata": {"name": "a"}, "spec": {"strategy": "OldestEmulationVersion"}}
    kept, dropped = deepcopy(old), deepcopy(old)

    prepare_for_update(gvk, kept, old)
    prepare_for_update(gvk, dropped, {"metadata": {"name": "a"}, "spec": {}})

    assert kept["spec"] == {"strategy": "OldestEmulationVersion"}
    assert dropped["spec"] == {}


def test_a_volume_has_the_time_of_its_last_phase_transition() -> None:
    gvk = GroupVersionKind("", "v1", "PersistentVolume")
    old = {"metadata": {}, "spec": {}, "status": {"phase": "Pending", "lastPhaseTransitionTime": "then"}}
    same: Tree = {"metadata": {}, "spec": {}, "status": {"phase": "Pending"}}
    other: Tree = {"metadata": {}, "spec": {}, "status": {"phase": "Bound"}}

    prepare_for_update(gvk, same, old, subresource="status", now="now")
    prepare_for_update(gvk, other, old, subresource="status", now="now")

    assert same["status"]["lastPhaseTransitionTime"] == "then"
    assert other["status"]["lastPhaseTransitionTime"] == "now"


def test_a_resize_of_other_containers_is_left_for_validation() -> None:
    old = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "b"}]}, "status": {}}
    new: Tree = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "z", "image": "b"}]}, "status": {}}

    prepare_for_update(POD, new, old, subresource="resize")

    assert new["spec"]["containers"][0]["name"] == "z"


def test_the_status_in_annotations_of_an_old_autoscaler_is_reset() -> None:
    gvk = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
    key = "autoscaling.alpha.kubernetes.io/conditions"
    old: Tree = {"metadata": {"name": "a", "annotations": {key: "old"}}, "spec": {}, "status": {}}
    new: Tree = {"metadata": {"name": "a", "annotations": {key: "new", "b": "c"}}, "spec": {}, "status": {}}
    created = deepcopy(new)

    prepare_for_create(gvk, created)
    prepare_for_update(gvk, new, old)

    assert created["metadata"]["annotations"] == {"b": "c"}
    assert new["metadata"]["annotations"] == {key: "old", "b": "c"}
