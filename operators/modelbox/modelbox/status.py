"""From the children to the status: what a ModelBox says about itself. Pure, but for telling the context."""

from operator import attrgetter
from typing import Final

from kubewright import Context
from kubewright.k8s.apps.v1 import Deployment, DeploymentStatus
from kubewright.k8s.core.v1 import Service

from modelbox.api.v1.modelbox import ModelBox
from modelbox.api.v1.status import LoadBalancerAddress, ObservedService, ObservedServicePort
from modelbox.children.ensuring import ApplyResult
from modelbox.children.labels import selector_of
from modelbox.conditions import Verdict, available, degraded, progressing, ready, service_ready
from modelbox.defaults import resource_type_of

__all__ = ("GAUGES", "report", "report_invalid")

GAUGES: Final = {
    f"modelbox_{number}": attrgetter(f"status.{number}")
    for number in (
        "replicas",
        "updated_replicas",
        "ready_replicas",
        "available_replicas",
        "unavailable_replicas",
    )
}
"""The counts as metrics."""


def report(
    modelbox: ModelBox, deployment: ApplyResult[Deployment], service: ApplyResult[Service], ctx: Context
) -> None:
    """Everything that is known after the children were put in place, or were not."""
    _count(modelbox, deployment.child)
    status = modelbox.status
    # Said here and not left to the framework: a reconcile that ends with an error has looked at the object too.
    status.observed_generation = modelbox.metadata.generation
    status.selector = ",".join(f"{name}={value}" for name, value in selector_of(modelbox).items())
    status.resource_type = resource_type_of(modelbox.spec)
    status.service = None if service.child is None else observed_service(service.child)
    verdicts = {
        "Available": available(deployment),
        "Progressing": progressing(deployment),
        "ServiceReady": service_ready(service),
        "Degraded": degraded(deployment, service),
    }
    verdicts["Ready"] = ready(modelbox.spec, deployment.child, **verdicts)
    _tell(modelbox, verdicts, ctx)


def report_invalid(modelbox: ModelBox, faults: str, ctx: Context) -> None:
    """The spec cannot be worked with; what was said about the children before still holds."""
    modelbox.status.observed_generation = modelbox.metadata.generation
    verdict = Verdict(status=False, reason="InvalidSpec", message=faults)
    _tell(modelbox, {"Degraded": Verdict(status=True, reason="InvalidSpec", message=faults), "Ready": verdict}, ctx)


def observed_service(service: Service) -> ObservedService:
    """A Service in the words of the status."""
    balancer = service.status.load_balancer
    return ObservedService(
        name=service.metadata.name,
        type=service.spec.type or "ClusterIP",
        cluster_ip=service.spec.cluster_ip,
        ports=[
            ObservedServicePort(
                name=port.name, port=port.port, protocol=port.protocol or "TCP", node_port=port.node_port
            )
            for port in service.spec.ports or ()
        ],
        load_balancer=[
            LoadBalancerAddress(ip=address.ip, hostname=address.hostname)
            for address in (balancer.ingress if balancer is not None else None) or ()
        ],
    )


def _count(modelbox: ModelBox, deployment: Deployment | None) -> None:
    ours = modelbox.status
    theirs = DeploymentStatus() if deployment is None else deployment.status
    ours.replicas = theirs.replicas or 0
    ours.updated_replicas = theirs.updated_replicas or 0
    ours.ready_replicas = theirs.ready_replicas or 0
    ours.available_replicas = theirs.available_replicas or 0
    ours.unavailable_replicas = theirs.unavailable_replicas or 0


def _tell(modelbox: ModelBox, verdicts: dict[str, Verdict], ctx: Context) -> None:
    trouble = verdicts["Degraded"]
    said = {condition.message for condition in modelbox.status.conditions if condition.type == "Degraded"}
    if trouble.status and trouble.message not in said:
        ctx.event(trouble.reason, trouble.message, type="Warning")
    for name, verdict in verdicts.items():
        ctx.condition(name, verdict.status, reason=verdict.reason, message=verdict.message)
