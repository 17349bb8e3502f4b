"""Whether a webhook with a rule for a write is called: by its selectors and its match conditions.

`VersionedAttributes` is the write in the version a webhook or a policy wants to see. A condition that cannot be
evaluated denies the write, or skips the webhook, by its failure policy.
"""

from __future__ import annotations

from typing import final

from kubewright.apiserver.admission.request_values import authorizer_of, request_value
from kubewright.apiserver.admission.selectors import NamespaceLookup, labels_match
from kubewright.apiserver.admission.webhooks.configurations import WebhookInvocation
from kubewright.apiserver.expressions.environment import CONDITIONS_BUDGET, Budget, conditions_hold
from kubewright.apiserver.kinds.access import Access
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.verbs.scale import scale_of_object, with_replicas
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.responses import encode_json
from kubewright.apiserver.wire.status_errors import forbidden

__all__ = ("Matcher", "VersionedAttributes")


@final
class VersionedAttributes:
    """A write, with its objects converted to other versions on demand."""

    def __init__(self, attributes: Attributes) -> None:
        self.attributes = attributes
        self._new: dict[Resource, Tree | None] = {attributes.resource: attributes.object}
        self._old: dict[Resource, Tree | None] = {attributes.resource: attributes.old}
        self._current = attributes.resource

    @property
    def is_scale(self) -> bool:
        """Whether webhooks see a Scale instead of the object."""
        return self.attributes.subresource == "scale"

    async def objects(self, matched: Resource) -> tuple[Tree | None, Tree | None]:
        """The new and the old object in the version of a resource; not to be changed."""
        new, old = await self._objects(matched)
        if self.is_scale:
            return (new and scale_of_object(matched, new)), (old and scale_of_object(matched, old))
        return new, old

    async def _objects(self, matched: Resource) -> tuple[Tree | None, Tree | None]:
        if matched not in self._new:
            self._new[matched] = await convert(self._new[self._current], matched)
        if matched not in self._old:
            self._old[matched] = await convert(self.attributes.old, matched)
        return self._new[matched], self._old[matched]

    async def replace(self, matched: Resource, tree: Tree) -> None:
        """Replace the new object, given in the version of a resource."""
        if self.is_scale:
            whole, _ = await self._objects(matched)
            replicas = (tree.get("spec") or {}).get("replicas") or 0
            tree = with_replicas(matched, decode_json(encode_json(whole)), replicas)
        self._new = {matched: tree}
        self._current = matched
        requested = self.attributes.resource
        if matched is not requested:
            self._new[requested] = await convert(tree, requested)
        self.attributes.object = self._new[requested]


async def convert(tree: Tree | None, resource: Resource) -> Tree | None:
    """An object in the version of a resource."""
    if tree is None:
        return None
    return (await resource.strategy.from_storage([decode_json(encode_json(tree))]))[0]


@final
class Matcher:
    """Decides which webhooks are called."""

    def __init__(self, namespaces: NamespaceLookup, access: Access) -> None:
        self._namespaces = namespaces
        self._access = access

    async def should_call(self, invocation: WebhookInvocation, versioned: VersionedAttributes) -> bool:
        """Whether this webhook is called for this write."""
        webhook, attributes = invocation.webhook, versioned.attributes
        if not self._namespaces.selected(attributes, webhook.namespaces) or not labels_match(
            attributes, webhook.objects
        ):
            return False
        if not webhook.conditions:
            return True
        new, old = await versioned.objects(invocation.matched)
        values = {
            "object": new,
            "oldObject": old,
            "request": request_value(attributes, invocation.matched),
            "namespaceObject": None,
            "authorizer": authorizer_of(attributes, self._access),
        }
        holds, error = conditions_hold(
            webhook.conditions, values, Budget(CONDITIONS_BUDGET), fails=webhook.fails_closed
        )
        if error:
            raise forbidden(attributes.resource.group_resource, attributes.name, error)
        return holds
