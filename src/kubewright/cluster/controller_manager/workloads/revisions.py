"""ControllerRevisions: the templates a StatefulSet or DaemonSet has had, each with a number.

The content is a patch that puts the template back, which is what `kubectl rollout undo` sends. Two templates are the
same if they make the same pods, however they were written down.
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

__all__ = ("REVISION_HASH", "REVISION_LABEL", "in_order", "latest_revision", "template_of", "trim")

REVISION_LABEL = "controller-revision-hash"
"""On a pod: the revision it was made from."""
REVISION_HASH = "controller.kubernetes.io/hash"
_LONGEST_PREFIX = 223
_EPOCH = datetime.fromtimestamp(0, UTC)

Owner = StatefulSet | DaemonSet


def in_order(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """The latest last."""

    def place(each: ControllerRevision) -> tuple[int, datetime, str]:
        return each.revision, each.metadata.creation_timestamp or _EPOCH, each.metadata.name

    return sorted(revisions, key=place)


def template_of(revision: ControllerRevision) -> PodTemplateSpec | None:
    """The template it puts back; None if it holds something else."""
    spec = (revision.data or {}).get("spec") if isinstance(revision.data, dict) else None
    tree = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(tree, dict):
        return None
    try:
        return from_tree(PodTemplateSpec, {name: value for name, value in tree.items() if name != "$patch"})
    except DecodeError:
        return None


async def latest_revision(
    owner: Owner, known: Sequence[ControllerRevision], collisions: int, ctx: Context, *, labels: Sequence[str]
) -> tuple[ControllerRevision, int]:
    """The revision of the present template, made or given the highest number if need be; and the collisions by now.

    `known` are the owner's revisions in order; `labels` are those that hold the hash.
    """
    template = owner.spec.template
    number = known[-1].revision + 1 if known else 1
    equal = [each for each in known if _same(template_of(each), template)]
    if equal and equal[-1] is known[-1]:
        return known[-1], collisions
    if equal:
        return await ctx.client.patch_by_name(ControllerRevision, equal[-1].key, {"revision": number}), collisions
    data = _in_order({"spec": {"template": {**to_tree(template), "$patch": "replace"}}})
    while True:
        wanted = _new(owner, data, number, tree_hash(data, collisions), labels)
        try:
            return await ctx.create(wanted), collisions
        except AlreadyExists:
            present = await ctx.client.live.get(ControllerRevision, wanted.key)
            if _same(template_of(present), template):
                return present, collisions
            collisions += 1


async def trim(revisions: Sequence[ControllerRevision], in_use: Iterable[str], limit: int | None, ctx: Context) -> None:
    """Delete the oldest of those that nobody uses any more, but for so many."""
    used = set(in_use)
    unused = [each for each in revisions if each.metadata.name not in used]
    if limit is None or limit < 0:
        return
    for each in unused[: max(0, len(unused) - limit)]:
        await ctx.delete(each)


def _in_order(tree: Any) -> Any:
    """With all names sorted: clients that look for the revision of a template compare it byte by byte."""
    if isinstance(tree, dict):
        return {name: _in_order(tree[name]) for name in sorted(tree)}
    return [_in_order(item) for item in tree] if isinstance(tree, list) else tree


def _new(owner: Owner, data: Any, number: int, value: str, labels: Sequence[str]) -> ControllerRevision:
    metadata = owner.spec.template.metadata or ObjectMeta()
    return ControllerRevision(
        metadata=ObjectMeta(
            name=f"{owner.metadata.name[:_LONGEST_PREFIX]}-{value}",
            namespace=owner.metadata.namespace,
            labels={**metadata.labels, **dict.fromkeys(labels, value)},
            annotations=dict(owner.metadata.annotations),
        ),
        revision=number,
        data=data,
    )


def _same(one: PodTemplateSpec | None, other: PodTemplateSpec) -> bool:
    return (
        one is not None
        and one.spec == other.spec
        and (one.metadata or ObjectMeta()) == (other.metadata or ObjectMeta())
    )
