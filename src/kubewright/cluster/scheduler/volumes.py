"""What the claims of a pod have to say about where it can go, and how they are bound to where it goes.

The part of the scheduler that knows volumes; the words are kube-scheduler's. A pod waits until each of its claims is
bound. Claims that wait for their first pod get an existing volume that can be used on the chosen node, or are marked
with the node for their provisioner; the pod follows when they are bound. Called by `scheduler`.
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
from kubewright.cluster.scheduler.filters import NodeInfo, matches_terms
from kubewright.controllers.context import Context
from kubewright.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kubewright.k8s.storage.v1 import StorageClass

__all__ = ("VolumeBinder", "storage_of")

_WRONG_NODE: Final = "node(s) didn't match PersistentVolume's node affinity"
_NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
_GONE: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


@final
class VolumeBinder(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of one pod at one moment."""

    problem: str = ""
    """Why no node at all will do; empty if one may."""
    bound: Sequence[PersistentVolume | None] = ()
    """The volumes it has; None for one that is gone."""
    waiting: Sequence[PersistentVolumeClaim] = ()
    """Claims that are bound when the pod has a node."""
    classes: Mapping[str, StorageClass] = {}
    volumes: Sequence[PersistentVolume] = ()

    def reasons(self, node: NodeInfo) -> tuple[str, ...]:
        """Why the pod cannot have its volumes on a node."""
        found: list[str] = []
        if any(volume is not None and not _usable(volume, node) for volume in self.bound):
            found.append(_WRONG_NODE)
        if any(not self._can_be_bound(claim, node) for claim in self.waiting):
            found.append(_NO_VOLUME)
        if None in self.bound:
            found.append(_GONE)
        return tuple(found)

    async def settle(self, node: NodeInfo, ctx: Context) -> None:
        """Have the claims bound to where the pod is to go."""
        left = list(self.volumes)
        for claim in self.waiting:
            volume = find_matching_volume(claim, left, fits=lambda each: _usable(each, node))
            if volume is not None:
                left.remove(volume)
                patch = bind_patch(volume, claim)
                if patch is not None:
                    await ctx.client.patch_by_name(PersistentVolume, volume.key, patch)
            elif claim.metadata.annotations.get(SELECTED_NODE) != node.name:
                metadata: dict[str, Any] = {"resourceVersion": claim.metadata.resource_version}
                metadata["annotations"] = {SELECTED_NODE: node.name}
                await ctx.client.patch_by_name(PersistentVolumeClaim, claim.key, {"metadata": metadata})

    def _can_be_bound(self, claim: PersistentVolumeClaim, node: NodeInfo) -> bool:
        chosen = claim.metadata.annotations.get(SELECTED_NODE)
        if chosen is not None:
            return chosen == node.name
        if find_matching_volume(claim, self.volumes, fits=lambda volume: _usable(volume, node)) is not None:
            return True
        storage_class = self.classes[storage_class_name(claim)]
        return storage_class.provisioner != NO_PROVISIONER and _allowed(storage_class, node)


async def storage_of(pod: Pod, ctx: Context) -> VolumeBinder | None:
    """The claims of a pod; None if it has none, which is most pods."""
    names = pod_claim_names(pod)
    if not names:
        return None
    claims, classes = [], {}
    for name, own in names.items():
        claim = await ctx.client.find(PersistentVolumeClaim, ObjectKey(pod.metadata.namespace, name))
        problem = _problem(name, claim, pod, own=own)
        if claim is None or problem:
            return VolumeBinder(problem=problem)
        claims.append(claim)
    waiting = [claim for claim in claims if not _is_bound(claim)]
    for claim in waiting:
        storage_class = (
            await ctx.client.find(StorageClass, storage_class_name(claim)) if storage_class_name(claim) else None
        )
        if claim.spec.volume_name or not is_delayed_binding(storage_class):
            return VolumeBinder(problem="pod has unbound immediate PersistentVolumeClaims")
        assert storage_class is not None
        classes[storage_class_name(claim)] = storage_class
    volumes = [claim.spec.volume_name for claim in claims if _is_bound(claim)]
    return VolumeBinder(
        bound=[await ctx.client.find(PersistentVolume, name or "") for name in volumes],
        waiting=waiting,
        classes=classes,
        volumes=(await ctx.client.list(PersistentVolume)).items if waiting else (),
    )


def _problem(name: str, claim: PersistentVolumeClaim | None, pod: Pod, *, own: bool) -> str:
    if claim is None:
        if own:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if own and not any(each.uid == pod.metadata.uid and each.controller for each in claim.metadata.owner_references):
        return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
    return ""


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def _usable(volume: PersistentVolume, node: NodeInfo) -> bool:
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    return required is None or matches_terms(required.node_selector_terms, node)


def _allowed(storage_class: StorageClass, node: NodeInfo) -> bool:
    terms = storage_class.allowed_topologies
    return not terms or any(
        all(node.labels.get(item.key) in item.values for item in term.match_label_expressions or ()) for term in terms
    )
