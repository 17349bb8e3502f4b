"""What is done about PodSet objects: count the pods, create what is missing, delete what is too much."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, final

from kubewright import Conflict, Context, Owned, Result, Watch, controller, for_each
from kubewright.k8s.core.v1 import Pod

from podset.api.v1alpha1.podset import PodSet
from podset.membership import claim, pod_matters, set_in_label
from podset.pod_reader import PodReader
from podset.pods import is_active, is_deleting, is_finished, new_pod
from podset.ranking import deletion_order
from podset.slow_start import BURST, at_once, slow_start
from podset.status import GAUGES, Failure, failure_of, namespace_ends, report, report_invalid

SLOW_RETRY: Final = 300.0
"""Seconds until a creation is tried again that was refused for good, such as by a policy."""


@controller(
    PodSet,
    owns=[Owned(Pod, when=pod_matters)],
    # A pod that nobody manages names no owner: its label says which set might take it in.
    watches=[Watch(Pod, for_each(set_in_label), when=pod_matters)],
    concurrency=4,
    gauges=GAUGES,
)
@final
class PodSetController:
    """Keeps the number of pods. Deletion of a set needs no code: its pods go with their owner."""

    def __init__(self) -> None:
        self._reader = PodReader()

    async def reconcile(self, podset: PodSet, ctx: Context) -> Result | None:
        """Bring the pods in line with the set."""
        if podset.spec.size < 0:  # stored while the schema allowed it
            report_invalid(podset, f"spec.size is {podset.spec.size}; it cannot be below 0", ctx)
            return None
        pods = await self._pods(podset, ctx)
        active = [pod for pod in pods if is_active(pod)]
        missing = podset.spec.size - len(active)
        failure: Failure | None = None
        if missing > 0:
            failure = await self._create(podset, min(missing, BURST), ctx)
        elif missing < 0:
            await self._delete(podset, "surplus", deletion_order(active)[: min(-missing, BURST)], ctx)
        if missing <= 0:  # those that ended have been replaced
            await self._delete(podset, "ended", [pod for pod in pods if is_finished(pod) and not is_deleting(pod)], ctx)

        report(podset, await self._pods(podset, ctx), failure, ctx)
        if failure is None:
            return None
        ctx.event(failure.reason, failure.message, type="Warning")
        if failure.is_lasting:
            return Result(requeue_after=SLOW_RETRY)
        raise failure.error

    async def _pods(self, podset: PodSet, ctx: Context) -> list[Pod]:
        return await claim(podset, await self._reader.pods(podset, ctx), ctx)

    async def _create(self, podset: PodSet, count: int, ctx: Context) -> Failure | None:
        """Create so many pods; what went wrong, if anything did."""
        made, errors = await slow_start(count, lambda: ctx.create(new_pod(podset)))
        if made:
            ctx.event("PodsCreated", f"created {made} of {count} missing pods")
        self._reader.note(podset, errors)
        return failure_of(errors[0]) if errors and not namespace_ends(errors[0]) else None

    async def _delete(self, podset: PodSet, which: str, pods: Sequence[Pod], ctx: Context) -> None:
        """Delete these very pods."""
        gone, errors = await at_once(_delete_one(pod, ctx) for pod in pods)
        if gone:
            ctx.event("PodsDeleted", f"deleted {gone} of {len(pods)} {which} pods")
        self._reader.note(podset, errors)
        if errors:
            raise errors[0]


async def _delete_one(pod: Pod, ctx: Context) -> None:
    with suppress(Conflict):  # another pod has its name by now, so this one is gone
        await ctx.delete(pod)
