"""ResourceClaims of pods: annotations, finalizer, the claims of a pod, and the reservation of a claim.

Pure. `controller_manager.storage.resource_claims` creates and releases claims, `scheduler.devices` allocates devices to
them. Follows staging/src/k8s.io/dynamic-resource-allocation/resourceclaim.
"""

from __future__ import annotations

from typing import Any, Final, final

import msgspec

from kubewright.api.names import ObjectKey
from kubewright.api.owners import is_controlled_by
from kubewright.cache.changes import Change
from kubewright.controllers.predicates import Predicate
from kubewright.k8s.core.v1 import Pod
from kubewright.k8s.resource.v1 import ResourceClaim

__all__ = (
    "FINALIZER",
    "POD_CLAIM_NAME",
    "PodClaim",
    "claim_keys",
    "consumer_reference",
    "has_claims",
    "is_pod_done",
    "ownership_error",
    "pod_claims",
)

POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim that was generated for a pod: the name of the entry in `pod.spec.resourceClaims`."""
FINALIZER: Final = "resource.kubernetes.io/delete-protection"


def _pod_has_claims(change: Change[Any]) -> bool:  # hot
    state = change.after or change.before
    return state is not None and bool(state.object.spec.resource_claims)


has_claims: Final = Predicate(_pod_has_claims, "has_claims")
"""Passes changes of pods with ResourceClaims; most pods have none."""


@final
class PodClaim(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a pod's `resourceClaims`."""

    entry: str
    """The name of the entry."""
    template: str = ""
    """The ResourceClaimTemplate; empty if the pod names an existing claim."""
    name: str = ""
    """The name of the ResourceClaim; empty until the controller has generated it."""


def pod_claims(pod: Pod) -> tuple[PodClaim, ...]:
    """The claims of a pod, without entries for which the controller decided that no claim is needed."""
    entries = pod.spec.resource_claims
    if not entries:
        return ()
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()}
    found = []
    for each in entries:
        template = each.resource_claim_template_name or ""
        if each.resource_claim_name:
            found.append(PodClaim(entry=each.name, name=each.resource_claim_name))
        elif each.name not in made:
            found.append(PodClaim(entry=each.name, template=template))
        elif name := made[each.name]:
            found.append(PodClaim(entry=each.name, template=template, name=name))
    return tuple(found)


def claim_keys(pod: Pod) -> frozenset[ObjectKey]:
    """The keys of the pod's claims that have a name."""
    if not pod.spec.resource_claims:
        return frozenset()
    return frozenset(ObjectKey(pod.metadata.namespace, claim.name) for claim in pod_claims(pod) if claim.name)


def is_pod_done(pod: Pod) -> bool:
    """Whether no container of the pod will run again; isPodDone of pkg/controller/resourceclaim/controller.go."""
    deleted = pod.metadata.deletion_timestamp is not None and not pod.spec.node_name
    return deleted or pod.status.phase in ("Succeeded", "Failed")


def ownership_error(claim: ResourceClaim, pod: Pod) -> str:
    """Why a claim generated from a template does not belong to the pod; empty if it does."""
    if is_controlled_by(claim, pod):
        return ""
    return f"ResourceClaim {claim.key} was not created for pod {pod.key} (pod is not owner)"


def consumer_reference(pod: Pod) -> dict[str, Any]:
    """The entry of `status.reservedFor` for a pod."""
    return {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
