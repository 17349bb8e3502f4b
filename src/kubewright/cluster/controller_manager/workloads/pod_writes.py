"""Create and delete pods for an owner, each with its event; many of them without flooding a server that says no.

Called by the controllers of sets and jobs. What is created is in the cache at once, so that a run that follows at the
heels of this one counts it: nothing has to be remembered here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from kubewright.controllers.context import Context
from kubewright.errors import ApiError, Conflict
from kubewright.k8s.core.v1 import Pod

__all__ = ("BURST", "create_many", "create_pod", "delete_pod", "delete_pods", "namespace_ends")

BURST = 500
"""How many pods one run creates or deletes at most."""


async def create_pod(ctx: Context, pod: Pod) -> Pod:
    """A pod of the object the context is for; failure is told as an event as well."""
    try:
        created = await ctx.create(pod)
    except ApiError as error:
        if not namespace_ends(error):
            ctx.event("FailedCreate", f"Error creating: {error.message}", type="Warning")
        raise
    ctx.event("SuccessfulCreate", f"Created pod: {created.metadata.name}")
    return created


async def delete_pod(ctx: Context, pod: Pod) -> None:
    """Delete this very pod; that it is gone, or another of the same name is there, is fine."""
    try:
        await ctx.delete(pod)
    except Conflict:
        return
    except ApiError as error:
        ctx.event("FailedDelete", f"Error deleting: {error.message}", type="Warning")
        raise
    ctx.event("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")


async def delete_pods(ctx: Context, pods: Iterable[Pod]) -> ApiError | None:
    """Delete them all at the same time; the first failure, if there was one."""
    outcomes = await asyncio.gather(*(delete_pod(ctx, pod) for pod in pods), return_exceptions=True)
    return _first_failure(outcomes)


async def create_many(count: int, create: Callable[[int], Awaitable[object]]) -> tuple[int, ApiError | None]:
    """Call `create` with 0, 1, ... in batches of 1, 2, 4 and so on; after a failure no further batch.

    Where one is refused, by a quota for example, the others will be, too: so few are tried first. How many succeeded,
    and the first failure.
    """
    done, size, made = 0, 1, 0
    while done < count:
        batch = range(done, min(count, done + size))
        outcomes = await asyncio.gather(*(create(number) for number in batch), return_exceptions=True)
        made += sum(not isinstance(outcome, BaseException) for outcome in outcomes)
        failure = _first_failure(outcomes)
        if failure is not None:
            return made, failure
        done, size = batch.stop, size * 2
    return made, None


def namespace_ends(error: ApiError) -> bool:
    """Whether nothing can be created because the namespace is being deleted."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def _first_failure(outcomes: Iterable[object]) -> ApiError | None:
    for outcome in outcomes:
        if isinstance(outcome, ApiError):
            if not namespace_ends(outcome):
                return outcome
        elif isinstance(outcome, BaseException):
            raise outcome
    return None
