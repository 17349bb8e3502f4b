"""What is done about SidecarSet objects: count their pods, and replace images in those that are out of date.

Injection is not done here but by the webhook for pods, when they are created. A pod that was missed stays as it is.
"""

from kubewright import Context, NotFound, Result, Watch, controller, find_condition
from kubewright.controllers import any_change, labels_changed
from kubewright.errors import Forbidden, Invalid
from kubewright.k8s.core.v1 import Namespace, Pod

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.census import Census, take_census
from sidecarset.defaults import defaulted
from sidecarset.hashes import Revision, revision_of
from sidecarset.inplace import update_patch
from sidecarset.rollout import plan_of
from sidecarset.selection import Selection, is_open, takes_part
from sidecarset.status import GAUGES, Verdict, conditions_of, count
from sidecarset.validation import faults_of
from sidecarset.wakeups import Wakeups, pod_matters

__all__ = ("reconcile",)

_RETRY_REFUSED = 300.0
"""Seconds until a pod is tried again that somebody else's rules keep from being changed."""

_wakeups = Wakeups()
"""Fed by the watches below. What it may still know of an earlier reconcile triggers a needless one, at worst."""


@controller(
    SidecarSet,
    watches=[
        Watch(SidecarSet, _wakeups.note, any_change),
        Watch(Pod, _wakeups.by_pod, pod_matters),
        Watch(Namespace, _wakeups.by_namespace, labels_changed),
    ],
    gauges=GAUGES,
)
async def reconcile(sidecarset: SidecarSet, ctx: Context) -> Result | None:
    """Bring the pods of a set up to date, as far as its strategy lets them be, and say how far they are."""
    desired = defaulted(sidecarset)
    if faults := faults_of(desired):
        ctx.condition("Ready", False, reason="InvalidSpec", message=str(faults))
        return None
    revision = revision_of(desired.spec)
    strategy = desired.spec.update_strategy
    pods = await _pods_in_scope(desired, ctx)
    census = take_census(pods.values(), sidecarset.metadata.name)
    _tell_broken(census, ctx)

    refused = 0
    for member in plan_of(census.members, revision, strategy).now:
        try:
            pods |= await _update(member.pod, desired, revision, ctx)
        except (Forbidden, Invalid) as error:
            refused += 1
            ctx.event("UpdateFailed", str(error), type="Warning", about=member.pod, related=sidecarset)

    census = take_census(pods.values(), sidecarset.metadata.name)
    count(sidecarset.status, census, revision)
    for verdict in conditions_of(desired.spec, sidecarset.status, plan_of(census.members, revision, strategy)):
        _tell(verdict, sidecarset, ctx)
    return Result(requeue_after=_RETRY_REFUSED) if refused else None


async def _pods_in_scope(sidecarset: SidecarSet, ctx: Context) -> dict[str, Pod]:
    """The pods that the set is about, injected or not, by uid."""
    selection = Selection.of(sidecarset.spec)
    namespaces = {item.metadata.name: item for item in await ctx.client.list(Namespace)}
    found = {}
    for pod in await ctx.client.list(Pod, labels=selection.pods):
        namespace = namespaces.get(pod.metadata.namespace)
        if (
            takes_part(pod)
            and is_open(pod.metadata.namespace, namespace)
            and selection.covers(pod.metadata.labels, namespace)
        ):
            found[pod.metadata.uid] = pod
    return found


async def _update(pod: Pod, sidecarset: SidecarSet, revision: Revision, ctx: Context) -> dict[str, Pod]:
    """Change the images of one pod; the pod as it is then, or nothing if it is gone.

    If somebody else has changed it since it was read, the Conflict ends this reconcile; the next one reads it again.
    """
    patch = update_patch(pod, sidecarset, revision)
    try:
        updated = await ctx.client.patch_by_name(Pod, pod.key, patch, patch_type="strategic")
    except NotFound:
        return {}
    images = ", ".join(f"{item['name']} to {item['image']}" for item in patch["spec"]["containers"]) or "nothing"
    message = f"SidecarSet {sidecarset.metadata.name} changed {images}"
    ctx.event("SidecarUpdated", message, about=updated, related=sidecarset)
    return {updated.metadata.uid: updated}


def _tell_broken(census: Census, ctx: Context) -> None:
    for pod, error in census.broken:
        ctx.event("BrokenRecord", str(error), type="Warning", about=pod)


def _tell(verdict: Verdict, sidecarset: SidecarSet, ctx: Context) -> None:
    """Set a condition; that updates are blocked is worth an event as well, each time there are more or fewer."""
    before = find_condition(sidecarset.status.conditions, verdict.type)
    said = before is not None and before.status == "True" and before.message == verdict.message
    if verdict.type == "UpdateBlocked" and verdict.holds and not said:
        ctx.event("UpdateBlocked", verdict.message, type="Warning")
    ctx.condition(verdict.type, verdict.holds, reason=verdict.reason, message=verdict.message)
