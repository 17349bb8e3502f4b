"""What is done about PodBuggerTool objects: find their pods, add the container where it is missing, report.

Pods are watched without pause and wake the tools that their labels concern, before and after a change. Nothing is ever
removed: the API does not allow it, so a deleted or suspended tool leaves its containers where they are.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, final

from kubewright import Context, NotFound, Result, Watch, by_index, controller
from kubewright.errors import ApiError, KubewrightError
from kubewright.k8s.core.v1 import Pod

from podbuggertool.api.v1alpha1.podbuggertool import PodBuggerTool
from podbuggertool.container import container_for, container_name, holds_earlier
from podbuggertool.matching import INDEX, demanded_label, labels_of, pod_matters, selector_of
from podbuggertool.pods import by_age, holds, image_in_the_way, is_eligible, is_wanted
from podbuggertool.refusals import Refusals, refusal_of
from podbuggertool.status import GAUGES, report, report_invalid
from podbuggertool.webhooks.v1alpha1.podbuggertool import default_podbuggertool, validate_podbuggertool

AT_ONCE: Final = 20
"""How many pods are served at the same time."""


@controller(
    PodBuggerTool,
    watches=[Watch(Pod, by_index(INDEX, labels_of), when=pod_matters)],
    indexes={INDEX: demanded_label},
    concurrency=4,
    gauges=GAUGES,
)
@final
class PodBuggerToolController:
    """Serves the pods of tools."""

    def __init__(self) -> None:
        self._refusals = Refusals()

    async def reconcile(self, tool: PodBuggerTool, ctx: Context) -> Result | None:
        """Bring the pods in line with the tool. Its defaults and rules hold without webhooks, too."""
        wanted: PodBuggerTool = default_podbuggertool.defaulted(tool)
        if errors := validate_podbuggertool.check(wanted):
            report_invalid(tool, str(errors), ctx)
            return None
        pods = await self._pods(wanted, ctx)
        self._refusals.forget_outdated(tool, pods, ctx.now())
        added, error = (0, None) if tool.spec.suspend else await self._serve(wanted, pods, ctx)

        refusals = self._refusals.of(tool)
        # What was added is in the cache by now; without that, what was read before is still true.
        report(tool, wanted, await self._pods(wanted, ctx) if added else pods, refusals, ctx)
        if error is not None:
            raise error
        waits = [(one.retry_at - ctx.now()).total_seconds() for one in refusals if one.retry_at is not None]
        return Result(requeue_after=max(1.0, min(waits))) if waits else None

    async def _pods(self, tool: PodBuggerTool, ctx: Context) -> list[Pod]:
        """The pods that match, the oldest first."""
        found = await ctx.client.list(Pod, namespace=tool.metadata.namespace, labels=selector_of(tool))
        return sorted(filter(is_wanted, found), key=by_age)

    async def _serve(
        self, tool: PodBuggerTool, pods: Sequence[Pod], ctx: Context
    ) -> tuple[int, KubewrightError | None]:
        """Add the container to all pods that can have it now: to how many it was, and what is worth another try."""
        container = container_name(tool)
        waiting = [
            pod for pod in pods if is_eligible(pod, tool) and not holds(pod, tool) and not self._is_hopeless(tool, pod)
        ]
        room = await _room(tool, ctx) if tool.spec.max_pods else len(waiting)
        added: list[Pod] = []
        error: KubewrightError | None = None
        while waiting and len(added) < room and error is None and not self._refusals.are_final(tool):
            batch = waiting[: min(AT_ONCE, room - len(added))]
            waiting = waiting[len(batch) :]
            outcomes = await asyncio.gather(*(self._add(tool, pod, ctx) for pod in batch))
            added += [pod for pod, outcome in zip(batch, outcomes, strict=True) if outcome is True]
            error = next((outcome for outcome in outcomes if isinstance(outcome, KubewrightError)), None)
        if added:
            ctx.event("ContainerAdded", f"added container {container} to {len(added)} of {len(pods)} pods")
        if stale := sum(holds_earlier(pod, tool) for pod in added):
            told = f"{stale} of {len(pods)} pods keep the container they had before, which cannot be removed"
            ctx.event("EarlierContainersStay", told)
        return len(added), error

    def _is_hopeless(self, tool: PodBuggerTool, pod: Pod) -> bool:
        """Whether the API would refuse the container, as far as one can know without asking."""
        return image_in_the_way(pod, tool) is not None or self._refusals.stands(tool, pod)

    async def _add(self, tool: PodBuggerTool, pod: Pod, ctx: Context) -> bool | KubewrightError:
        """Add the container to one pod: True if it was, False if it never will be, else why it was not this time.

        A strategic merge patch with the one entry leaves all others alone, since the list is merged by name. It is not
        server-side apply: what is applied is owned, and what is owned could be taken away again. The pod's uid makes a
        namesake refuse the patch.
        """
        container = container_for(tool, pod)
        patch = {"metadata": {"uid": pod.metadata.uid}, "spec": {"ephemeralContainers": [container]}}
        try:
            await ctx.client.patch_by_name(
                Pod, pod.key, patch, patch_type="strategic", subresource="ephemeralcontainers"
            )
        except ApiError as error:
            refusal = refusal_of(error, pod, ctx.now())
            if refusal is not None:
                self._refusals.add(tool, pod, refusal)
                ctx.event(refusal.reason, f"pod {refusal.pod}: {refusal.message}", type="Warning")
                return False
            return False if isinstance(error, NotFound) else error  # not found: the pod is gone, which is fine
        except KubewrightError as error:
            return error
        return True


async def _room(tool: PodBuggerTool, ctx: Context) -> int:
    """How many more pods may have the container: those that do not match any more count, too."""
    pods = await ctx.client.list(Pod, namespace=tool.metadata.namespace)
    return max(0, tool.spec.max_pods - sum(holds(pod, tool) and is_wanted(pod) for pod in pods))
