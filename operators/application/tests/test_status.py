"""What an Application says about itself, from what is seen."""

from typing import Any

import pytest
from kubewright import ObjectMeta
from kubewright.k8s.apps.v1 import Deployment, DeploymentSpec, DeploymentStatus
from kubewright.k8s.core.v1 import PodTemplateSpec
from kubewright.k8s.meta.v1 import LabelSelector

from application.api.v1alpha1.application import Application, ApplicationSpec
from application.config import Configuration
from application.failures import Problem
from application.status import Findings, config_resolved, is_rolled_out, progressing, ready

DONE: dict[str, Any] = {
    "observed_generation": 3,
    "replicas": 2,
    "updated_replicas": 2,
    "available_replicas": 2,
    "ready_replicas": 2,
}
HERE = Configuration("settings", "abc")


def deployment(**status: int) -> Deployment:
    return Deployment(
        metadata=ObjectMeta(name="web", generation=3),
        spec=DeploymentSpec(replicas=2, selector=LabelSelector(), template=PodTemplateSpec()),
        status=DeploymentStatus(**{**DONE, **status}),
    )


def application(**spec: Any) -> Application:
    return Application.named("web", "shop", spec=ApplicationSpec(image="nginx", **spec))


@pytest.mark.parametrize(
    "behind", [{"observed_generation": 2}, {"updated_replicas": 1}, {"replicas": 3}, {"available_replicas": 1}]
)
def test_a_rollout_is_over_when_nothing_is_behind(behind: dict[str, int]) -> None:
    assert is_rolled_out(deployment())
    assert not is_rolled_out(deployment(**behind))


def test_the_configuration_is_resolved_or_missing_or_not_asked_for() -> None:
    assert config_resolved(Configuration()).reason == "NotReferenced"
    assert config_resolved(HERE).reason == "Resolved"
    missing = config_resolved(Configuration("settings"))
    assert (missing.status, missing.reason) == (False, "ConfigMapNotFound")
    assert "settings" in missing.message


@pytest.mark.parametrize(
    ("spec", "findings", "expected"),
    [
        ({}, Findings(deployment(), HERE, None), (True, "Available")),
        ({"paused": True}, Findings(deployment(), HERE, None), (True, "Paused")),
        ({}, Findings(deployment(updated_replicas=1), HERE, None), (False, "RollingOut")),
        ({}, Findings(None, HERE, None), (False, "DeploymentMissing")),
        ({"paused": True}, Findings(None, HERE, None), (False, "Paused")),
        ({}, Findings(deployment(), Configuration("settings"), None), (False, "ConfigMapNotFound")),
        ({}, Findings(deployment(), Configuration("settings"), Problem("Rejected", "no")), (False, "Rejected")),
    ],
)
def test_ready_gives_the_first_reason_why_not(
    spec: dict[str, Any], findings: Findings, expected: tuple[bool, str]
) -> None:
    verdict = ready(application(**spec), findings)

    assert (verdict.status, verdict.reason) == expected


def test_progressing_is_about_pods_alone() -> None:
    assert progressing(application(), Findings(deployment(), HERE, None)).reason == "RolloutComplete"
    assert progressing(application(paused=True), Findings(deployment(), HERE, None)).reason == "Paused"
    assert progressing(application(), Findings(deployment(replicas=3), HERE, None)).status
    assert progressing(application(), Findings(None, HERE, None)).reason == "DeploymentMissing"
