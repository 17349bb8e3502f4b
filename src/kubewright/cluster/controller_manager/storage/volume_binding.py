"""Brings claims and volumes together, and sees what becomes of a volume when its claim is gone.

Two controllers, one of claims and one of volumes, with the rules and words of kube-controller-manager's: a claim gets
the volume it names, or that names it, or the smallest that suits; a claim of a class with a provisioner is marked for
that one, and bound when the volume is there. Claims that wait for their first pod are left to the scheduler. Without a
machine there is nothing to erase: volumes of a folder below /tmp are deleted as objects, others cannot be. Registered
by `housekeeping_controllers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, final

from kubewright.api.codec import to_tree
from kubewright.api.names import ObjectKey
from kubewright.cache.changes import Change
from kubewright.cluster.objects.volumes import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    IS_DEFAULT_CLASS,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONERS,
    bind_patch,
    find_matching_volume,
    is_bound_to,
    is_delayed_binding,
    pod_claim_names,
    storage_class_name,
    volume_mismatch,
)
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.mapping import by_index
from kubewright.controllers.predicates import any_version
from kubewright.errors import NotFound
from kubewright.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kubewright.k8s.storage.v1 import StorageClass

__all__ = ("VolumeBinding",)

_NAME: Final = "persistentvolume-controller"
_BY_CLAIM: Final = "volume binding: claim"
_OF_KUBERNETES: Final = "kubernetes.io/"


@final
class VolumeBinding:
    """One for a cluster."""

    def __init__(self) -> None:
        self._unbound: set[ObjectKey] = set()

    def declarations(self) -> tuple[Declaration[Any], ...]:
        """What a manager registers."""
        claims = controller(
            PersistentVolumeClaim,
            name=_NAME,
            when=any_version,
            watches=[
                Watch(PersistentVolumeClaim, self._note),
                Watch(PersistentVolume, self._on_volume),
                Watch(StorageClass, self._on_class),
            ],
        )(self.look_at_claim)
        volumes = controller(
            PersistentVolume,
            name=_NAME,
            when=any_version,
            indexes={_BY_CLAIM: _claim_of},
            watches=[Watch(PersistentVolumeClaim, by_index(_BY_CLAIM, lambda claim: (str(claim.key),)))],
            deleting=True,
        )(self.look_at_volume)
        return claims, volumes

    # --- claims ---

    async def look_at_claim(self, claim: PersistentVolumeClaim, ctx: Context) -> None:
        """Bind a claim, or say why not."""
        name = claim.spec.volume_name
        volume = await ctx.client.find(PersistentVolume, name) if name else None
        if BIND_COMPLETED in claim.metadata.annotations:
            await self._keep(claim, volume, ctx)
        elif not name:
            await self._find(claim, ctx)
        elif volume is None:
            await _say_phase(claim, "Pending", None, ctx)
        elif is_bound_to(volume, claim):
            await _bind(volume, claim, ctx)
        elif volume.spec.claim_ref is not None:
            ctx.event("FailedBinding", f'volume "{name}" already bound to a different claim.', type="Warning")
            await _say_phase(claim, "Pending", None, ctx)
        elif (problem := volume_mismatch(volume, claim)) is not None:
            ctx.event("VolumeMismatch", f'Cannot bind to requested volume "{name}": {problem}', type="Warning")
            await _say_phase(claim, "Pending", None, ctx)
        else:
            await _bind(volume, claim, ctx)

    async def _keep(self, claim: PersistentVolumeClaim, volume: PersistentVolume | None, ctx: Context) -> None:
        """A claim that was bound stays so, or is lost."""
        if volume is not None:
            reference = volume.spec.claim_ref
            if reference is None or reference.uid == claim.metadata.uid:
                await _bind(volume, claim, ctx)
                return
            reason = "ClaimMisbound"
            message = "Two claims are bound to the same volume, this one is bound incorrectly"
        else:
            reason = "ClaimLost"
            what = "its PersistentVolume" if claim.spec.volume_name else "reference to PersistentVolume"
            message = f"Bound claim has lost {what}. Data on the volume is lost!"
        if claim.status.phase != "Lost":
            await _say_phase(claim, "Lost", None, ctx)
            ctx.event(reason, message, type="Warning")

    async def _find(self, claim: PersistentVolumeClaim, ctx: Context) -> None:
        storage_class = (
            await ctx.client.find(StorageClass, storage_class_name(claim)) if storage_class_name(claim) else None
        )
        delayed = is_delayed_binding(storage_class)
        volumes = await ctx.client.list(PersistentVolume)
        volume = find_matching_volume(claim, volumes, prebound_only=delayed)
        if volume is not None:
            await _bind(volume, claim, ctx)
            return
        if await _give_default_class(claim, ctx):
            return
        if delayed and SELECTED_NODE not in claim.metadata.annotations:
            ctx.event(*await _waits_for(claim, ctx))
        elif storage_class_name(claim):
            await _ask_for_volume(claim, storage_class, ctx)
            return
        else:
            reason = "no persistent volumes available for this claim and no storage class is set"
            ctx.event("FailedBinding", reason)
        await _say_phase(claim, "Pending", None, ctx)

    # --- volumes ---

    async def look_at_volume(self, volume: PersistentVolume, ctx: Context) -> None:
        """Say what state a volume is in, and let it go when its claim is gone."""
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            await _say_volume(volume, "Available", ctx)
            return
        claim = await _claim_for(volume, ctx)
        if claim is None:
            await self._release(volume, ctx)
        elif not claim.spec.volume_name:
            if (volume.spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem"):
                _tell_modes_apart(volume, claim, ctx)
        elif claim.spec.volume_name == volume.metadata.name:
            await _say_volume(volume, "Bound", ctx)
        elif PROVISIONED_BY in volume.metadata.annotations and _policy(volume) == "Delete":
            await self._release(volume, ctx)
        else:
            await _unbind(volume, ctx)

    async def _release(self, volume: PersistentVolume, ctx: Context) -> None:
        if volume.status.phase not in ("Released", "Failed"):
            volume = await _say_volume(volume, "Released", ctx)
        if _policy(volume) == "Delete":
            problem = _undeletable(volume)
            if problem is None:
                with suppress(NotFound):
                    if volume.metadata.deletion_timestamp is None:
                        await ctx.client.delete(volume)
            elif problem:
                await _fail(volume, "VolumeFailedDelete", problem, ctx)
        elif _policy(volume) == "Recycle" and volume.spec.host_path is None and volume.spec.nfs is None:
            await _fail(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!", ctx)

    # --- who is woken ---

    def _note(self, change: Change[PersistentVolumeClaim]) -> Iterable[ObjectKey]:
        if change.new is not None and BIND_COMPLETED not in change.new.metadata.annotations:
            self._unbound.add(change.key)
        else:
            self._unbound.discard(change.key)
        return ()

    def _on_volume(self, change: Change[PersistentVolume]) -> Iterable[ObjectKey]:
        """The claims that the volume names, or that name it; all that wait, when it becomes available."""
        found = {ObjectKey.parse(key) for state in (change.old, change.new) if state for key in _claim_of(state)}
        if change.new is not None and change.new.status.phase == "Available":
            found |= self._unbound
        return found

    def _on_class(self, change: Change[StorageClass]) -> Iterable[ObjectKey]:
        return tuple(self._unbound)


# --- what is written ---


async def _bind(volume: PersistentVolume, claim: PersistentVolumeClaim, ctx: Context) -> None:
    """In this order, each once: whatever comes between, the next look goes on from there."""
    patch = bind_patch(volume, claim)
    if patch is not None:
        volume = await ctx.client.patch_by_name(PersistentVolume, volume.key, patch)
    volume = await _say_volume(volume, "Bound", ctx)
    annotations: dict[str, str] = {}
    metadata: dict[str, Any] = {"resourceVersion": claim.metadata.resource_version, "annotations": annotations}
    change: dict[str, Any] = {"metadata": metadata}
    if claim.spec.volume_name != volume.metadata.name:
        change["spec"] = {"volumeName": volume.metadata.name}
        annotations[BOUND_BY_CONTROLLER] = "yes"
    if BIND_COMPLETED not in claim.metadata.annotations:
        annotations[BIND_COMPLETED] = "yes"
    if annotations:
        claim = await ctx.client.patch_by_name(PersistentVolumeClaim, claim.key, change)
    await _say_phase(claim, "Bound", volume, ctx)


async def _unbind(volume: PersistentVolume, ctx: Context) -> None:
    """The claim has another: the volume is free again, for that claim alone if it was made so."""
    metadata: dict[str, Any] = {"resourceVersion": volume.metadata.resource_version}
    reference: dict[str, Any] | None = {"uid": None}
    if BOUND_BY_CONTROLLER in volume.metadata.annotations:
        metadata["annotations"], reference = {BOUND_BY_CONTROLLER: None}, None
    patch = {"metadata": metadata, "spec": {"claimRef": reference}}
    volume = await ctx.client.patch_by_name(PersistentVolume, volume.key, patch)
    await _say_volume(volume, "Available", ctx)


async def _say_phase(claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None, ctx: Context) -> None:
    before = to_tree(claim.status)
    status: dict[str, Any] = {"phase": phase}
    if volume is None:
        status |= dict.fromkeys(("accessModes", "capacity", "currentVolumeAttributesClassName"))
    else:
        spec = to_tree(volume.spec)
        status["accessModes"] = spec.get("accessModes")
        if claim.status.phase != phase:
            status["capacity"] = spec.get("capacity")
        if claim.status.phase == "Pending":
            status["currentVolumeAttributesClassName"] = spec.get("volumeAttributesClassName")
    changed = {name: value for name, value in status.items() if before.get(name) != value}
    if changed:
        patch = {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": changed}
        await ctx.client.patch_by_name(PersistentVolumeClaim, claim.key, patch, subresource="status")


async def _say_volume(volume: PersistentVolume, phase: str, ctx: Context, message: str = "") -> PersistentVolume:
    if volume.status.phase == phase:
        return volume
    status = {"phase": phase, "message": message or None}
    patch = {"metadata": {"resourceVersion": volume.metadata.resource_version}, "status": status}
    return await ctx.client.patch_by_name(PersistentVolume, volume.key, patch, subresource="status")


async def _fail(volume: PersistentVolume, reason: str, message: str, ctx: Context) -> None:
    if volume.status.phase != "Failed":
        await _say_volume(volume, "Failed", ctx, message)
        ctx.event(reason, message, type="Warning")


async def _give_default_class(claim: PersistentVolumeClaim, ctx: Context) -> bool:
    """To a claim that asked for none in particular, before there was one."""
    if claim.spec.storage_class_name is not None or storage_class_name(claim):
        return False
    marked = [item for item in await ctx.client.list(StorageClass) if _is_default(item)]
    if not marked:
        return False
    # The newest, and of equally new ones the first by name.
    marked.sort(key=lambda item: item.metadata.name)
    newest = max(marked, key=lambda item: item.metadata.creation_timestamp or ctx.now())
    patch = {
        "metadata": {"resourceVersion": claim.metadata.resource_version},
        "spec": {"storageClassName": newest.metadata.name},
    }
    await ctx.client.patch_by_name(PersistentVolumeClaim, claim.key, patch)
    return True


async def _ask_for_volume(claim: PersistentVolumeClaim, storage_class: StorageClass | None, ctx: Context) -> None:
    """Mark the claim for the provisioner of its class, which is never one of ours."""
    if storage_class is None:
        message = f'storageclass.storage.k8s.io "{storage_class_name(claim)}" not found'
        ctx.event("ProvisioningFailed", message, type="Warning")
        return
    provisioner = storage_class.provisioner
    if provisioner.startswith(_OF_KUBERNETES):
        ctx.event("ProvisioningFailed", f"no volume plugin matched name: {provisioner}", type="Warning")
        return
    marks = {name: provisioner for name in STORAGE_PROVISIONERS if claim.metadata.annotations.get(name) != provisioner}
    if marks:
        patch = {"metadata": {"resourceVersion": claim.metadata.resource_version, "annotations": marks}}
        await ctx.client.patch_by_name(PersistentVolumeClaim, claim.key, patch)
    message = (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
        "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
        "correctly registered."
    )
    ctx.event("ExternalProvisioning", message)


# --- what is looked up ---


async def _waits_for(claim: PersistentVolumeClaim, ctx: Context) -> tuple[str, str]:
    pods = [
        pod.metadata.name
        for pod in await ctx.client.list(Pod, namespace=claim.metadata.namespace)
        if not pod.spec.node_name
        and claim.metadata.name in pod_claim_names(pod)
        and pod.status.phase not in ("Succeeded", "Failed")
    ]
    if not pods:
        return "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
    names = ",".join(pods)
    return "WaitForPodScheduled", f"waiting for {'pods' if len(pods) > 1 else 'pod'} {names} to be scheduled"


async def _claim_for(volume: PersistentVolume, ctx: Context) -> PersistentVolumeClaim | None:
    """The very claim that a volume is bound to; asked of the server before it is said to be gone."""
    reference = volume.spec.claim_ref
    assert reference is not None
    key = ObjectKey(reference.namespace or "", reference.name or "")
    claim = await ctx.client.find(PersistentVolumeClaim, key)
    if claim is None or claim.metadata.uid != reference.uid:
        claim = await ctx.client.live.find(PersistentVolumeClaim, key)
    return None if claim is None or claim.metadata.uid != reference.uid else claim


def _tell_modes_apart(volume: PersistentVolume, claim: PersistentVolumeClaim, ctx: Context) -> None:
    of_claim = f'"{claim.metadata.name}" due to incompatible volumeMode.'
    ctx.event(
        "VolumeMismatch", f"Cannot bind PersistentVolume to requested PersistentVolumeClaim {of_claim}", type="Warning"
    )
    message = (
        f'Cannot bind PersistentVolume "{volume.metadata.name}" to requested PersistentVolumeClaim due to '
        "incompatible volumeMode."
    )
    ctx.event("VolumeMismatch", message, type="Warning", about=claim)


def _undeletable(volume: PersistentVolume) -> str | None:
    """Why a volume cannot be deleted here; empty if somebody else will do so, None if it can be."""
    provisioner = volume.metadata.annotations.get(PROVISIONED_BY, "")
    if volume.spec.csi is not None or (provisioner and not provisioner.startswith(_OF_KUBERNETES)):
        return ""
    if volume.spec.host_path is None:
        deleter = "no deletable volume plugin matched"
        return f'error getting deleter volume plugin for volume "{volume.metadata.name}": {deleter}'
    path = volume.spec.host_path.path
    if not path.startswith("/tmp/") or len(path) <= len("/tmp/"):  # noqa: S108 - the rule of the real one
        return f"host_path deleter only supports /tmp/.+ but received provided {path}"
    return None


def _claim_of(volume: PersistentVolume) -> Iterable[str]:
    reference = volume.spec.claim_ref
    return (str(ObjectKey(reference.namespace or "", reference.name or "")),) if reference is not None else ()


def _policy(volume: PersistentVolume) -> str:
    return volume.spec.persistent_volume_reclaim_policy or "Retain"


def _is_default(storage_class: StorageClass) -> bool:
    return storage_class.metadata.annotations.get(IS_DEFAULT_CLASS) == "true"
