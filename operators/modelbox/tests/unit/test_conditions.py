"""What a ModelBox says about itself, from what its children say."""

from typing import Any

import pytest
from kubewright.errors import NotOwned
from kubewright.k8s.apps.v1 import Deployment, DeploymentCondition, DeploymentStatus
from kubewright.k8s.core.v1 import Service

from boxes import box
from modelbox.children.deployment import deployment_for
from modelbox.children.ensuring import ApplyResult
from modelbox.children.service import service_for
from modelbox.conditions import Verdict, available, degraded, progressing, ready, service_ready
from modelbox.failures import failure_of

SERVICE: ApplyResult[Service] = ApplyResult(child=service_for(box("web")))
FINE = {"Available": ("True", "MinimumReplicasAvailable"), "Progressing": ("True", "NewReplicaSetAvailable")}


def deployed(
    *, conditions: dict[str, tuple[str, str]] | None = None, paused: bool | None = None, **numbers: Any
) -> ApplyResult[Deployment]:
    """A Deployment of two, all well but for what is said."""
    child = deployment_for(box("web", replicas=2))
    child.metadata.generation = 3
    child.spec.paused = paused
    good = {"observed_generation": 3, "replicas": 2, "updated_replicas": 2, "available_replicas": 2}
    child.status = DeploymentStatus(
        conditions=[
            DeploymentCondition(type=kind, status=status, reason=reason, message=f"{reason} it is")
            for kind, (status, reason) in (FINE | (conditions or {})).items()
        ],
        **good | numbers,
    )
    return ApplyResult(child=child)


def conditions_for(deployment: ApplyResult[Deployment]) -> dict[str, Verdict]:
    """All conditions, with a Service that is fine."""
    verdicts = {
        "Available": available(deployment),
        "Progressing": progressing(deployment),
        "ServiceReady": service_ready(SERVICE),
        "Degraded": degraded(deployment, SERVICE),
    }
    return verdicts | {"Ready": ready(box("web").spec, deployment.child, **verdicts)}


def test_a_deployment_at_rest_is_ready() -> None:
    verdicts = conditions_for(deployed())

    assert {kind: verdict.status for kind, verdict in verdicts.items()} == {
        "Available": True,
        "Progressing": False,
        "ServiceReady": True,
        "Degraded": False,
        "Ready": True,
    }
    assert verdicts["Progressing"].reason == "RolloutComplete"
    assert verdicts["Degraded"].reason == "AsExpected"


@pytest.mark.parametrize(
    "numbers", [{"observed_generation": 2}, {"updated_replicas": 1}, {"replicas": 3}], ids=["behind", "few", "old"]
)
def test_a_rollout_under_way_is_not_ready(numbers: dict[str, Any]) -> None:
    """1.3."""
    verdicts = conditions_for(deployed(**numbers))

    assert verdicts["Progressing"].status is True
    assert verdicts["Ready"].status is False


def test_availability_of_an_older_generation_says_nothing() -> None:
    """1.3."""
    assert conditions_for(deployed(observed_generation=2))["Available"].status is None


def test_a_pod_that_is_lost_later_is_no_rollout() -> None:
    verdicts = conditions_for(deployed(available_replicas=1))

    assert verdicts["Progressing"].status is False
    assert verdicts["Ready"] == Verdict(status=False, reason="PodsMissing", message="1 of 2 pods are available")


def test_pods_that_have_not_been_available_together_are_a_rollout_still() -> None:
    verdicts = conditions_for(deployed(conditions={"Progressing": ("True", "ReplicaSetUpdated")}, available_replicas=1))

    assert verdicts["Progressing"].status is True


def test_a_rollout_that_takes_too_long_needs_somebody() -> None:
    """1.3."""
    verdicts = conditions_for(deployed(conditions={"Progressing": ("False", "ProgressDeadlineExceeded")}, replicas=3))

    assert (verdicts["Degraded"].status, verdicts["Degraded"].reason) == (True, "ProgressDeadlineExceeded")
    assert verdicts["Ready"].reason == "ProgressDeadlineExceeded"


def test_a_paused_deployment_makes_no_progress_and_says_so() -> None:
    """1.3."""
    assert conditions_for(deployed(paused=True))["Progressing"].reason == "DeploymentPaused"


def test_what_keeps_pods_from_being_made_is_in_the_message() -> None:
    """1.8."""
    verdict = conditions_for(
        deployed(
            conditions={
                "Available": ("False", "MinimumReplicasUnavailable"),
                "ReplicaFailure": ("True", "FailedCreate"),
            }
        )
    )["Available"]

    assert (verdict.status, verdict.reason) == (False, "MinimumReplicasUnavailable")
    assert "FailedCreate it is" in verdict.message


def test_a_missing_deployment_is_named_with_its_reason() -> None:
    """1.3."""
    verdicts = conditions_for(ApplyResult(child=None, failure=failure_of(NotOwned("somebody else's"))))

    assert verdicts["Available"] == Verdict(status=False, reason="DeploymentMissing", message="somebody else's")
    assert (verdicts["Degraded"].status, verdicts["Ready"].reason) == (True, "NameConflict")


def test_a_missing_service_is_named() -> None:
    """1.3."""
    assert service_ready(ApplyResult(child=None)).reason == "ServiceMissing"
