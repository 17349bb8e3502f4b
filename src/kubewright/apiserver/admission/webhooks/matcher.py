"""Whether a webhook that has a rule for a write is asked about it: by its selectors and its conditions.

`Subject` is the write as the webhooks see it, in whatever version they want to see it. Conditions that cannot be
evaluated refuse the write, or leave the webhook out, as its failure policy says.
"""

from __future__ import annotations

from typing import final

from kubewright.apiserver.admission.request_values import authorizer_of, request_value
from kubewright.apiserver.admission.selectors import NamespaceLookup, labels_match
from kubewright.apiserver.admission.webhooks.configurations import Candidate
from kubewright.apiserver.expressions.environment import CONDITIONS_BUDGET, Budget, conditions_hold
from kubewright.apiserver.kinds.access import Access
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.verbs.scale import shown_scale, with_replicas
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.responses import encode_json
from kubewright.apiserver.wire.status_errors import forbidden

__all__ = ("Matcher", "Subject")


@final
class Subject:
    """One write and its objects in any version that is asked for."""

    def __init__(self, attributes: Attributes) -> None:
        self.attributes = attributes
        self._new: dict[Resource, Tree | None] = {attributes.resource: attributes.object}
        self._old: dict[Resource, Tree | None] = {attributes.resource: attributes.old}
        self._at = attributes.resource

    @property
    def is_scale(self) -> bool:
        """Whether the write is one of a Scale, which webhooks see instead of the object."""
        return self.attributes.subresource == "scale"

    async def objects(self, shown: Resource) -> tuple[Tree | None, Tree | None]:
        """The new and the old object in that version; not to be changed."""
        new, old = await self._objects(shown)
        if self.is_scale:
            return (new and shown_scale(shown, new)), (old and shown_scale(shown, old))
        return new, old

    async def _objects(self, shown: Resource) -> tuple[Tree | None, Tree | None]:
        if shown not in self._new:
            self._new[shown] = await converted(self._new[self._at], shown)
        if shown not in self._old:
            self._old[shown] = await converted(self.attributes.old, shown)
        return self._new[shown], self._old[shown]

    async def replace(self, shown: Resource, tree: Tree) -> None:
        """The new object is another one now."""
        if self.is_scale:
            whole, _ = await self._objects(shown)
            replicas = (tree.get("spec") or {}).get("replicas") or 0
            tree = with_replicas(shown, decode_json(encode_json(whole)), replicas)
        self._new = {shown: tree}
        self._at = shown
        asked = self.attributes.resource
        if shown is not asked:
            self._new[asked] = await converted(tree, asked)
        self.attributes.object = self._new[asked]


async def converted(tree: Tree | None, shown: Resource) -> Tree | None:
    """An object in another version."""
    if tree is None:
        return None
    return (await shown.strategy.from_storage([decode_json(encode_json(tree))]))[0]


@final
class Matcher:
    """Decides who is asked."""

    def __init__(self, namespaces: NamespaceLookup, access: Access) -> None:
        self._namespaces = namespaces
        self._access = access

    async def asks(self, candidate: Candidate, subject: Subject) -> bool:
        """Whether this webhook is asked about this write."""
        hook, attributes = candidate.hook, subject.attributes
        if not self._namespaces.selected(attributes, hook.namespaces) or not labels_match(attributes, hook.objects):
            return False
        if not hook.conditions:
            return True
        new, old = await subject.objects(candidate.shown)
        values = {
            "object": new,
            "oldObject": old,
            "request": request_value(attributes, candidate.shown),
            "namespaceObject": None,
            "authorizer": authorizer_of(attributes, self._access),
        }
        holds, error = conditions_hold(hook.conditions, values, Budget(CONDITIONS_BUDGET), fails=hook.fails)
        if error:
            raise forbidden(attributes.resource.group_resource, attributes.name, error)
        return holds
