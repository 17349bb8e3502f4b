"""ResourceClaims of pods: the marks on them, which claims a pod has, and for whom one is held.

Pure, and without a controller of its own: `housekeeping.resource_claims` makes claims and lets them go, the scheduler
of `nodes` gives them devices.
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
    "CLAIM_OF_POD",
    "FINALIZER",
    "PodClaim",
    "claim_keys",
    "has_claims",
    "is_done",
    "not_its_own",
    "pod_claims",
    "reservation",
)

CLAIM_OF_POD: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim that was made for a pod: what the pod calls it."""
FINALIZER: Final = "resource.kubernetes.io/delete-protection"


def _concerns_claims(change: Change[Any]) -> bool:  # hot
    state = change.after or change.before
    return state is not None and bool(state.object.spec.resource_claims)


has_claims: Final = Predicate(_concerns_claims, "has_claims")
"""Changes of pods with claims. Most pods have none, and are not looked at any further."""


@final
class PodClaim(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a pod's `resourceClaims`."""

    entry: str
    """What the pod calls it."""
    template: str = ""
    """What the claim is made from; empty if the pod names a claim that others make."""
    name: str = ""
    """The claim; empty until it is made."""


def pod_claims(pod: Pod) -> tuple[PodClaim, ...]:
    """The claims a pod wants, without those that were found to be needless."""
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
    """The claims of a pod that have a name."""
    if not pod.spec.resource_claims:
        return frozenset()
    return frozenset(ObjectKey(pod.metadata.namespace, claim.name) for claim in pod_claims(pod) if claim.name)


def is_done(pod: Pod) -> bool:
    """Whether none of its containers will ever run again."""
    deleted = pod.metadata.deletion_timestamp is not None and not pod.spec.node_name
    return deleted or pod.status.phase in ("Succeeded", "Failed")


def not_its_own(claim: ResourceClaim, pod: Pod) -> str:
    """Why a claim made from a template is not the pod's; empty if it is."""
    if is_controlled_by(claim, pod):
        return ""
    return f"ResourceClaim {claim.key} was not created for pod {pod.key} (pod is not owner)"


def reservation(pod: Pod) -> dict[str, Any]:
    """What a claim says of a pod that uses it."""
    return {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
