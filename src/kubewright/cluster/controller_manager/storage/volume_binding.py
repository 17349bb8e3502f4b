"""PersistentVolumeController: binds claims and volumes, and reclaims volumes whose claim is deleted.

It reconciles claims and volumes. A claim gets the volume it names, the volume that names it, or the smallest that
matches; a claim of a class with a provisioner is annotated for it and bound when the volume exists. The scheduler binds
claims of WaitForFirstConsumer. There are no disks to erase: hostPath volumes below /tmp are deleted as objects,
deletion of others fails. After pkg/controller/volume/persistentvolume/pv_controller.go. Registered by `controllers`.
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

__all__ = ("PersistentVolumeController",)

_NAME: Final = "persistentvolume-controller"
_CLAIM_REF_INDEX: Final = "volume binding: claim"
_IN_TREE_PREFIX: Final = "kubernetes.io/"


@final
class PersistentVolumeController:
    """Syncs PersistentVolumeClaims and PersistentVolumes."""

    def __init__(self) -> None:
        self._unbound: set[ObjectKey] = set()

    def declarations(self) -> tuple[Declaration[Any], ...]:
        """The controllers to register with a manager."""
        claims = controller(
            PersistentVolumeClaim,
            name=_NAME,
            when=any_version,
            watches=[
                Watch(PersistentVolumeClaim, self._claim_changed),
                Watch(PersistentVolume, self._volume_changed),
                Watch(StorageClass, self._class_changed),
            ],
        )(self.sync_claim)
        volumes = controller(
            PersistentVolume,
            name=_NAME,
            when=any_version,
            indexes={_CLAIM_REF_INDEX: _claim_ref_key},
            watches=[Watch(PersistentVolumeClaim, by_index(_CLAIM_REF_INDEX, lambda claim: (str(claim.key),)))],
            deleting=True,
        )(self.sync_volume)
        return claims, volumes

    # --- claims ---

    async def sync_claim(self, claim: PersistentVolumeClaim, ctx: Context) -> None:
        """Bind a claim, or report why it cannot be bound."""
        name = claim.spec.volume_name
        volume = await ctx.client.find(PersistentVolume, name) if name else None
        if BIND_COMPLETED in claim.metadata.annotations:
            await self._sync_bound_claim(claim, volume, ctx)
        elif not name:
            await self._sync_unbound_claim(claim, ctx)
        elif volume is None:
            await _update_claim_status(claim, "Pending", None, ctx)
        elif is_bound_to(volume, claim):
            await _bind(volume, claim, ctx)
        elif volume.spec.claim_ref is not None:
            ctx.event("FailedBinding", f'volume "{name}" already bound to a different claim.', type="Warning")
            await _update_claim_status(claim, "Pending", None, ctx)
        elif (error := volume_mismatch(volume, claim)) is not None:
            ctx.event("VolumeMismatch", f'Cannot bind to requested volume "{name}": {error}', type="Warning")
            await _update_claim_status(claim, "Pending", None, ctx)
        else:
            await _bind(volume, claim, ctx)

    async def _sync_bound_claim(
        self, claim: PersistentVolumeClaim, volume: PersistentVolume | None, ctx: Context
    ) -> None:
        """Complete the binding of a bound claim, or mark it Lost."""
        if volume is not None:
            reference = volume.spec.claim_ref
            if reference is None or reference.uid == claim.metadata.uid:
                await _bind(volume, claim, ctx)
                return
            reason = "ClaimMisbound"
            message = "Two claims are bound to the same volume, this one is bound incorrectly"
        else:
            reason = "ClaimLost"
            lost_reference = "its PersistentVolume" if claim.spec.volume_name else "reference to PersistentVolume"
            message = f"Bound claim has lost {lost_reference}. Data on the volume is lost!"
        if claim.status.phase != "Lost":
            await _update_claim_status(claim, "Lost", None, ctx)
            ctx.event(reason, message, type="Warning")

    async def _sync_unbound_claim(self, claim: PersistentVolumeClaim, ctx: Context) -> None:
        storage_class = (
            await ctx.client.find(StorageClass, storage_class_name(claim)) if storage_class_name(claim) else None
        )
        delayed = is_delayed_binding(storage_class)
        volumes = await ctx.client.list(PersistentVolume)
        volume = find_matching_volume(claim, volumes, prebound_only=delayed)
        if volume is not None:
            await _bind(volume, claim, ctx)
            return
        if await _assign_default_storage_class(claim, ctx):
            return
        if delayed and SELECTED_NODE not in claim.metadata.annotations:
            ctx.event(*await _delayed_binding_event(claim, ctx))
        elif storage_class_name(claim):
            await _request_provisioning(claim, storage_class, ctx)
            return
        else:
            reason = "no persistent volumes available for this claim and no storage class is set"
            ctx.event("FailedBinding", reason)
        await _update_claim_status(claim, "Pending", None, ctx)

    # --- volumes ---

    async def sync_volume(self, volume: PersistentVolume, ctx: Context) -> None:
        """Update the phase of a volume; reclaim it when its claim is deleted."""
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            await _update_volume_phase(volume, "Available", ctx)
            return
        claim = await _bound_claim(volume, ctx)
        if claim is None:
            await self._reclaim_volume(volume, ctx)
        elif not claim.spec.volume_name:
            if (volume.spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem"):
                _report_volume_mode_mismatch(volume, claim, ctx)
        elif claim.spec.volume_name == volume.metadata.name:
            await _update_volume_phase(volume, "Bound", ctx)
        elif PROVISIONED_BY in volume.metadata.annotations and _reclaim_policy(volume) == "Delete":
            await self._reclaim_volume(volume, ctx)
        else:
            await _unbind_volume(volume, ctx)

    async def _reclaim_volume(self, volume: PersistentVolume, ctx: Context) -> None:
        if volume.status.phase not in ("Released", "Failed"):
            volume = await _update_volume_phase(volume, "Released", ctx)
        if _reclaim_policy(volume) == "Delete":
            error = _deletion_error(volume)
            if error is None:
                with suppress(NotFound):
                    if volume.metadata.deletion_timestamp is None:
                        await ctx.client.delete(volume)
            elif error:
                await _mark_failed(volume, "VolumeFailedDelete", error, ctx)
        elif _reclaim_policy(volume) == "Recycle" and volume.spec.host_path is None and volume.spec.nfs is None:
            await _mark_failed(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!", ctx)

    # --- event handlers ---

    def _claim_changed(self, change: Change[PersistentVolumeClaim]) -> Iterable[ObjectKey]:
        if change.new is not None and BIND_COMPLETED not in change.new.metadata.annotations:
            self._unbound.add(change.key)
        else:
            self._unbound.discard(change.key)
        return ()

    def _volume_changed(self, change: Change[PersistentVolume]) -> Iterable[ObjectKey]:
        """The claim of the volume; all unbound claims when the volume becomes available."""
        found = {ObjectKey.parse(key) for state in (change.old, change.new) if state for key in _claim_ref_key(state)}
        if change.new is not None and change.new.status.phase == "Available":
            found |= self._unbound
        return found

    def _class_changed(self, change: Change[StorageClass]) -> Iterable[ObjectKey]:
        return tuple(self._unbound)


# --- writes ---


async def _bind(volume: PersistentVolume, claim: PersistentVolumeClaim, ctx: Context) -> None:
    """Write claimRef, volume phase, claim and claim status, in this order and each once. If a write fails, the next
    sync continues from there: the volume's claimRef is the transaction, as upstream explains in pv_controller.go."""
    patch = bind_patch(volume, claim)
    if patch is not None:
        volume = await ctx.client.patch_by_name(PersistentVolume, volume.key, patch)
    volume = await _update_volume_phase(volume, "Bound", ctx)
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
    await _update_claim_status(claim, "Bound", volume, ctx)


async def _unbind_volume(volume: PersistentVolume, ctx: Context) -> None:
    """The claim has another volume: remove the claimRef, or only its uid if a user pre-bound the volume."""
    metadata: dict[str, Any] = {"resourceVersion": volume.metadata.resource_version}
    reference: dict[str, Any] | None = {"uid": None}
    if BOUND_BY_CONTROLLER in volume.metadata.annotations:
        metadata["annotations"], reference = {BOUND_BY_CONTROLLER: None}, None
    patch = {"metadata": metadata, "spec": {"claimRef": reference}}
    volume = await ctx.client.patch_by_name(PersistentVolume, volume.key, patch)
    await _update_volume_phase(volume, "Available", ctx)


async def _update_claim_status(
    claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None, ctx: Context
) -> None:
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


async def _update_volume_phase(
    volume: PersistentVolume, phase: str, ctx: Context, message: str = ""
) -> PersistentVolume:
    if volume.status.phase == phase:
        return volume
    status = {"phase": phase, "message": message or None}
    patch = {"metadata": {"resourceVersion": volume.metadata.resource_version}, "status": status}
    return await ctx.client.patch_by_name(PersistentVolume, volume.key, patch, subresource="status")


async def _mark_failed(volume: PersistentVolume, reason: str, message: str, ctx: Context) -> None:
    if volume.status.phase != "Failed":
        await _update_volume_phase(volume, "Failed", ctx, message)
        ctx.event(reason, message, type="Warning")


async def _assign_default_storage_class(claim: PersistentVolumeClaim, ctx: Context) -> bool:
    """Set the default class on a claim that was created before there was one; whether it did."""
    if claim.spec.storage_class_name is not None or storage_class_name(claim):
        return False
    defaults = [item for item in await ctx.client.list(StorageClass) if _is_default(item)]
    if not defaults:
        return False
    # The newest default class, and of several the first by name.
    defaults.sort(key=lambda item: item.metadata.name)
    newest = max(defaults, key=lambda item: item.metadata.creation_timestamp or ctx.now())
    patch = {
        "metadata": {"resourceVersion": claim.metadata.resource_version},
        "spec": {"storageClassName": newest.metadata.name},
    }
    await ctx.client.patch_by_name(PersistentVolumeClaim, claim.key, patch)
    return True


async def _request_provisioning(claim: PersistentVolumeClaim, storage_class: StorageClass | None, ctx: Context) -> None:
    """Annotate the claim for the external provisioner of its class."""
    if storage_class is None:
        message = f'storageclass.storage.k8s.io "{storage_class_name(claim)}" not found'
        ctx.event("ProvisioningFailed", message, type="Warning")
        return
    provisioner = storage_class.provisioner
    if provisioner.startswith(_IN_TREE_PREFIX):
        ctx.event("ProvisioningFailed", f"no volume plugin matched name: {provisioner}", type="Warning")
        return
    annotations = {
        name: provisioner for name in STORAGE_PROVISIONERS if claim.metadata.annotations.get(name) != provisioner
    }
    if annotations:
        patch = {"metadata": {"resourceVersion": claim.metadata.resource_version, "annotations": annotations}}
        await ctx.client.patch_by_name(PersistentVolumeClaim, claim.key, patch)
    message = (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
        "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
        "correctly registered."
    )
    ctx.event("ExternalProvisioning", message)


# --- lookups ---


async def _delayed_binding_event(claim: PersistentVolumeClaim, ctx: Context) -> tuple[str, str]:
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


async def _bound_claim(volume: PersistentVolume, ctx: Context) -> PersistentVolumeClaim | None:
    """The claim with the uid of the volume's claimRef; a missing one is read from the server too."""
    reference = volume.spec.claim_ref
    assert reference is not None
    key = ObjectKey(reference.namespace or "", reference.name or "")
    claim = await ctx.client.find(PersistentVolumeClaim, key)
    if claim is None or claim.metadata.uid != reference.uid:
        claim = await ctx.client.live.find(PersistentVolumeClaim, key)
    return None if claim is None or claim.metadata.uid != reference.uid else claim


def _report_volume_mode_mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim, ctx: Context) -> None:
    claim_part = f'"{claim.metadata.name}" due to incompatible volumeMode.'
    ctx.event(
        "VolumeMismatch",
        f"Cannot bind PersistentVolume to requested PersistentVolumeClaim {claim_part}",
        type="Warning",
    )
    message = (
        f'Cannot bind PersistentVolume "{volume.metadata.name}" to requested PersistentVolumeClaim due to '
        "incompatible volumeMode."
    )
    ctx.event("VolumeMismatch", message, type="Warning", about=claim)


def _deletion_error(volume: PersistentVolume) -> str | None:
    """Why the deletion of a volume fails; empty if an external provisioner deletes it, None if it can be deleted."""
    provisioner = volume.metadata.annotations.get(PROVISIONED_BY, "")
    if volume.spec.csi is not None or (provisioner and not provisioner.startswith(_IN_TREE_PREFIX)):
        return ""
    if volume.spec.host_path is None:
        deleter = "no deletable volume plugin matched"
        return f'error getting deleter volume plugin for volume "{volume.metadata.name}": {deleter}'
    path = volume.spec.host_path.path
    if not path.startswith("/tmp/") or len(path) <= len("/tmp/"):  # noqa: S108 - the rule of upstream
        return f"host_path deleter only supports /tmp/.+ but received provided {path}"
    return None


def _claim_ref_key(volume: PersistentVolume) -> Iterable[str]:
    reference = volume.spec.claim_ref
    return (str(ObjectKey(reference.namespace or "", reference.name or "")),) if reference is not None else ()


def _reclaim_policy(volume: PersistentVolume) -> str:
    return volume.spec.persistent_volume_reclaim_policy or "Retain"


def _is_default(storage_class: StorageClass) -> bool:
    return storage_class.metadata.annotations.get(IS_DEFAULT_CLASS) == "true"
