"""The five conditions of a ModelBox, each a function of the children and of what went wrong with them. Pure."""

from dataclasses import dataclass

from kubewright.k8s.apps.v1 import Deployment, DeploymentCondition
from kubewright.k8s.core.v1 import Service

from modelbox.api.v1.modelbox import ModelBoxSpec
from modelbox.children.ensuring import ApplyResult
from modelbox.children.probes import lacks_default_probes

__all__ = ("Verdict", "available", "degraded", "progressing", "ready", "service_ready")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One condition, before it is written down; a status of None is Unknown."""

    status: bool | None
    reason: str
    message: str = ""


def available(deployment: ApplyResult[Deployment]) -> Verdict:
    """Whether enough pods serve, as the Deployment's status says of its newest generation."""
    child = deployment.child
    if child is None:
        return Verdict(status=False, reason="DeploymentMissing", message=_why(deployment))
    if _is_behind(child):
        return Verdict(status=None, reason="NotYetObserved", message="the Deployment has just been changed")
    theirs = _condition(child, "Available")
    # What keeps pods from being made, such as a quota, matters more than that some are missing.
    obstacle = _condition(child, "ReplicaFailure")
    messages = [found.message for found in (theirs, obstacle) if found is not None and found.message]
    good = theirs is not None and theirs.status == "True"
    reason = "MinimumReplicasAvailable" if good else "MinimumReplicasUnavailable"
    return Verdict(status=good, reason=reason, message="; ".join(messages))


def progressing(deployment: ApplyResult[Deployment]) -> Verdict:
    """Whether a rollout is under way."""
    child = deployment.child
    if deployment.failure is not None or child is None:
        reason = "DeploymentMissing" if deployment.failure is None else deployment.failure.reason
        return Verdict(status=None, reason=reason, message=_why(deployment))
    if child.spec.paused:
        return Verdict(status=False, reason="DeploymentPaused", message="somebody has paused the Deployment")
    if _is_overdue(child):
        return Verdict(status=False, reason="ProgressDeadlineExceeded", message=_overdue_message(child))
    if _is_rolling(child):
        status = child.status
        message = f"{status.updated_replicas or 0} of {child.spec.replicas or 0} pods are of the newest kind"
        old = (status.replicas or 0) - (status.updated_replicas or 0)
        return Verdict(
            status=True, reason="RolloutUnderWay", message=f"{message}, {old} old ones remain" if old > 0 else message
        )
    return Verdict(status=False, reason="RolloutComplete")


def service_ready(service: ApplyResult[Service]) -> Verdict:
    """Whether the Service is there as it is wanted, and can be reached."""
    child = service.child
    if service.failure is not None:
        return Verdict(status=False, reason=service.failure.reason, message=service.failure.message)
    if child is None:
        return Verdict(status=False, reason="ServiceMissing")
    balancer = child.status.load_balancer
    if child.spec.type == "LoadBalancer" and not (balancer is not None and balancer.ingress):
        return Verdict(status=False, reason="LoadBalancerPending", message="the load balancer has no address yet")
    return Verdict(status=True, reason="ServiceInPlace")


def degraded(deployment: ApplyResult[Deployment], service: ApplyResult[Service]) -> Verdict:
    """Whether somebody has to do something."""
    troubles = [
        failure for failure in (deployment.failure, service.failure) if failure is not None and failure.degraded
    ]
    if troubles:
        message = "; ".join(failure.message for failure in troubles)
        return Verdict(status=True, reason=troubles[0].reason, message=message)
    if deployment.child is not None and _is_overdue(deployment.child):
        return Verdict(status=True, reason="ProgressDeadlineExceeded", message=_overdue_message(deployment.child))
    return Verdict(status=False, reason="AsExpected")


def ready(spec: ModelBoxSpec, deployment: Deployment | None, **others: Verdict) -> Verdict:
    """Whether all is well; if not, the first reason why, what needs somebody before what may pass by itself."""
    for name, good in (("Degraded", False), ("Available", True), ("ServiceReady", True), ("Progressing", False)):
        verdict = others[name]
        if verdict.status is not good:
            return Verdict(status=False, reason=verdict.reason, message=verdict.message)
    assert deployment is not None  # else it would not be available
    wanted, there = deployment.spec.replicas or 0, deployment.status.available_replicas or 0
    message = f"{there} of {wanted} pods are available"
    if not wanted == there == (deployment.status.updated_replicas or 0):
        return Verdict(status=False, reason="PodsMissing", message=message)
    if lacks_default_probes(spec):
        message += "; there are no default probes, because no port is TCP"
    return Verdict(status=True, reason="AllPodsAvailable", message=message)


def _is_behind(deployment: Deployment) -> bool:
    return (deployment.status.observed_generation or 0) < deployment.metadata.generation


def _is_rolling(deployment: Deployment) -> bool:
    status = deployment.status
    updated = status.updated_replicas or 0
    theirs = _condition(deployment, "Progressing")
    return (
        _is_behind(deployment)
        or updated < (deployment.spec.replicas or 0)
        or (status.replicas or 0) > updated
        # All pods are of the newest kind, but have not been available together yet.
        or (theirs is not None and theirs.status == "True" and theirs.reason != "NewReplicaSetAvailable")
    )


def _is_overdue(deployment: Deployment) -> bool:
    theirs = _condition(deployment, "Progressing")
    return theirs is not None and theirs.reason == "ProgressDeadlineExceeded" and not _is_behind(deployment)


def _overdue_message(deployment: Deployment) -> str:
    theirs = _condition(deployment, "Progressing")
    return (theirs and theirs.message) or "the rollout has not come to an end in time"


def _condition(deployment: Deployment, kind: str) -> DeploymentCondition | None:
    return next((found for found in deployment.status.conditions or () if found.type == kind), None)


def _why(applied: ApplyResult[Deployment]) -> str:
    return "" if applied.failure is None else applied.failure.message
