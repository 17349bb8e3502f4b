"""Volumes and claims that are in use are not deleted: their finalizers go when nobody uses them any more.

The API server puts the finalizers on when the objects are made. A claim is in use while a pod that has a node names it;
a volume is, while it is bound to a claim. Registered by `housekeeping_controllers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.mapping import for_each
from kubewright.controllers.predicates import any_version
from kubewright.errors import NotFound
from kubewright.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod

__all__ = ("claim_protection", "volume_protection")

_CLAIM: Final = "kubernetes.io/pvc-protection"
_VOLUME: Final = "kubernetes.io/pv-protection"


def claim_protection() -> Declaration[PersistentVolumeClaim]:
    """Lets claims go that no pod uses."""

    async def release(claim: PersistentVolumeClaim, ctx: Context) -> None:
        if not _is_leaving(claim, _CLAIM):
            return
        pods = await ctx.client.list(Pod, namespace=claim.metadata.namespace)
        if not any(pod.spec.node_name and claim.key in claims_of(pod) for pod in pods):
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


def claims_of(pod: Pod) -> Iterable[ObjectKey]:
    """The claims that a pod names, and those that are made for it."""
    found = []
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            found.append(f"{pod.metadata.name}-{volume.name}")
    return [ObjectKey(pod.metadata.namespace, name) for name in found]


def _is_leaving(obj: KubeObject, finalizer: str) -> bool:
    return obj.metadata.deletion_timestamp is not None and finalizer in obj.metadata.finalizers


async def _let_go(obj: KubeObject, finalizer: str, ctx: Context) -> None:
    obj.metadata.finalizers.remove(finalizer)
    with suppress(NotFound):
        await ctx.patch(obj, optimistic_lock=True)
