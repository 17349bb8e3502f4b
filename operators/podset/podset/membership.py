"""Which pods belong to which set.

A pod belongs to the set whose uid its managing owner reference has; the label is only how pods are found. The two can
part: a pod with the label and no manager is taken in, one that is managed and lost the label is let go, and replaced.
"""

from collections.abc import Iterable, Sequence

from kubewright import Conflict, Context, NotFound, ObjectKey, controller_of
from kubewright.api import definition_of
from kubewright.controllers import Predicate
from kubewright.errors import Invalid
from kubewright.k8s.core.v1 import Pod

from podset.api.v1alpha1.podset import PodSet
from podset.pods import LABEL, is_deleting, is_ready


def set_in_label(pod: Pod) -> Iterable[ObjectKey]:
    """The set that a pod's label names: where it belongs, or might be taken in."""
    name = pod.metadata.labels.get(LABEL)
    return (ObjectKey(pod.metadata.namespace, name),) if name else ()


pod_matters = Predicate(
    lambda change: change.old is None or change.new is None or _facts(change.old) != _facts(change.new), "pod_matters"
)
"""A pod came, went, or changed in something that this operator looks at."""


def _facts(pod: Pod) -> tuple[object, ...]:
    return (
        pod.metadata.deletion_timestamp,
        pod.metadata.labels,
        pod.metadata.owner_references,
        pod.spec.node_name,
        pod.status.phase,
        is_ready(pod),
    )


def belongs(pod: Pod, podset: PodSet) -> bool:
    """Whether this very set, not a former one of the same name, manages the pod."""
    manager = controller_of(pod)
    return manager is not None and manager.uid == podset.metadata.uid


def is_labelled(pod: Pod, podset: PodSet) -> bool:
    """Whether the pod carries the set's label."""
    return pod.metadata.labels.get(LABEL) == podset.metadata.name


async def claim(podset: PodSet, pods: Sequence[Pod], ctx: Context) -> list[Pod]:
    """The pods of the set among all these, after taking in and letting go."""
    members = [pod for pod in pods if belongs(pod, podset)]
    for stray in [pod for pod in members if not is_labelled(pod, podset) and not is_deleting(pod)]:
        await _release(podset, stray, ctx)
        members.remove(stray)
    orphans = [pod for pod in pods if is_labelled(pod, podset) and controller_of(pod) is None and not is_deleting(pod)]
    if orphans:
        await ctx.confirm()  # a set that is deleted or terminating must not adopt pods
        members += [pod for orphan in orphans if (pod := await _adopt(podset, orphan, ctx)) is not None]
    return members


async def _adopt(podset: PodSet, pod: Pod, ctx: Context) -> Pod | None:
    reference = {
        "apiVersion": definition_of(PodSet).api_version,
        "kind": podset.kind,
        "name": podset.metadata.name,
        "uid": podset.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    adopted = await _patch_references(pod, reference, ctx)
    if adopted is not None:
        ctx.event("PodAdopted", f"took in pod {pod.metadata.name}, which nobody managed")
    return adopted


async def _release(podset: PodSet, pod: Pod, ctx: Context) -> None:
    if await _patch_references(pod, {"$patch": "delete", "uid": podset.metadata.uid}, ctx) is not None:
        ctx.event("PodReleased", f"let go of pod {pod.metadata.name}, which lost the label {LABEL}")


async def _patch_references(pod: Pod, reference: dict[str, object], ctx: Context) -> Pod | None:
    """Merge one owner reference into the pod's; None if this very pod is gone.

    References are merged by uid, so those of others stay. The pod's own uid makes a namesake refuse the patch.
    """
    patch = {"metadata": {"uid": pod.metadata.uid, "ownerReferences": [reference]}}
    try:
        return await ctx.client.patch_by_name(Pod, pod.key, patch, patch_type="strategic")
    except (NotFound, Conflict, Invalid) as error:
        ctx.log.info("a pod could not be claimed", pod=pod.metadata.name, error=str(error))
        return None
