"""Volumes, claims and attributes classes that are in use are not deleted: their finalizers go when nobody uses them.

The API server puts the finalizers on when the objects are made. A claim is in use while a pod that has a node names it;
a volume is, while it is bound to a claim; a class, while a volume or a claim has it. What the cache does not show as
used is looked for on the server before it is let go, for that cannot be taken back. Registered by
`housekeeping_controllers`.
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

__all__ = ("attributes_protection", "claim_protection", "volume_protection")

_ATTRIBUTES: Final = "kubernetes.io/vac-protection"
_CLAIM: Final = "kubernetes.io/pvc-protection"
_VOLUME: Final = "kubernetes.io/pv-protection"


def claim_protection() -> Declaration[PersistentVolumeClaim]:
    """Lets claims go that no pod uses."""

    async def release(claim: PersistentVolumeClaim, ctx: Context) -> None:
        if not _is_leaving(claim, _CLAIM):
            return
        for source in (ctx.client, ctx.client.live):
            pods = await source.list(Pod, namespace=claim.metadata.namespace)
            if any(pod.spec.node_name and claim.key in claims_of(pod) for pod in pods):
                return
        await _let_go(claim, _CLAIM, ctx)

    declare = controller(
        PersistentVolumeClaim,
        name="pvc-protection-controller",
        watches=[Watch(Pod, for_each(claims_of))],
        deleting=True,
    )
    return declare(release)


def volume_protection() -> Declaration[PersistentVolume]:
    """Lets volumes go that are not bound."""

    async def release(volume: PersistentVolume, ctx: Context) -> None:
        if _is_leaving(volume, _VOLUME) and volume.status.phase != "Bound":
            await _let_go(volume, _VOLUME, ctx)

    # Its status says whether it is bound, and a change of that alone is no change of its generation.
    return controller(PersistentVolume, name="pv-protection-controller", when=any_version, deleting=True)(release)


def attributes_protection() -> Declaration[VolumeAttributesClass]:
    """Lets volume attributes classes go that no volume and no claim has."""

    async def release(found: VolumeAttributesClass, ctx: Context) -> None:
        if not _is_leaving(found, _ATTRIBUTES):
            return
        for source in (ctx.client, ctx.client.live):
            claims = await source.list(PersistentVolumeClaim)
            bound = await source.list(PersistentVolume)
            used = {volume.spec.volume_attributes_class_name for volume in bound}
            used.update(name for claim in claims for name in _classes_of(claim))
            if found.metadata.name in used:
                return
        await _let_go(found, _ATTRIBUTES, ctx)

    def of_volume(volume: PersistentVolume) -> Iterable[ObjectKey]:
        name = volume.spec.volume_attributes_class_name
        return [ObjectKey("", name)] if name else []

    def of_claim(claim: PersistentVolumeClaim) -> Iterable[ObjectKey]:
        return [ObjectKey("", name) for name in _classes_of(claim)]

    declare = controller(
        VolumeAttributesClass,
        name="volumeattributesclass-protection-controller",
        watches=[Watch(PersistentVolume, for_each(of_volume)), Watch(PersistentVolumeClaim, for_each(of_claim))],
        deleting=True,
    )
    return declare(release)


def _classes_of(claim: PersistentVolumeClaim) -> list[str]:
    """The attributes classes a claim has, wants and is being given."""
    changing = claim.status.modify_volume_status
    names = (
        claim.spec.volume_attributes_class_name,
        claim.status.current_volume_attributes_class_name,
        changing.target_volume_attributes_class_name if changing is not None else None,
    )
    return [name for name in names if name]


def claims_of(pod: Pod) -> Iterable[ObjectKey]:
    """The claims that a pod names, and those that are made for it."""
    return [ObjectKey(pod.metadata.namespace, name) for name in volumes.pod_claim_names(pod)]


def _is_leaving(obj: KubeObject, finalizer: str) -> bool:
    return obj.metadata.deletion_timestamp is not None and finalizer in obj.metadata.finalizers


async def _let_go(obj: KubeObject, finalizer: str, ctx: Context) -> None:
    obj.metadata.finalizers.remove(finalizer)
    with suppress(NotFound):
        await ctx.patch(obj, optimistic_lock=True)
