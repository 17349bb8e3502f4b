"""The operator as a whole: what it may do, and what it is asked."""

import json
from typing import Any

import pytest
from kubewright.manager import load_operator
from kubewright.testing import RunningOperator
from kubewright.webhooks import AdmissionDeclaration

from sidecarset.selection import IGNORED_NAMESPACES
from sidecarset.webhooks.v1.pod import inject_sidecars

OPERATOR = load_operator("sidecarset")


async def test_the_operator_starts_with_the_rights_of_its_roles(operator: RunningOperator) -> None:
    assert operator.manager.state == "running"
    assert operator.forbidden == []


async def test_its_role_grants_what_it_does_and_nothing_else(operator: RunningOperator) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/sidecarset-manager-role"
    rules: list[dict[str, Any]] = json.loads((await operator.client.request("GET", path)).body)["rules"]

    granted = {
        f"{group}/{resource}": sorted(rule["verbs"])
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted == {
        "/namespaces": ["get", "list", "watch"],
        "/pods": ["get", "list", "patch", "watch"],
        "apps.unisound.io/sidecarsets": ["get", "list", "watch"],
        "apps.unisound.io/sidecarsets/status": ["patch"],
        "events.k8s.io/events": ["create", "patch"],
    }


def test_there_are_three_webhooks() -> None:
    declared = [item for item in OPERATOR.webhooks if isinstance(item, AdmissionDeclaration)]
    assert len(declared) == len(OPERATOR.webhooks)
    assert [(item.path, item.type, item.operations) for item in declared] == [
        ("/mutate-apps-unisound-io-v1alpha1-sidecarset", "mutating", ("CREATE", "UPDATE")),
        ("/mutate-v1-pod", "mutating", ("CREATE",)),
        ("/validate-apps-unisound-io-v1alpha1-sidecarset", "validating", ("CREATE", "UPDATE")),
    ]


def test_pods_wait_for_the_operator_and_it_is_asked_again_after_others() -> None:
    assert inject_sidecars.failure_policy == "Fail"
    assert inject_sidecars.reinvocation_policy == "IfNeeded"
    assert inject_sidecars.side_effects == "None"
    assert inject_sidecars.timeout_seconds == 5


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", OPERATOR.namespace])
def test_the_operators_own_namespace_is_among_those_left_alone(namespace: str) -> None:
    assert namespace in IGNORED_NAMESPACES
