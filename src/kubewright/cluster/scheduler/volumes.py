"""The plugin VolumeBinding: filter nodes by the PersistentVolumes of a pod, and bind its delayed claims.

Before the pod is bound, each claim of the mode WaitForFirstConsumer gets an existing volume that the chosen node can
use, or the annotation selected-node for its provisioner. After
pkg/scheduler/framework/plugins/volumebinding/binder.go, with the same messages. Called by `scheduler`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

import msgspec

from kubewright.api.names import ObjectKey
from kubewright.cluster.objects.volumes import (
    BIND_COMPLETED,
    NO_PROVISIONER,
    SELECTED_NODE,
    bind_patch,
    find_matching_volume,
    is_delayed_binding,
    pod_claim_names,
    storage_class_name,
)
from kubewright.cluster.scheduler.node_affinity import matches_selector_terms
from kubewright.cluster.scheduler.node_info import NodeInfo
from kubewright.controllers.context import Context
from kubewright.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kubewright.k8s.storage.v1 import StorageClass

__all__ = ("VolumeBinder", "new_volume_binder")

_NODE_CONFLICT: Final = "node(s) didn't match PersistentVolume's node affinity"
_BIND_CONFLICT: Final = "node(s) didn't find available persistent volumes to bind"
_PV_NOT_EXIST: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


@final
class VolumeBinder(msgspec.Struct, frozen=True, kw_only=True):
    """The PersistentVolumeClaims of one pod, for one scheduling cycle."""

    pre_filter_error: str = ""
    """Why all nodes are rejected; empty if a node may fit."""
    bound_volumes: Sequence[PersistentVolume | None] = ()
    """The volumes of bound claims; None for one that does not exist."""
    unbound_claims: Sequence[PersistentVolumeClaim] = ()
    """Claims of delayed binding."""
    classes: Mapping[str, StorageClass] = {}
    volumes: Sequence[PersistentVolume] = ()

    def filter(self, node: NodeInfo) -> tuple[str, ...]:
        """The reasons against a node."""
        reasons: list[str] = []
        if any(volume is not None and not _matches_node_affinity(volume, node) for volume in self.bound_volumes):
            reasons.append(_NODE_CONFLICT)
        if any(not self._can_bind(claim, node) for claim in self.unbound_claims):
            reasons.append(_BIND_CONFLICT)
        if None in self.bound_volumes:
            reasons.append(_PV_NOT_EXIST)
        return tuple(reasons)

    async def pre_bind(self, node: NodeInfo, ctx: Context) -> None:
        """Bind the claims to volumes that the node can use, or select the node for their provisioner."""
        available = list(self.volumes)
        for claim in self.unbound_claims:
            volume = find_matching_volume(claim, available, fits=lambda each: _matches_node_affinity(each, node))
            if volume is not None:
                available.remove(volume)
                patch = bind_patch(volume, claim)
                if patch is not None:
                    await ctx.client.patch_by_name(PersistentVolume, volume.key, patch)
            elif claim.metadata.annotations.get(SELECTED_NODE) != node.name:
                metadata: dict[str, Any] = {"resourceVersion": claim.metadata.resource_version}
                metadata["annotations"] = {SELECTED_NODE: node.name}
                await ctx.client.patch_by_name(PersistentVolumeClaim, claim.key, {"metadata": metadata})

    def _can_bind(self, claim: PersistentVolumeClaim, node: NodeInfo) -> bool:
        chosen = claim.metadata.annotations.get(SELECTED_NODE)
        if chosen is not None:
            return chosen == node.name
        if (
            find_matching_volume(claim, self.volumes, fits=lambda volume: _matches_node_affinity(volume, node))
            is not None
        ):
            return True
        storage_class = self.classes[storage_class_name(claim)]
        return storage_class.provisioner != NO_PROVISIONER and _allows_topology(storage_class, node)


async def new_volume_binder(pod: Pod, ctx: Context) -> VolumeBinder | None:
    """The pre-filter: read the claims of a pod; None if it has none, as most pods."""
    names = pod_claim_names(pod)
    if not names:
        return None
    claims, classes = [], {}
    for name, ephemeral in names.items():
        claim = await ctx.client.find(PersistentVolumeClaim, ObjectKey(pod.metadata.namespace, name))
        pre_filter_error = _claim_error(name, claim, pod, ephemeral=ephemeral)
        if claim is None or pre_filter_error:
            return VolumeBinder(pre_filter_error=pre_filter_error)
        claims.append(claim)
    unbound_claims = [claim for claim in claims if not _is_bound(claim)]
    for claim in unbound_claims:
        storage_class = (
            await ctx.client.find(StorageClass, storage_class_name(claim)) if storage_class_name(claim) else None
        )
        if claim.spec.volume_name or not is_delayed_binding(storage_class):
            return VolumeBinder(pre_filter_error="pod has unbound immediate PersistentVolumeClaims")
        assert storage_class is not None
        classes[storage_class_name(claim)] = storage_class
    volumes = [claim.spec.volume_name for claim in claims if _is_bound(claim)]
    return VolumeBinder(
        bound_volumes=[await ctx.client.find(PersistentVolume, name or "") for name in volumes],
        unbound_claims=unbound_claims,
        classes=classes,
        volumes=(await ctx.client.list(PersistentVolume)).items if unbound_claims else (),
    )


def _claim_error(name: str, claim: PersistentVolumeClaim | None, pod: Pod, *, ephemeral: bool) -> str:
    if claim is None:
        if ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if ephemeral and not any(
        each.uid == pod.metadata.uid and each.controller for each in claim.metadata.owner_references
    ):
        return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
    return ""


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def _matches_node_affinity(volume: PersistentVolume, node: NodeInfo) -> bool:
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    return required is None or matches_selector_terms(required.node_selector_terms, node)


def _allows_topology(storage_class: StorageClass, node: NodeInfo) -> bool:
    terms = storage_class.allowed_topologies
    return not terms or any(
        all(node.labels.get(item.key) in item.values for item in term.match_label_expressions or ()) for term in terms
    )
