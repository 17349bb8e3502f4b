"""Put a child in place, or say why that is not possible. One child's failure is never another's."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from kubewright import Context, controller_of
from kubewright.api import KubeObject
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Service

from modelbox.api.v1.modelbox import ModelBox
from modelbox.children.handover import hand_over_replicas
from modelbox.children.labels import selector_of
from modelbox.failures import APPLY_ERRORS, Failure, failure_of

__all__ = ("ApplyResult", "ensure")

K = TypeVar("K", Deployment, Service)


@dataclass(frozen=True, kw_only=True)
class ApplyResult(Generic[K]):
    """A child after the attempt to apply it."""

    child: K | None
    """As it is in the cluster; None if it is not there, or not ours."""
    failure: Failure | None = None


async def ensure(modelbox: ModelBox, wanted: K, ctx: Context) -> ApplyResult[K]:
    """Apply a child, and take it over if it carries our label and nobody owns it."""
    before = await ctx.client.find(type(wanted), wanted.key)
    try:
        if isinstance(wanted, Deployment) and wanted.spec.replicas is None:
            await hand_over_replicas(wanted, ctx)
        after = await ctx.apply(wanted, adopt=selector_of(modelbox))
    except APPLY_ERRORS as error:
        return ApplyResult(child=before if _is_ours(before, modelbox) else None, failure=failure_of(error))
    _announce(before, after, ctx)
    return ApplyResult(child=after)


def _is_ours(child: KubeObject | None, modelbox: ModelBox) -> bool:
    reference = None if child is None else controller_of(child)
    return reference is not None and reference.uid == modelbox.metadata.uid


def _announce(before: K | None, after: K, ctx: Context) -> None:
    """Tell of what really changed."""
    if before is None:
        ctx.event("Created", f"{after.kind} {after.metadata.name} created", related=after)
    elif isinstance(before, Deployment) and isinstance(after, Deployment) and before.spec != after.spec:
        if before.spec.replicas != after.spec.replicas:
            numbers = f"from {before.spec.replicas} to {after.spec.replicas} replicas"
            ctx.event("Scaled", f"Deployment {after.metadata.name} scaled {numbers}", related=after)
        if before.spec.template != after.spec.template:
            ctx.event("Updated", f"Deployment {after.metadata.name} updated, its pods are replaced", related=after)
    elif isinstance(before, Service) and isinstance(after, Service) and before.spec != after.spec:
        ctx.event("Updated", f"Service {after.metadata.name} updated", related=after)
