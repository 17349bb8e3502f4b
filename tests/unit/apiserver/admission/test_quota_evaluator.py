"""What objects use of a quota."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.builders.pods import pod_tree

from kubewright.apiserver.admission.quota_evaluator import counted_by, in_scope, missing, usage

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pod(*, phase: str = "Running", limits: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return pod_tree("p", container={"limits": limits}, status={"phase": phase}, **spec)


def shown(group: str, plural: str, tree: dict[str, Any]) -> dict[str, str]:
    return {name: amount.canonical for name, amount in usage(group, plural, tree, NOW).items()}


def test_a_pod_costs_what_its_containers_ask_for() -> None:
    costs = shown("", "pods", pod(limits={"cpu": "100m", "memory": "64Mi"}))

    assert costs == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "100m",
        "requests.cpu": "100m",
        "limits.cpu": "100m",
        "memory": "64Mi",
        "requests.memory": "64Mi",
        "limits.memory": "64Mi",
    }


def test_the_overhead_of_a_runtime_is_counted() -> None:
    costs = shown("", "pods", pod(limits={"cpu": "100m"}, overhead={"cpu": "50m", "memory": "1Mi"}))

    assert (costs["requests.cpu"], costs["limits.cpu"], costs["requests.memory"]) == ("150m", "150m", "1Mi")
    assert "limits.memory" not in costs


def test_a_pod_that_has_ended_is_only_an_object() -> None:
    assert shown("", "pods", pod(phase="Succeeded", limits={"cpu": "1"})) == {"count/pods": "1"}


def test_a_pod_that_should_long_be_gone_is_only_an_object() -> None:
    lost = pod()
    lost["metadata"] |= {"deletionTimestamp": "2025-12-31T23:59:00Z", "deletionGracePeriodSeconds": 30}

    assert shown("", "pods", lost) == {"count/pods": "1"}


def test_services_count_their_node_ports() -> None:
    ports = [{"port": 80}, {"port": 81, "nodePort": 30081}]
    balanced = {"spec": {"type": "LoadBalancer", "ports": ports}}
    sparing = {"spec": {**balanced["spec"], "allocateLoadBalancerNodePorts": False}}

    assert shown("", "services", balanced)["services.nodeports"] == "2"
    assert shown("", "services", sparing)["services.nodeports"] == "1"
    assert shown("", "services", sparing)["services.loadbalancers"] == "1"


def test_claims_count_by_storage_class_too() -> None:
    claim = {"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}}

    assert shown("", "persistentvolumeclaims", claim) == {
        "count/persistentvolumeclaims": "1",
        "persistentvolumeclaims": "1",
        "requests.storage": "1Gi",
        "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "fast.storageclass.storage.k8s.io/requests.storage": "1Gi",
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("count/deployments.apps", ("apps", "deployments")),
        ("count/widgets.example.io", ("example.io", "widgets")),
        ("configmaps", ("", "configmaps")),
        ("services.nodeports", ("", "services")),
        ("fast.storageclass.storage.k8s.io/requests.storage", ("", "persistentvolumeclaims")),
        ("requests.nvidia.com/gpu", ("", "pods")),
        ("limits.memory", ("", "pods")),
    ],
)
def test_names_say_what_they_count(name: str, kind: tuple[str, str]) -> None:
    assert counted_by(name) == kind


@pytest.mark.parametrize(
    ("scope", "spec", "matches"),
    [
        ("BestEffort", {}, True),
        ("NotBestEffort", {}, False),
        ("Terminating", {"activeDeadlineSeconds": 5}, True),
        ("NotTerminating", {"activeDeadlineSeconds": 5}, False),
        ("PriorityClass", {"priorityClassName": "high"}, True),
        ("PriorityClass", {}, False),
        ("CrossNamespacePodAffinity", {}, False),
    ],
)
def test_scopes_choose_pods(scope: str, spec: dict[str, Any], matches: bool) -> None:
    assert in_scope({"spec": {"scopes": [scope]}}, "pods", pod(**spec)) is matches


def test_containers_must_say_what_a_quota_limits() -> None:
    names = ("requests.cpu", "limits.memory", "pods", "requests.nvidia.com/gpu")

    assert missing(names, pod()) == "must specify limits.memory for: main; requests.cpu for: main"
    assert missing(names, pod(limits={"cpu": "1", "memory": "1Gi"})) == ""
