"""What is done about ModelBox objects: one Deployment and one Service for each, and a status that tells of both."""

from kubewright import Context, Result, controller
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Service

from modelbox.api.v1.modelbox import ModelBox
from modelbox.children.deployment import deployment_for
from modelbox.children.ensuring import ensure
from modelbox.children.handover import FIELD_MANAGER
from modelbox.children.service import service_for
from modelbox.failures import SLOWLY, next_attempt
from modelbox.status import GAUGES, report, report_invalid
from modelbox.validation import faults_of

__all__ = ("reconcile",)


@controller(ModelBox, owns=[Deployment, Service], field_manager=FIELD_MANAGER, concurrency=8, gauges=GAUGES)
async def reconcile(modelbox: ModelBox, ctx: Context) -> Result | None:
    """Bring the children in line with the object, each by itself, then say how they are.

    Nothing is remembered from one reconcile to the next: the whole desired state is applied each time, and field
    ownership tells what is ours. Deletion needs no code, since children go with their owner.
    """
    if faults := faults_of(modelbox):
        # Only without webhooks. The children stay as they are until somebody mends the spec.
        report_invalid(modelbox, str(faults), ctx)
        return Result(requeue_after=SLOWLY)
    deployment = await ensure(modelbox, deployment_for(modelbox), ctx)
    service = await ensure(modelbox, service_for(modelbox), ctx)
    report(modelbox, deployment, service, ctx)
    return next_attempt(one.failure for one in (deployment, service) if one.failure is not None)
