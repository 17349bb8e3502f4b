"""The PersistentVolumeClaims of a StatefulSet's pods, and their retention policy.

A claim outlives its pod, because the next pod of the same name needs the same data. The garbage collector deletes
claims: this module only sets the owner reference, to the set or to the pod, that the retention policy asks for. After
pkg/controller/statefulset/stateful_set_utils.go. Called by `statefulset`.
"""

from __future__ import annotations

from kubewright.api.codec import copy_of, to_tree
from kubewright.api.metadata import ObjectMeta, OwnerReference
from kubewright.api.owners import owner_reference
from kubewright.cluster.controller_manager.workloads.pod_identity import claim_name, is_in_ordinal_range
from kubewright.controllers.context import Context
from kubewright.errors import AlreadyExists, ApiError, RetryAfter
from kubewright.k8s.apps.v1 import StatefulSet
from kubewright.k8s.core.v1 import PersistentVolumeClaim, Pod

__all__ = ("create_claims", "update_claim_owners")


async def create_claims(owner: StatefulSet, pod: Pod, ctx: Context) -> None:
    """Create the missing claims of a pod."""
    for template in owner.spec.volume_claim_templates or ():
        claim = _new_claim(owner, pod, template)
        existing = await ctx.client.find(PersistentVolumeClaim, claim.key)
        if existing is not None:
            if existing.metadata.deletion_timestamp is not None:
                raise RetryAfter(5.0, f"pvc {claim.metadata.name} is being deleted")
            continue
        subject = f"Claim {claim.metadata.name}"
        try:
            await ctx.create(claim, owned=False)
        except AlreadyExists:
            continue
        except ApiError as error:
            message = (
                f"Create {subject} for Pod {pod.metadata.name} in StatefulSet {owner.metadata.name} failed error: "
            )
            ctx.event("FailedCreate", message + error.message, type="Warning")
            raise
        ctx.event(
            "SuccessfulCreate", f"Create {subject} Pod {pod.metadata.name} in StatefulSet {owner.metadata.name} success"
        )


async def update_claim_owners(owner: StatefulSet, pod: Pod, ctx: Context) -> None:
    """Set the owner references of a pod's claims as the retention policy says."""
    for template in owner.spec.volume_claim_templates or ():
        existing = await ctx.client.find(PersistentVolumeClaim, _new_claim(owner, pod, template).key)
        if existing is None:
            continue
        references = _desired_owners(owner, pod, existing)
        if references is not None and references != existing.metadata.owner_references:
            patch = {
                "metadata": {
                    "resourceVersion": existing.metadata.resource_version,
                    "ownerReferences": [to_tree(each) for each in references] or None,
                }
            }
            await ctx.client.patch_by_name(PersistentVolumeClaim, existing.key, patch)


def _new_claim(owner: StatefulSet, pod: Pod, template: PersistentVolumeClaim) -> PersistentVolumeClaim:
    new_claim = copy_of(template)
    labels = {**template.metadata.labels, **(owner.spec.selector.match_labels or {})}
    new_claim.metadata = ObjectMeta(
        name=claim_name(template.metadata.name, pod.metadata.name),
        namespace=owner.metadata.namespace,
        labels=labels,
        annotations=dict(template.metadata.annotations),
    )
    return new_claim


def _desired_owners(owner: StatefulSet, pod: Pod, claim: PersistentVolumeClaim) -> list[OwnerReference] | None:
    """The owner references that a claim should have; None if it must not be changed."""
    policy = owner.spec.persistent_volume_claim_retention_policy
    owned_by_set = policy is not None and policy.when_deleted == "Delete"
    owned_by_pod = policy is not None and policy.when_scaled == "Delete" and not is_in_ordinal_range(owner, pod)
    others = []
    for each in claim.metadata.owner_references:
        refers_to_us = (each.kind, each.name) in (("StatefulSet", owner.metadata.name), ("Pod", pod.metadata.name))
        if refers_to_us and each.uid not in (owner.metadata.uid, pod.metadata.uid):
            return None  # a deleted set or pod of the same name: the garbage collector is about to delete the claim
        if not refers_to_us:
            if each.controller and (owned_by_set or owned_by_pod):
                return None
            others.append(each)
    if owned_by_pod:
        others.append(owner_reference(pod, controller=True, block_owner_deletion=True))
    elif owned_by_set:
        others.append(owner_reference(owner, controller=True, block_owner_deletion=True))
    return others
