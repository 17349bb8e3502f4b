"""Ask one webhook about one write, and what becomes of an answer that cannot be used."""

from __future__ import annotations

import logging
import uuid
from typing import Final, final

from kubewright.apiserver.admission.webhooks.configurations import Candidate, Hook
from kubewright.apiserver.admission.webhooks.matcher import Subject
from kubewright.apiserver.admission.webhooks.reviews import (
    InvalidReview,
    ReviewResponse,
    denial,
    read_review,
    review_of,
)
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.outbound.webhook_client import WebhookCallError, WebhookClient
from kubewright.apiserver.wire.status_errors import StatusError, bad_request, internal_error

__all__ = ("HookFailed", "dispatch", "give_up")

_KNOWN: Final = ("v1", "v1beta1")
_LOG: Final = logging.getLogger(__name__)


@final
class HookFailed(Exception):
    """A webhook could not be asked, or its answer is none."""

    def __init__(self, hook: Hook, why: str) -> None:
        super().__init__(f'failed calling webhook "{hook.name}": {why}')
        self.hook = hook


async def dispatch(caller: WebhookClient, candidate: Candidate, subject: Subject, *, mutating: bool) -> ReviewResponse:
    """What a webhook says; raises `HookFailed`, or `StatusError` if it says no."""
    hook, attributes = candidate.hook, subject.attributes
    if attributes.dry_run and not hook.dry_run:
        raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
    version = next((item for item in hook.versions if item in _KNOWN), "")
    if not version:
        why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        raise HookFailed(hook, f"could not create admission objects: {why}")
    uid = str(uuid.uuid4())
    review = review_of(attributes, candidate.shown, await subject.objects(candidate.shown), uid, version)
    try:
        answer = await caller.call(hook.target, review, timeout=hook.timeout)
        verdict = read_review(answer, uid=uid, version=version, mutating=mutating)
    except WebhookCallError as error:
        raise HookFailed(hook, f"failed to call webhook: {error}") from None
    except InvalidReview as error:
        raise HookFailed(hook, f"received invalid webhook response: {error}") from None
    _note(attributes, hook, verdict)
    if not verdict.allowed:
        raise denial(hook.name, verdict.status)
    return verdict


def _note(attributes: Attributes, hook: Hook, verdict: ReviewResponse) -> None:
    attributes.warnings.extend(text for text in verdict.warnings if text not in attributes.warnings)
    for name, value in verdict.annotations.items():
        attributes.annotations[f"{hook.name}/{name}"] = value


def give_up(failure: HookFailed, attributes: Attributes, annotation: str) -> StatusError | None:
    """The refusal a failure becomes, or None when the write goes on without that webhook."""
    if failure.hook.fails:
        return internal_error(str(failure))
    attributes.annotations[annotation] = failure.hook.name
    _LOG.warning("a webhook failed and is left out", extra={"webhook": failure.hook.name, "error": str(failure)})
    return None
