"""What an Application says about itself: counts and four conditions, from what is in the cluster now.

Nothing is remembered from run to run, and an unchanged world gives the same status byte for byte.
"""

from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from kubewright import Context, find_condition
from kubewright.k8s.apps.v1 import Deployment

from application.api.v1alpha1.application import Application
from application.config import Configuration
from application.failures import Problem
from application.names import CONFIG_HASH, selector_of

__all__ = ("GAUGES", "Findings", "count", "report", "report_problem")

GAUGES: Final = {f"application_{number}": attrgetter(f"status.{number}") for number in ("replicas", "ready_replicas")}
"""The counts as metrics."""


@dataclass(frozen=True)
class Findings:
    """What one reconcile has seen."""

    deployment: Deployment | None
    """None if there is none, or none of ours."""
    configuration: Configuration
    problem: Problem | None


@dataclass(frozen=True)
class Verdict:
    """One condition's worth of truth."""

    status: bool
    reason: str
    message: str = ""


def report(application: Application, findings: Findings, ctx: Context) -> None:
    """Write it all into the status; the framework sends it, if it differs."""
    count(application, findings.deployment)
    report_problem(application, findings.problem, ctx)
    for name, verdict in {
        "ConfigResolved": config_resolved(findings.configuration),
        "Progressing": progressing(application, findings),
        "Ready": ready(application, findings),
    }.items():
        ctx.condition(name, verdict.status, reason=verdict.reason, message=verdict.message)


def report_problem(application: Application, problem: Problem | None, ctx: Context) -> None:
    """Degraded, and an event when it is news."""
    before = find_condition(application.status.conditions, "Degraded")
    if problem is None:
        ctx.condition("Degraded", False, reason="AsExpected")
        return
    ctx.condition("Degraded", True, reason=problem.reason, message=problem.message)
    if before is None or (before.reason, before.message) != (problem.reason, problem.message):
        ctx.event(problem.reason, problem.message, type="Warning")


def count(application: Application, deployment: Deployment | None) -> None:
    """The numbers, as the Deployment has them."""
    status = application.status
    status.selector = selector_of(application)
    if deployment is None:
        status.replicas = status.ready_replicas = 0
        status.config_hash = ""
        return
    status.replicas = deployment.status.replicas or 0
    status.ready_replicas = deployment.status.ready_replicas or 0
    template = deployment.spec.template.metadata
    status.config_hash = template.annotations.get(CONFIG_HASH, "") if template else ""


def config_resolved(configuration: Configuration) -> Verdict:
    """Whether the configuration that is asked for is there."""
    if not configuration.name:
        return Verdict(True, "NotReferenced")
    if configuration.missing:
        return Verdict(False, "ConfigMapNotFound", f"there is no ConfigMap {configuration.name} in this namespace")
    return Verdict(True, "Resolved")


def progressing(application: Application, findings: Findings) -> Verdict:
    """Whether pods are on their way in or out."""
    deployment = findings.deployment
    if deployment is None:
        return Verdict(False, "DeploymentMissing")
    if is_rolled_out(deployment):
        return Verdict(False, "Paused" if application.spec.paused else "RolloutComplete")
    return Verdict(True, "RollingOut", _counts(deployment))


def ready(application: Application, findings: Findings) -> Verdict:
    """Whether everything is as it is asked for; else the first reason why not."""
    resolved, deployment = config_resolved(findings.configuration), findings.deployment
    if findings.problem is not None:
        return Verdict(False, findings.problem.reason, findings.problem.message)
    if not resolved.status:
        return resolved
    if deployment is None:
        return Verdict(False, "Paused" if application.spec.paused else "DeploymentMissing")
    if not is_rolled_out(deployment):
        return Verdict(False, "RollingOut", _counts(deployment))
    return Verdict(True, "Paused" if application.spec.paused else "Available", _counts(deployment))


def is_rolled_out(deployment: Deployment) -> bool:
    """Whether the Deployment's controller has seen its spec, and all pods are of it and available."""
    seen, wanted = deployment.status, deployment.spec.replicas if deployment.spec.replicas is not None else 1
    if (seen.observed_generation or 0) < deployment.metadata.generation:
        return False
    return (seen.replicas or 0) == (seen.updated_replicas or 0) == (seen.available_replicas or 0) == wanted


def _counts(deployment: Deployment) -> str:
    seen, wanted = deployment.status, deployment.spec.replicas
    return f"{seen.updated_replicas or 0} of {wanted} pods are up to date, {seen.available_replicas or 0} available"
