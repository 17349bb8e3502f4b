"""The PersistentVolumeClaims of a StatefulSet's pods: made from its templates, kept or deleted as its policy says.

A claim outlives its pod, since the next pod of the same name wants the same data. Deleting is left to the garbage
collector: here the claim only gets the owner with which it is to go, the set or the pod.
"""

from __future__ import annotations

from kubewright.api.codec import copy_of, to_tree
from kubewright.api.metadata import ObjectMeta, OwnerReference
from kubewright.api.owners import owner_reference
from kubewright.cluster.controller_manager.workloads.identity import claim_name, in_range
from kubewright.controllers.context import Context
from kubewright.errors import AlreadyExists, ApiError, RetryAfter
from kubewright.k8s.apps.v1 import StatefulSet
from kubewright.k8s.core.v1 import PersistentVolumeClaim, Pod

__all__ = ("create_claims", "keep_claims")


async def create_claims(owner: StatefulSet, pod: Pod, ctx: Context) -> None:
    """Make those the pod needs and that are not there."""
    for template in owner.spec.volume_claim_templates or ():
        wanted = _claim(owner, pod, template)
        present = await ctx.client.find(PersistentVolumeClaim, wanted.key)
        if present is not None:
            if present.metadata.deletion_timestamp is not None:
                raise RetryAfter(5.0, f"pvc {wanted.metadata.name} is being deleted")
            continue
        subject = f"Claim {wanted.metadata.name}"
        try:
            await ctx.create(wanted, owned=False)
        except AlreadyExists:
            continue
        except ApiError as error:
            sentence = (
                f"Create {subject} for Pod {pod.metadata.name} in StatefulSet {owner.metadata.name} failed error: "
            )
            ctx.event("FailedCreate", sentence + error.message, type="Warning")
            raise
        ctx.event(
            "SuccessfulCreate", f"Create {subject} Pod {pod.metadata.name} in StatefulSet {owner.metadata.name} success"
        )


async def keep_claims(owner: StatefulSet, pod: Pod, ctx: Context) -> None:
    """See that each claim of a pod goes with whom the retention policy says."""
    for template in owner.spec.volume_claim_templates or ():
        present = await ctx.client.find(PersistentVolumeClaim, _claim(owner, pod, template).key)
        if present is None:
            continue
        references = _owners(owner, pod, present)
        if references is not None and references != present.metadata.owner_references:
            patch = {
                "metadata": {
                    "resourceVersion": present.metadata.resource_version,
                    "ownerReferences": [to_tree(each) for each in references] or None,
                }
            }
            await ctx.client.patch_by_name(PersistentVolumeClaim, present.key, patch)


def _claim(owner: StatefulSet, pod: Pod, template: PersistentVolumeClaim) -> PersistentVolumeClaim:
    made = copy_of(template)
    labels = {**template.metadata.labels, **(owner.spec.selector.match_labels or {})}
    made.metadata = ObjectMeta(
        name=claim_name(template.metadata.name, pod.metadata.name),
        namespace=owner.metadata.namespace,
        labels=labels,
        annotations=dict(template.metadata.annotations),
    )
    return made


def _owners(owner: StatefulSet, pod: Pod, claim: PersistentVolumeClaim) -> list[OwnerReference] | None:
    """Whom it should go with; None if that is somebody else's business."""
    policy = owner.spec.persistent_volume_claim_retention_policy
    with_set = policy is not None and policy.when_deleted == "Delete"
    with_pod = policy is not None and policy.when_scaled == "Delete" and not in_range(owner, pod)
    others = []
    for each in claim.metadata.owner_references:
        ours = (each.kind, each.name) in (("StatefulSet", owner.metadata.name), ("Pod", pod.metadata.name))
        if ours and each.uid not in (owner.metadata.uid, pod.metadata.uid):
            return None  # of an earlier one of the same name: the claim is about to be deleted
        if not ours:
            if each.controller and (with_set or with_pod):
                return None
            others.append(each)
    if with_pod:
        others.append(owner_reference(pod, controller=True, block_owner_deletion=True))
    elif with_set:
        others.append(owner_reference(owner, controller=True, block_owner_deletion=True))
    return others
