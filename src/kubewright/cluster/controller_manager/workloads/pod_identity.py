"""The identity of a pod of a StatefulSet: ordinal, name, host name and volumes.

Pure, after pkg/controller/statefulset/stateful_set_utils.go. The ordinal is the end of the name; everything else
follows from it. Called by `statefulset` and `volume_claims`.
"""

from __future__ import annotations

import copy
import re
from typing import Final

from kubewright.cluster.controller_manager.workloads.pods import pod_from_template
from kubewright.cluster.controller_manager.workloads.revisions import REVISION_LABEL
from kubewright.k8s.apps.v1 import StatefulSet
from kubewright.k8s.core.v1 import PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume

__all__ = (
    "POD_INDEX",
    "POD_NAME",
    "claim_name",
    "first_ordinal",
    "identity_matches",
    "is_in_ordinal_range",
    "is_member_of",
    "new_pod",
    "ordinal_of",
    "volumes_for",
)

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_NAME: Final = re.compile(r"(.*)-([0-9]+)")


def ordinal_of(pod: Pod) -> int:
    """The ordinal of a pod; -1 if its name has none."""
    match = _NAME.fullmatch(pod.metadata.name)
    return int(match[2]) if match is not None else -1


def is_member_of(owner: StatefulSet, pod: Pod) -> bool:
    """Whether the name of a pod is one of this set."""
    match = _NAME.fullmatch(pod.metadata.name)
    return match is not None and match[1] == owner.metadata.name


def first_ordinal(owner: StatefulSet) -> int:
    """The first ordinal of the set."""
    return (owner.spec.ordinals.start or 0) if owner.spec.ordinals is not None else 0


def is_in_ordinal_range(owner: StatefulSet, pod: Pod) -> bool:
    """Whether the ordinal of a pod is within `replicas`."""
    first = first_ordinal(owner)
    count = 1 if owner.spec.replicas is None else owner.spec.replicas
    return first <= ordinal_of(pod) < first + count


def claim_name(template: str, pod: str) -> str:
    """The name of the claim of a pod for a claim template."""
    return f"{template}-{pod}"


def new_pod(owner: StatefulSet, template: PodTemplateSpec, revision: str, ordinal: int) -> Pod:
    """A pod with this ordinal from the template of a revision."""
    pod = pod_from_template(template, owner.metadata.name)
    name = f"{owner.metadata.name}-{ordinal}"
    pod.metadata.name = name
    pod.metadata.namespace = owner.metadata.namespace
    pod.metadata.labels |= {POD_NAME: name, POD_INDEX: str(ordinal), REVISION_LABEL: revision}
    pod.spec = copy.copy(pod.spec)
    pod.spec.hostname = name
    pod.spec.subdomain = owner.spec.service_name or None
    pod.spec.volumes = volumes_for(owner, pod) or None
    return pod


def volumes_for(owner: StatefulSet, pod: Pod) -> list[Volume]:
    """The pod's volumes; volumes of claim templates replace volumes of the same name."""
    names = [template.metadata.name for template in owner.spec.volume_claim_templates or ()]
    claimed = [
        Volume(
            name=name,
            persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim_name(name, pod.metadata.name)),
        )
        for name in names
    ]
    return [*claimed, *(volume for volume in pod.spec.volumes or () if volume.name not in names)]


def identity_matches(pod: Pod) -> bool:
    """Whether the label pod-name has the name of the pod."""
    return pod.metadata.labels.get(POD_NAME) == pod.metadata.name
