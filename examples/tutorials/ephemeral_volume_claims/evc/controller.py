"""The reconciler of EphemeralVolumeClaim: one PersistentVolumeClaim for each, until nobody uses it."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from kubewright import Context, ObjectKey, Result, Watch, controller, for_each
from kubewright.errors import Forbidden, Invalid
from kubewright.k8s.core.v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
    VolumeResourceRequirements,
)

from evc.api import EphemeralVolumeClaim


def claims_of(pod: Pod) -> Iterable[ObjectKey]:
    """The claims that a pod names: each has the name of its EphemeralVolumeClaim, if it belongs to one."""
    for volume in pod.spec.volumes or []:
        if volume.persistent_volume_claim is not None:
            yield ObjectKey(pod.metadata.namespace, volume.persistent_volume_claim.claim_name)


@controller(EphemeralVolumeClaim, owns=[PersistentVolumeClaim], watches=[Watch(Pod, for_each(claims_of))])
async def reconcile(evc: EphemeralVolumeClaim, ctx: Context) -> Result | None:
    """Create and update are one: apply what is wanted, and say what is there."""
    claim = await keep_claim(evc, ctx)
    evc.status.claim = claim.metadata.name
    evc.status.phase = claim.status.phase or "Pending"
    evc.status.capacity = (claim.status.capacity or {}).get("storage")
    if evc.spec.delete_after is None:
        return None
    return await delete_when_idle(evc, ctx, evc.spec.delete_after.to_timedelta())


async def keep_claim(evc: EphemeralVolumeClaim, ctx: Context) -> PersistentVolumeClaim:
    """The claim, with the size and the labels it is to have; or as it is, if the cluster refuses that."""
    try:
        claim = await ctx.apply(claim_for(evc))
    except (Invalid, Forbidden) as error:  # a claim without a volume cannot grow, nor one whose class does not let it
        ctx.condition("Fits", False, reason="Refused", message=str(error))
        return await ctx.client.get(PersistentVolumeClaim, evc.metadata.name)
    ctx.condition("Fits", True, reason="Applied")
    return claim


async def delete_when_idle(evc: EphemeralVolumeClaim, ctx: Context, delete_after: timedelta) -> Result | None:
    """What a timer would do, without one: look again when it may be time."""
    pods = await ctx.client.list(Pod)
    if any(ctx.key in claims_of(pod) and is_active(pod) for pod in pods):
        evc.status.last_used = ctx.now()
        return None
    last_used = evc.status.last_used or created(evc)
    left = (last_used + delete_after - ctx.now()).total_seconds()
    if left > 0:
        return Result(requeue_after=left)
    ctx.event("Idle", f"no pod has used it since {last_used:%Y-%m-%d %H:%M:%S}")
    await ctx.delete(evc)  # and the claim goes with its owner
    return None


def claim_for(evc: EphemeralVolumeClaim) -> PersistentVolumeClaim:
    """The claim that is to be. Labels taken off the owner are taken off here: nobody has to compare old and new."""
    return PersistentVolumeClaim.named(
        evc.metadata.name,
        labels=evc.metadata.labels,
        spec=PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            storage_class_name=evc.spec.storage_class,
            resources=VolumeResourceRequirements(requests={"storage": evc.spec.size}),
        ),
    )


def is_active(pod: Pod) -> bool:
    """Whether a pod still runs, or will."""
    return pod.status.phase not in ("Succeeded", "Failed")


def created(evc: EphemeralVolumeClaim) -> datetime:
    assert evc.metadata.creation_timestamp is not None
    return evc.metadata.creation_timestamp
