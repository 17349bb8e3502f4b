"""EphemeralVolumeController: creates the PersistentVolumeClaims of generic ephemeral volumes.

The pod owns the claim, so the garbage collector deletes it with the pod. After
pkg/controller/volume/ephemeral/controller.go. Registered by `controllers`.
"""

from __future__ import annotations

from typing import Any

from kubewright.api.codec import copy_of
from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.owners import owner_reference
from kubewright.cache.changes import Change
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.mapping import to_owner
from kubewright.controllers.predicates import Predicate, on
from kubewright.errors import AlreadyExists, ApiError
from kubewright.k8s.core.v1 import PersistentVolumeClaim, PersistentVolumeClaimSpec, Pod, Volume

__all__ = ("ephemeral_volume_controller",)


def ephemeral_volume_controller() -> Declaration[Pod]:
    """The controller of pods with generic ephemeral volumes."""

    async def reconcile(pod: Pod, ctx: Context) -> None:
        if pod.status.phase in ("Succeeded", "Failed"):
            return
        for volume in pod.spec.volumes or ():
            if volume.ephemeral is not None:
                await _ensure_claim(pod, volume, ctx)

    watch = Watch(PersistentVolumeClaim, to_owner(Pod), when=on("deleted"))
    when = Predicate(_has_ephemeral_volumes, "has_ephemeral_volumes")
    return controller(Pod, name="ephemeral-volume-controller", when=when, watches=[watch])(reconcile)


async def _ensure_claim(pod: Pod, volume: Volume, ctx: Context) -> None:
    key = ObjectKey(pod.metadata.namespace, f"{pod.metadata.name}-{volume.name}")
    existing = await ctx.client.find(PersistentVolumeClaim, key)
    if existing is None:
        try:
            await ctx.client.create(_claim(pod, volume, key))
        except AlreadyExists:
            existing = await ctx.client.live.get(PersistentVolumeClaim, key)
        except ApiError as error:
            message = f"ephemeral volume {volume.name}: create PVC {key.name}: {error.message}"
            ctx.event("FailedBinding", message, type="Warning")
            raise
    if existing is not None and all(each.uid != pod.metadata.uid for each in existing.metadata.owner_references):
        error_message = f"PVC {key} was not created for pod {pod.key} (pod is not owner)"
        ctx.event("FailedBinding", f"ephemeral volume {volume.name}: {error_message}", type="Warning")


def _claim(pod: Pod, volume: Volume, key: ObjectKey) -> PersistentVolumeClaim:
    assert volume.ephemeral is not None
    template = volume.ephemeral.volume_claim_template
    metadata = template.metadata if template is not None else None
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=key.name,
            namespace=key.namespace,
            labels=dict(metadata.labels) if metadata is not None else {},
            annotations=dict(metadata.annotations) if metadata is not None else {},
            owner_references=[owner_reference(pod, controller=True, block_owner_deletion=True)],
        ),
        spec=copy_of(template.spec) if template is not None else PersistentVolumeClaimSpec(),
    )


def _has_ephemeral_volumes(change: Change[Any]) -> bool:
    """Volumes of a pod are immutable, so only a new pod needs a sync."""
    if change.old_metadata is not None or change.new is None:
        return False
    return any(volume.ephemeral is not None for volume in change.new.spec.volumes or ())
