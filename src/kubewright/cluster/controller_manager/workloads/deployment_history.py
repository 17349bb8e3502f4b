"""Which ReplicaSet holds which revision of a Deployment, and the annotations that say so.

Pure. kubectl reads these annotations for `rollout history` and `rollout undo`, and an undo is nothing but an old
template put back into the Deployment: the set that has it becomes the new one again, with the next number.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

import msgspec

from kubewright.api.metadata import ObjectMeta
from kubewright.cluster.controller_manager.workloads.hashes import content_hash
from kubewright.k8s.apps.v1 import Deployment, ReplicaSet, ReplicaSetSpec
from kubewright.k8s.core.v1 import PodTemplateSpec
from kubewright.k8s.meta.v1 import LabelSelector

__all__ = (
    "DESIRED",
    "MAXIMUM",
    "REVISION",
    "REVISION_HISTORY",
    "TEMPLATE_HASH",
    "annotate_sizes",
    "annotations_for",
    "latest_revision",
    "new_replica_set",
    "revision_of",
    "same_template",
)

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
TEMPLATE_HASH = "pod-template-hash"

_NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        REVISION_HISTORY,
        DESIRED,
        MAXIMUM,
        "deprecated.deployment.rollback.to",
    }
)
_LONGEST_HISTORY = 2000
_LONGEST_NAME = 253


def revision_of(replica_set: ReplicaSet) -> int:
    """The number of its revision; 0 if it has none that can be read."""
    return _number(replica_set.metadata.annotations.get(REVISION, ""))


def latest_revision(sets: Iterable[ReplicaSet]) -> int:
    """The highest number among them."""
    return max(map(revision_of, sets), default=0)


def same_template(one: PodTemplateSpec | None, other: PodTemplateSpec | None) -> bool:
    """Whether two templates make the same pods, but for the label that tells revisions apart."""
    return _bare(one) == _bare(other)


def _bare(template: PodTemplateSpec | None) -> PodTemplateSpec:
    if template is None:
        return PodTemplateSpec(metadata=ObjectMeta())
    metadata = template.metadata or ObjectMeta()
    labels = {name: value for name, value in metadata.labels.items() if name != TEMPLATE_HASH}
    return PodTemplateSpec(metadata=msgspec.structs.replace(metadata, labels=labels), spec=template.spec)


def new_replica_set(deployment: Deployment, revision: int, *, maximum: int) -> ReplicaSet:
    """The set for the present template, without pods yet."""
    metadata, spec = deployment.metadata, deployment.spec
    value = content_hash(spec.template, deployment.status.collision_count)
    template = copy.copy(spec.template)
    template.metadata = copy.copy(template.metadata or ObjectMeta())
    template.metadata.labels = {**template.metadata.labels, TEMPLATE_HASH: value}
    selector = LabelSelector(
        match_labels={**(spec.selector.match_labels or {}), TEMPLATE_HASH: value},
        match_expressions=spec.selector.match_expressions,
    )
    made = ReplicaSet(
        metadata=ObjectMeta(
            name=f"{metadata.name[: _LONGEST_NAME - len(value) - 1]}-{value}",
            namespace=metadata.namespace,
            labels=dict(template.metadata.labels),
        ),
        spec=ReplicaSetSpec(
            replicas=0, min_ready_seconds=spec.min_ready_seconds or None, selector=selector, template=template
        ),
    )
    made.metadata.annotations = annotations_for(deployment, made, revision)
    annotate_sizes(made, desired=1 if spec.replicas is None else spec.replicas, maximum=maximum)
    return made


def annotations_for(deployment: Deployment, new: ReplicaSet, revision: int) -> dict[str, str]:
    """What the new set's annotations should be: the Deployment's own, its revision, and those it had before."""
    present = new.metadata.annotations
    copied = {name: value for name, value in deployment.metadata.annotations.items() if name not in _NOT_COPIED}
    wanted = {**present, **copied}
    before = present.get(REVISION, "")
    if before and not before.isdigit():  # somebody's own idea of a revision; it is theirs
        return wanted
    if _number(before) < revision:
        wanted[REVISION] = str(revision)
        if before:
            wanted[REVISION_HISTORY] = _history(present.get(REVISION_HISTORY, ""), before)
    return wanted


def _history(text: str, revision: str) -> str:
    numbers: Sequence[str] = [*filter(None, text.split(",")), revision]
    while len(numbers) > 1 and len(",".join(numbers)) > _LONGEST_HISTORY:
        numbers = numbers[1:]
    return ",".join(numbers)


def annotate_sizes(replica_set: ReplicaSet, *, desired: int, maximum: int) -> None:
    """Note how large the Deployment was when the set was last scaled. Changes the set."""
    replica_set.metadata.annotations = {
        **replica_set.metadata.annotations,
        DESIRED: str(desired),
        MAXIMUM: str(maximum),
    }


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
