"""Let the pods of an Application end before anything else of it goes.

The Deployment is scaled to nothing and its pods are awaited, but not for ever: the time counts from the deletion of the
Application and is written on the Deployment together with the scaling. So neither a restart of the operator nor an edit
of `spec.drainSeconds` moves it. Each step may be repeated at any time.
"""

from datetime import datetime, timedelta

from kubewright import Context, RetryAfter
from kubewright.api import metadata_of
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Pod

from application.api.v1alpha1.application import Application
from application.names import DRAIN_UNTIL, identity_of
from application.ownership import find_child
from application.status import count

__all__ = ("PodMetadata", "drain")

PodMetadata = metadata_of(Pod)
"""Whether there are pods is all that matters, so only their metadata is watched."""


async def drain(application: Application, ctx: Context) -> None:
    """Return when the pods are gone or the time is over; until then, `RetryAfter`."""
    deployment = await find_child(Deployment, application, ctx)
    until = deadline_of(application, deployment) if deployment is not None else None
    if deployment is None or until is None or until <= ctx.now():
        return
    deployment = await _scaled_to_nothing(deployment, until, ctx)
    pods = await _pods_left(application, deployment, ctx)
    if is_empty(deployment) and not pods:
        return
    message = f"waiting until {until:%H:%M:%S} UTC for {pods} of its pods to end"
    count(application, deployment)
    ctx.condition("Progressing", True, reason="Draining", message=message)
    ctx.condition("Ready", False, reason="Draining", message=message)
    raise RetryAfter((until - ctx.now()).total_seconds(), message)


def deadline_of(application: Application, deployment: Deployment) -> datetime | None:
    """When to go on whatever is left: as written when this drain began, else as the spec says; None for no drain."""
    deleted = application.metadata.deletion_timestamp
    assert deleted is not None, "only what is being deleted is drained"
    try:
        written = datetime.fromisoformat(deployment.metadata.annotations.get(DRAIN_UNTIL, ""))
        if written > deleted:
            return written
    except (TypeError, ValueError):
        pass  # nothing is written, or by somebody else
    return deleted + timedelta(seconds=application.spec.drain_seconds) if application.spec.drain_seconds else None


def is_empty(deployment: Deployment) -> bool:
    """Whether its controller knows that it is to have no pods, and has none. Those that are ending do not count."""
    seen, generation = deployment.status.observed_generation or 0, deployment.metadata.generation
    return seen >= generation and not deployment.status.replicas


async def _pods_left(application: Application, deployment: Deployment, ctx: Context) -> int:
    """How many pods there are; that there are none is asked of the server, for the cache may not have seen them yet."""
    where, which = ctx.key.namespace, identity_of(application)
    pods = await ctx.client.list(PodMetadata, namespace=where, labels=which)
    if not pods and is_empty(deployment):
        pods = await ctx.client.live.list(PodMetadata, namespace=where, labels=which)
    return len(pods)


async def _scaled_to_nothing(deployment: Deployment, until: datetime, ctx: Context) -> Deployment:
    # A patch of these two fields, not an apply: the spec may have been edited since, and that no longer counts.
    deployment.spec.replicas = 0
    deployment.metadata.annotations[DRAIN_UNTIL] = until.isoformat()
    return await ctx.patch(deployment)
