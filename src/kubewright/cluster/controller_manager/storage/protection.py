"""PVCProtection, PVProtection and VACProtection: remove the protection finalizer from objects that are not in use.

The API server's admission adds the finalizers. A claim is in use while a pod with a node refers to it, a volume while
it is bound, a VolumeAttributesClass while a volume or a claim has it. Before it removes a finalizer, a controller lists
the users from the server too: a stale cache must not lose data. After pkg/controller/volume/pvcprotection, pvprotection
and vacprotection. Registered by `controllers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.cluster.objects import volumes
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.mapping import for_each
from kubewright.controllers.predicates import any_version
from kubewright.errors import NotFound
from kubewright.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kubewright.k8s.storage.v1 import VolumeAttributesClass

__all__ = ("pv_protection_controller", "pvc_protection_controller", "vac_protection_controller")

_VAC_FINALIZER: Final = "kubernetes.io/vac-protection"
_PVC_FINALIZER: Final = "kubernetes.io/pvc-protection"
_PV_FINALIZER: Final = "kubernetes.io/pv-protection"


def pvc_protection_controller() -> Declaration[PersistentVolumeClaim]:
    """PVCProtection: releases terminating claims that no pod uses."""

    async def reconcile(claim: PersistentVolumeClaim, ctx: Context) -> None:
        if not _is_deletion_candidate(claim, _PVC_FINALIZER):
            return
        for source in (ctx.client, ctx.client.live):
            pods = await source.list(Pod, namespace=claim.metadata.namespace)
            if any(pod.spec.node_name and claim.key in _claim_keys(pod) for pod in pods):
                return
        await _remove_finalizer(claim, _PVC_FINALIZER, ctx)

    declare = controller(
        PersistentVolumeClaim,
        name="pvc-protection-controller",
        watches=[Watch(Pod, for_each(_claim_keys))],
        deleting=True,
    )
    return declare(reconcile)


def pv_protection_controller() -> Declaration[PersistentVolume]:
    """PVProtection: releases terminating volumes that are not bound."""

    async def reconcile(volume: PersistentVolume, ctx: Context) -> None:
        if _is_deletion_candidate(volume, _PV_FINALIZER) and volume.status.phase != "Bound":
            await _remove_finalizer(volume, _PV_FINALIZER, ctx)

    # any_version: the status says whether it is bound, and a status change does not change the generation.
    return controller(PersistentVolume, name="pv-protection-controller", when=any_version, deleting=True)(reconcile)


def vac_protection_controller() -> Declaration[VolumeAttributesClass]:
    """VACProtection: releases terminating classes that no volume and no claim has."""

    async def reconcile(attributes_class: VolumeAttributesClass, ctx: Context) -> None:
        if not _is_deletion_candidate(attributes_class, _VAC_FINALIZER):
            return
        for source in (ctx.client, ctx.client.live):
            claims = await source.list(PersistentVolumeClaim)
            bound = await source.list(PersistentVolume)
            used = {volume.spec.volume_attributes_class_name for volume in bound}
            used.update(name for claim in claims for name in _attributes_class_names(claim))
            if attributes_class.metadata.name in used:
                return
        await _remove_finalizer(attributes_class, _VAC_FINALIZER, ctx)

    def classes_of_volume(volume: PersistentVolume) -> Iterable[ObjectKey]:
        name = volume.spec.volume_attributes_class_name
        return [ObjectKey("", name)] if name else []

    def classes_of_claim(claim: PersistentVolumeClaim) -> Iterable[ObjectKey]:
        return [ObjectKey("", name) for name in _attributes_class_names(claim)]

    declare = controller(
        VolumeAttributesClass,
        name="volumeattributesclass-protection-controller",
        watches=[
            Watch(PersistentVolume, for_each(classes_of_volume)),
            Watch(PersistentVolumeClaim, for_each(classes_of_claim)),
        ],
        deleting=True,
    )
    return declare(reconcile)


def _attributes_class_names(claim: PersistentVolumeClaim) -> list[str]:
    """The classes in a claim's spec, in its status and in a modification in progress."""
    modify_status = claim.status.modify_volume_status
    names = (
        claim.spec.volume_attributes_class_name,
        claim.status.current_volume_attributes_class_name,
        modify_status.target_volume_attributes_class_name if modify_status is not None else None,
    )
    return [name for name in names if name]


def _claim_keys(pod: Pod) -> Iterable[ObjectKey]:
    """The claims of a pod, including those of its ephemeral volumes."""
    return [ObjectKey(pod.metadata.namespace, name) for name in volumes.pod_claim_names(pod)]


def _is_deletion_candidate(obj: KubeObject, finalizer: str) -> bool:
    return obj.metadata.deletion_timestamp is not None and finalizer in obj.metadata.finalizers


async def _remove_finalizer(obj: KubeObject, finalizer: str, ctx: Context) -> None:
    obj.metadata.finalizers.remove(finalizer)
    with suppress(NotFound):
        await ctx.patch(obj, optimistic_lock=True)
