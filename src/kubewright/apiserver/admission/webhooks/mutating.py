"""The MutatingAdmissionWebhook plugin: calls mutating webhooks one after the other.

kube-apiserver: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/{plugin,dispatcher}.go. The order is
that of the names of the configurations, then that of their lists. When a webhook changes the object, the in-tree
plugins see it again, and then the earlier webhooks whose reinvocationPolicy is IfNeeded; there is no third round.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

import msgspec

from kubewright.api.patches import json_equal
from kubewright.apiserver.admission.webhooks.configurations import Configurations, Webhook, WebhookInvocation
from kubewright.apiserver.admission.webhooks.dispatcher import CallingWebhookError, apply_failure_policy, dispatch
from kubewright.apiserver.admission.webhooks.matcher import Matcher, VersionedAttributes
from kubewright.apiserver.admission.webhooks.reviews import ReviewResponse
from kubewright.apiserver.kinds.admission import Attributes, Chain, Plugin
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.outbound.webhook_client import WebhookClient
from kubewright.apiserver.verbs.patches.json_patch import JsonPatchError, apply_json_patch
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.go_json import json_type_name, syntax_error
from kubewright.apiserver.wire.responses import encode_json
from kubewright.apiserver.wire.status_errors import StatusError, bad_request, internal_error

__all__ = ("MutatingAdmissionWebhook",)

_MUTATION: Final = "mutation.webhook.admission.k8s.io/"
_OTHER_NAMESPACE: Final = "the namespace of the provided object does not match the namespace sent on the request"
_decode: Final = msgspec.json.Decoder(float_hook=float).decode


@final
@dataclass(slots=True)
class _Reinvocation:
    """Which webhooks are called in the second round (`webhookReinvokeContext`)."""

    is_changed: bool = False
    previously_invoked: set[Webhook] = field(default_factory=set)
    """Webhooks with the policy IfNeeded that have seen the object as it is now."""
    required: set[Webhook] = field(default_factory=set)

    def object_changed(self) -> None:
        self.required |= self.previously_invoked
        self.previously_invoked.clear()


@final
class MutatingAdmissionWebhook:
    """Calls the webhooks of every MutatingWebhookConfiguration."""

    def __init__(
        self,
        configurations: Configurations,
        matcher: Matcher,
        client: WebhookClient,
        *,
        reinvoked: Sequence[Plugin] = (),
    ) -> None:
        """`reinvoked` are the plugins before this one, which see the object again after a webhook changed it."""
        self._configurations = configurations
        self._matcher = matcher
        self._client = client
        self._reinvoked = Chain(reinvoked)

    def handles(self, attributes: Attributes) -> bool:
        return bool(self._configurations.invocations(attributes))

    async def mutate(self, attributes: Attributes) -> None:
        reinvocation = _Reinvocation()
        await self._round(attributes, reinvocation, number=0)
        if not reinvocation.is_changed:
            return
        before = (
            decode_json(encode_json(attributes.object))
            if reinvocation.previously_invoked or reinvocation.required
            else None
        )
        await self._reinvoked.mutate(attributes)
        if before is not None:
            if not json_equal(attributes.object, before):
                reinvocation.object_changed()
            await self._round(attributes, reinvocation, number=1)

    async def _round(self, attributes: Attributes, reinvocation: _Reinvocation, *, number: int) -> None:
        versioned = VersionedAttributes(attributes)
        for invocation in self._configurations.invocations(attributes):
            webhook = invocation.webhook
            if number and webhook not in reinvocation.required:
                continue
            if not await self._matcher.should_call(invocation, versioned):
                continue
            suffix = f"round_{number}_index_{webhook.index}"
            changed = False
            try:
                changed = await self._call(invocation, versioned)
            except CallingWebhookError as failure:
                error = apply_failure_policy(failure, attributes, f"failed-open.{_MUTATION}{suffix}")
                if error is not None:
                    raise error from None
            finally:
                note = {"configuration": webhook.configuration, "webhook": webhook.name, "mutated": changed}
                attributes.annotations[f"{_MUTATION}{suffix}"] = json.dumps(note, separators=(",", ":"))
            if changed:
                reinvocation.is_changed = True
                reinvocation.object_changed()
            if webhook.reinvocable:
                reinvocation.previously_invoked.add(webhook)

    async def _call(self, invocation: WebhookInvocation, versioned: VersionedAttributes) -> bool:
        """Call one webhook; returns whether it changed the object."""
        response = await dispatch(self._client, invocation, versioned, mutating=True)
        operations = _patch_of(invocation.webhook, response)
        if not operations:
            return False
        before, _ = await versioned.objects(invocation.matched)
        if before is None:
            why = "attempted to modify the object, which is not supported for this operation"
            raise internal_error(f'admission webhook "{invocation.webhook.name}" {why}')
        if response.patch_type != "JSONPatch":
            raise CallingWebhookError(invocation.webhook, f'unsupported patch type "{response.patch_type}"')
        try:
            patched = apply_json_patch(before, operations)
        except JsonPatchError as error:
            raise internal_error(str(error)) from None
        tree = _decode_patched(invocation.matched, versioned.attributes.subresource, patched)
        _check_namespace(versioned.attributes, tree)
        await versioned.replace(invocation.matched, tree)
        return not json_equal(before, tree)


def _patch_of(webhook: Webhook, response: ReviewResponse) -> list[dict[str, Any]]:
    if not response.patch:
        return []
    why = ""
    operations: Any = None
    try:
        operations = _decode(response.patch)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        why = syntax_error(response.patch)
    if not why and operations is not None and not isinstance(operations, list):
        why = f"json: cannot unmarshal {json_type_name(operations)} into Go value of type jsonpatch.Patch"
    wrong = next((item for item in operations or () if not isinstance(item, dict)), None) if not why else None
    if wrong is not None:
        why = f"json: cannot unmarshal {json_type_name(wrong)} into Go value of type jsonpatch.Operation"
    if why:
        raise CallingWebhookError(webhook, f"received undecodable patch in webhook response: {why}")
    return operations or []


def _decode_patched(resource: Resource, subresource: str, patched: Any) -> Tree:
    """The patched object as if a client had sent it: without unknown fields, with defaults."""
    if not isinstance(patched, dict):
        raise internal_error(
            f"json: cannot unmarshal {json_type_name(patched)} into Go value of type {resource.kind.kind}"
        )
    if not isinstance(patched.get("metadata"), dict):
        patched["metadata"] = {}
    other = resource.subresources.get(subresource)
    if other is not None and other.kind != resource.kind:
        return patched  # a Scale, a Binding or an Eviction
    kind = resource.kind
    if (patched.get("apiVersion"), patched.get("kind")) != (kind.api_version, kind.kind):
        version = str(patched.get("apiVersion")).rpartition("/")[2]
        wanted = f"{kind.version}.{kind.kind}"
        raise internal_error(f"converting ({version}.{patched.get('kind')}) to ({wanted}): unknown conversion")
    try:
        resource.strategy.normalize(patched)
    except StatusError as error:
        raise internal_error(str(error).partition(" cannot be handled as a ")[2].partition(": ")[2]) from None
    resource.strategy.default(patched)
    return patched


def _check_namespace(attributes: Attributes, tree: Tree) -> None:
    meta = tree["metadata"]
    if attributes.resource.namespaced and not meta.get("namespace"):
        meta["namespace"] = attributes.namespace
    if (meta.get("namespace") or "") != attributes.namespace:
        raise bad_request(_OTHER_NAMESPACE)
