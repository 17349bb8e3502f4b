"""ControllerRevisions: the history of templates of a StatefulSet or DaemonSet.

The data of a revision is a patch that restores the template, which `kubectl rollout undo` sends. Two templates are
equal if their decoded values are. After pkg/controller/history/controller_history.go. Called by `statefulset` and
`daemonset`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from kubewright.api.codec import from_tree, to_tree
from kubewright.api.metadata import ObjectMeta
from kubewright.cluster.controller_manager.workloads.hashes import tree_hash
from kubewright.controllers.context import Context
from kubewright.errors import AlreadyExists, DecodeError
from kubewright.k8s.apps.v1 import ControllerRevision, DaemonSet, StatefulSet
from kubewright.k8s.core.v1 import PodTemplateSpec

__all__ = (
    "REVISION_HASH",
    "REVISION_LABEL",
    "get_or_create_revision",
    "revision_template",
    "sort_revisions",
    "truncate_history",
)

REVISION_LABEL = "controller-revision-hash"
"""The label of a pod with the revision it was created from."""
REVISION_HASH = "controller.kubernetes.io/hash"
_MAX_PREFIX_LENGTH = 223
_EPOCH = datetime.fromtimestamp(0, UTC)

Owner = StatefulSet | DaemonSet


def sort_revisions(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """The revisions sorted by number, the latest last."""

    def sort_key(each: ControllerRevision) -> tuple[int, datetime, str]:
        return each.revision, each.metadata.creation_timestamp or _EPOCH, each.metadata.name

    return sorted(revisions, key=sort_key)


def revision_template(revision: ControllerRevision) -> PodTemplateSpec | None:
    """The template of a revision; None if its data has another form."""
    spec = (revision.data or {}).get("spec") if isinstance(revision.data, dict) else None
    tree = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(tree, dict):
        return None
    try:
        return from_tree(PodTemplateSpec, {name: value for name, value in tree.items() if name != "$patch"})
    except DecodeError:
        return None


async def get_or_create_revision(
    owner: Owner, revisions: Sequence[ControllerRevision], collisions: int, ctx: Context, *, labels: Sequence[str]
) -> tuple[ControllerRevision, int]:
    """The revision of the current template, created or renumbered if necessary, and the collision count.

    `revisions` are the owner's revisions in order; `labels` are those that hold the hash.
    """
    template = owner.spec.template
    number = revisions[-1].revision + 1 if revisions else 1
    equal_revisions = [each for each in revisions if _templates_equal(revision_template(each), template)]
    if equal_revisions and equal_revisions[-1] is revisions[-1]:
        return revisions[-1], collisions
    if equal_revisions:
        return await ctx.client.patch_by_name(
            ControllerRevision, equal_revisions[-1].key, {"revision": number}
        ), collisions
    data = _sort_keys({"spec": {"template": {**to_tree(template), "$patch": "replace"}}})
    while True:
        new_revision = _new_revision(owner, data, number, tree_hash(data, collisions), labels)
        try:
            return await ctx.create(new_revision), collisions
        except AlreadyExists:
            existing = await ctx.client.live.get(ControllerRevision, new_revision.key)
            if _templates_equal(revision_template(existing), template):
                return existing, collisions
            collisions += 1


async def truncate_history(
    revisions: Sequence[ControllerRevision], in_use: Iterable[str], limit: int | None, ctx: Context
) -> None:
    """Delete the oldest unused revisions beyond `limit`."""
    in_use_names = set(in_use)
    unused = [each for each in revisions if each.metadata.name not in in_use_names]
    if limit is None or limit < 0:
        return
    for each in unused[: max(0, len(unused) - limit)]:
        await ctx.delete(each)


def _sort_keys(tree: Any) -> Any:
    """Sort all keys: clients that look for the revision of a template compare its bytes."""
    if isinstance(tree, dict):
        return {name: _sort_keys(tree[name]) for name in sorted(tree)}
    return [_sort_keys(item) for item in tree] if isinstance(tree, list) else tree


def _new_revision(owner: Owner, data: Any, number: int, value: str, labels: Sequence[str]) -> ControllerRevision:
    metadata = owner.spec.template.metadata or ObjectMeta()
    return ControllerRevision(
        metadata=ObjectMeta(
            name=f"{owner.metadata.name[:_MAX_PREFIX_LENGTH]}-{value}",
            namespace=owner.metadata.namespace,
            labels={**metadata.labels, **dict.fromkeys(labels, value)},
            annotations=dict(owner.metadata.annotations),
        ),
        revision=number,
        data=data,
    )


def _templates_equal(one: PodTemplateSpec | None, other: PodTemplateSpec) -> bool:
    return (
        one is not None
        and one.spec == other.spec
        and (one.metadata or ObjectMeta()) == (other.metadata or ObjectMeta())
    )
