"""PodControl: create and delete pods for an owner, with events, in slow-start batches.

Called by the workload controllers. The framework puts created objects into the cache at once, so the next reconcile
counts them and no expectations are needed. After RealPodControl of pkg/controller/controller_utils.go and
slowStartBatch of pkg/controller/replicaset/replica_set.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from kubewright.controllers.context import Context
from kubewright.errors import ApiError, Conflict
from kubewright.k8s.core.v1 import Pod

__all__ = ("BURST_REPLICAS", "create_pod", "delete_pod", "delete_pods", "is_namespace_terminating", "slow_start_batch")

BURST_REPLICAS = 500
"""The maximum number of pods that one sync creates or deletes (BurstReplicas)."""


async def create_pod(ctx: Context, pod: Pod) -> Pod:
    """Create a pod owned by the reconciled object, with an event for success or failure."""
    try:
        created = await ctx.create(pod)
    except ApiError as error:
        if not is_namespace_terminating(error):
            ctx.event("FailedCreate", f"Error creating: {error.message}", type="Warning")
        raise
    ctx.event("SuccessfulCreate", f"Created pod: {created.metadata.name}")
    return created


async def delete_pod(ctx: Context, pod: Pod) -> None:
    """Delete a pod by uid, with an event; a missing pod or another one of that name is no error."""
    try:
        await ctx.delete(pod)
    except Conflict:
        return
    except ApiError as error:
        ctx.event("FailedDelete", f"Error deleting: {error.message}", type="Warning")
        raise
    ctx.event("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")


async def delete_pods(ctx: Context, pods: Iterable[Pod]) -> ApiError | None:
    """Delete pods concurrently; the first error, if any."""
    outcomes = await asyncio.gather(*(delete_pod(ctx, pod) for pod in pods), return_exceptions=True)
    return _first_failure(outcomes)


async def slow_start_batch(count: int, create: Callable[[int], Awaitable[object]]) -> tuple[int, ApiError | None]:
    """Call `create` with 0, 1, ... in batches of 1, 2, 4 and so on; after a failure no further batch.

    If the server rejects one, for a quota for example, it will reject all: so the first batches are small. Returns the
    number of successes and the first error.
    """
    processed, size, created_count = 0, 1, 0
    while processed < count:
        batch = range(processed, min(count, processed + size))
        outcomes = await asyncio.gather(*(create(number) for number in batch), return_exceptions=True)
        created_count += sum(not isinstance(outcome, BaseException) for outcome in outcomes)
        failure = _first_failure(outcomes)
        if failure is not None:
            return created_count, failure
        processed, size = batch.stop, size * 2
    return created_count, None


def is_namespace_terminating(error: ApiError) -> bool:
    """Whether a create failed because the namespace is terminating."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def _first_failure(outcomes: Iterable[object]) -> ApiError | None:
    for outcome in outcomes:
        if isinstance(outcome, ApiError):
            if not is_namespace_terminating(outcome):
                return outcome
        elif isinstance(outcome, BaseException):
            raise outcome
    return None
