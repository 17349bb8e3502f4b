"""The revision annotations of ReplicaSets, and the new ReplicaSet of a Deployment.

Pure. kubectl reads these annotations for `rollout history` and `rollout undo`. An undo puts an old template back into
the Deployment: its ReplicaSet becomes the new one again, with the next revision. After
pkg/controller/deployment/util/deployment_util.go. Called by `deployment`.
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
    "DESIRED_REPLICAS",
    "MAX_REPLICAS",
    "REVISION",
    "REVISION_HISTORY",
    "TEMPLATE_HASH",
    "equal_ignore_hash",
    "max_revision",
    "new_replica_set",
    "new_replica_set_annotations",
    "revision_number",
    "set_replicas_annotations",
)

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
TEMPLATE_HASH = "pod-template-hash"

_SKIPPED_ANNOTATIONS = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
        "deprecated.deployment.rollback.to",
    }
)
_MAX_HISTORY_LENGTH = 2000
_MAX_NAME_LENGTH = 253


def revision_number(replica_set: ReplicaSet) -> int:
    """The revision of a ReplicaSet; 0 if it has no valid one."""
    return _number(replica_set.metadata.annotations.get(REVISION, ""))


def max_revision(sets: Iterable[ReplicaSet]) -> int:
    """The highest revision."""
    return max(map(revision_number, sets), default=0)


def equal_ignore_hash(one: PodTemplateSpec | None, other: PodTemplateSpec | None) -> bool:
    """Whether two templates are equal except for the label pod-template-hash."""
    return _without_hash(one) == _without_hash(other)


def _without_hash(template: PodTemplateSpec | None) -> PodTemplateSpec:
    if template is None:
        return PodTemplateSpec(metadata=ObjectMeta())
    metadata = template.metadata or ObjectMeta()
    labels = {name: value for name, value in metadata.labels.items() if name != TEMPLATE_HASH}
    return PodTemplateSpec(metadata=msgspec.structs.replace(metadata, labels=labels), spec=template.spec)


def new_replica_set(deployment: Deployment, revision: int, *, maximum: int) -> ReplicaSet:
    """The ReplicaSet of the current template, with 0 replicas."""
    metadata, spec = deployment.metadata, deployment.spec
    value = content_hash(spec.template, deployment.status.collision_count)
    template = copy.copy(spec.template)
    template.metadata = copy.copy(template.metadata or ObjectMeta())
    template.metadata.labels = {**template.metadata.labels, TEMPLATE_HASH: value}
    selector = LabelSelector(
        match_labels={**(spec.selector.match_labels or {}), TEMPLATE_HASH: value},
        match_expressions=spec.selector.match_expressions,
    )
    replica_set = ReplicaSet(
        metadata=ObjectMeta(
            name=f"{metadata.name[: _MAX_NAME_LENGTH - len(value) - 1]}-{value}",
            namespace=metadata.namespace,
            labels=dict(template.metadata.labels),
        ),
        spec=ReplicaSetSpec(
            replicas=0, min_ready_seconds=spec.min_ready_seconds or None, selector=selector, template=template
        ),
    )
    replica_set.metadata.annotations = new_replica_set_annotations(deployment, replica_set, revision)
    set_replicas_annotations(replica_set, desired=1 if spec.replicas is None else spec.replicas, maximum=maximum)
    return replica_set


def new_replica_set_annotations(deployment: Deployment, new: ReplicaSet, revision: int) -> dict[str, str]:
    """The annotations of the new ReplicaSet: its own, those of the Deployment, and revision and revision history."""
    existing = new.metadata.annotations
    copied = {
        name: value for name, value in deployment.metadata.annotations.items() if name not in _SKIPPED_ANNOTATIONS
    }
    annotations = {**existing, **copied}
    old_revision = existing.get(REVISION, "")
    if old_revision and not old_revision.isdigit():  # not set by this controller: keep it
        return annotations
    if _number(old_revision) < revision:
        annotations[REVISION] = str(revision)
        if old_revision:
            annotations[REVISION_HISTORY] = _history(existing.get(REVISION_HISTORY, ""), old_revision)
    return annotations


def _history(text: str, revision: str) -> str:
    numbers: Sequence[str] = [*filter(None, text.split(",")), revision]
    while len(numbers) > 1 and len(",".join(numbers)) > _MAX_HISTORY_LENGTH:
        numbers = numbers[1:]
    return ",".join(numbers)


def set_replicas_annotations(replica_set: ReplicaSet, *, desired: int, maximum: int) -> None:
    """Record the size of the Deployment when the set was last scaled. Changes the set."""
    replica_set.metadata.annotations = {
        **replica_set.metadata.annotations,
        DESIRED_REPLICAS: str(desired),
        MAX_REPLICAS: str(maximum),
    }


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
