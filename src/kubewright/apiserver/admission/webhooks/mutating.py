"""The judge that lets mutating webhooks change an object, one after the other.

In the order of configuration names, then as listed. A webhook that asks for it is called once more when a later one
changed the object, after the server's own mutations have seen the change.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

import msgspec

from kubewright.api.patches import json_equal
from kubewright.apiserver.admission.webhooks.configurations import Candidate, Configurations, Hook
from kubewright.apiserver.admission.webhooks.dispatcher import HookFailed, dispatch, give_up
from kubewright.apiserver.admission.webhooks.matcher import Matcher, Subject
from kubewright.apiserver.admission.webhooks.reviews import ReviewResponse
from kubewright.apiserver.kinds.admission import Attributes, Chain, Plugin
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.outbound.webhook_client import WebhookClient
from kubewright.apiserver.verbs.patches.json_patch import PatchMisfit, apply_operations
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.go_json import json_type_name, syntax_error
from kubewright.apiserver.wire.responses import encode_json
from kubewright.apiserver.wire.status_errors import StatusError, bad_request, internal_error

__all__ = ("MutatingAdmissionWebhook",)

_MUTATION: Final = "mutation.webhook.admission.k8s.io/"
_MISPLACED: Final = "the namespace of the provided object does not match the namespace sent on the request"
_decode: Final = msgspec.json.Decoder().decode


@final
@dataclass(slots=True)
class _Rounds:
    """What has to be asked again."""

    changed: bool = False
    asked: set[Hook] = field(default_factory=set)
    """Webhooks that want to see what comes after them, and have seen everything so far."""
    again: set[Hook] = field(default_factory=set)

    def object_changed(self) -> None:
        self.again |= self.asked
        self.asked.clear()


@final
class MutatingAdmissionWebhook:
    """Asks the webhooks of every MutatingWebhookConfiguration."""

    def __init__(
        self,
        configurations: Configurations,
        matcher: Matcher,
        caller: WebhookClient,
        *,
        reinvoked: Sequence[Plugin] = (),
    ) -> None:
        """`reinvoked` are the plugins before this one, which see the object again after a webhook changed it."""
        self._configurations = configurations
        self._matcher = matcher
        self._caller = caller
        self._reinvoked = Chain(reinvoked)

    def handles(self, attributes: Attributes) -> bool:
        return bool(self._configurations.candidates(attributes))

    async def mutate(self, attributes: Attributes) -> None:
        rounds = _Rounds()
        await self._round(attributes, rounds, number=0)
        if not rounds.changed:
            return
        before = decode_json(encode_json(attributes.object)) if rounds.asked or rounds.again else None
        await self._reinvoked.mutate(attributes)
        if before is not None:
            if not json_equal(attributes.object, before):
                rounds.object_changed()
            await self._round(attributes, rounds, number=1)

    async def _round(self, attributes: Attributes, rounds: _Rounds, *, number: int) -> None:
        subject = Subject(attributes)
        for candidate in self._configurations.candidates(attributes):
            hook = candidate.hook
            if number and hook not in rounds.again:
                continue
            if not await self._matcher.asks(candidate, subject):
                continue
            place = f"round_{number}_index_{hook.index}"
            changed = False
            try:
                changed = await self._ask(candidate, subject)
            except HookFailed as failure:
                refusal = give_up(failure, attributes, f"failed-open.{_MUTATION}{place}")
                if refusal is not None:
                    raise refusal from None
            finally:
                note = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
                attributes.annotations[f"{_MUTATION}{place}"] = json.dumps(note, separators=(",", ":"))
            if changed:
                rounds.changed = True
                rounds.object_changed()
            if hook.again:
                rounds.asked.add(hook)

    async def _ask(self, candidate: Candidate, subject: Subject) -> bool:
        """Ask one webhook; whether it changed the object."""
        verdict = await dispatch(self._caller, candidate, subject, mutating=True)
        operations = _patch_of(candidate.hook, verdict)
        if not operations:
            return False
        before, _ = await subject.objects(candidate.shown)
        if before is None:
            why = "attempted to modify the object, which is not supported for this operation"
            raise internal_error(f'admission webhook "{candidate.hook.name}" {why}')
        if verdict.patch_type != "JSONPatch":
            raise HookFailed(candidate.hook, f'unsupported patch type "{verdict.patch_type}"')
        try:
            patched = apply_operations(before, operations)
        except PatchMisfit as misfit:
            raise internal_error(str(misfit)) from None
        tree = _in_form(candidate.shown, subject.attributes.subresource, patched)
        _check_place(subject.attributes, tree)
        await subject.replace(candidate.shown, tree)
        return not json_equal(before, tree)


def _patch_of(hook: Hook, verdict: ReviewResponse) -> list[dict[str, Any]]:
    if not verdict.patch:
        return []
    why = ""
    operations: Any = None
    try:
        operations = _decode(verdict.patch)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        why = syntax_error(verdict.patch)
    if not why and operations is not None and not isinstance(operations, list):
        why = f"json: cannot unmarshal {json_type_name(operations)} into Go value of type jsonpatch.Patch"
    wrong = next((item for item in operations or () if not isinstance(item, dict)), None) if not why else None
    if wrong is not None:
        why = f"json: cannot unmarshal {json_type_name(wrong)} into Go value of type jsonpatch.Operation"
    if why:
        raise HookFailed(hook, f"received undecodable patch in webhook response: {why}")
    return operations or []


def _in_form(resource: Resource, subresource: str, patched: Any) -> Tree:
    """The patched object as if it had been sent: unknown fields are gone, defaults are there."""
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
    except StatusError as refusal:
        raise internal_error(str(refusal).partition(" cannot be handled as a ")[2].partition(": ")[2]) from None
    resource.strategy.default(patched)
    return patched


def _check_place(attributes: Attributes, tree: Tree) -> None:
    meta = tree["metadata"]
    if attributes.resource.namespaced and not meta.get("namespace"):
        meta["namespace"] = attributes.namespace
    if (meta.get("namespace") or "") != attributes.namespace:
        raise bad_request(_MISPLACED)
