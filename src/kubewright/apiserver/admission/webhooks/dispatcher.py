"""Calls one webhook for one write, and applies its failure policy if that fails."""

from __future__ import annotations

import logging
import uuid
from typing import Final, final

from kubewright.apiserver.admission.webhooks.configurations import Webhook, WebhookInvocation
from kubewright.apiserver.admission.webhooks.matcher import VersionedAttributes
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

__all__ = ("CallingWebhookError", "apply_failure_policy", "dispatch")

_KNOWN: Final = ("v1", "v1beta1")
_LOG: Final = logging.getLogger(__name__)


@final
class CallingWebhookError(Exception):
    """A webhook could not be called, or its response cannot be used."""

    def __init__(self, webhook: Webhook, why: str) -> None:
        super().__init__(f'failed calling webhook "{webhook.name}": {why}')
        self.webhook = webhook


async def dispatch(
    client: WebhookClient, invocation: WebhookInvocation, versioned: VersionedAttributes, *, mutating: bool
) -> ReviewResponse:
    """The response of a webhook; raises `CallingWebhookError`, or `StatusError` if it denies the write."""
    webhook, attributes = invocation.webhook, versioned.attributes
    if attributes.dry_run and not webhook.dry_run:
        raise bad_request(f'admission webhook "{webhook.name}" does not support dry run')
    version = next((item for item in webhook.versions if item in _KNOWN), "")
    if not version:
        why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        raise CallingWebhookError(webhook, f"could not create admission objects: {why}")
    uid = str(uuid.uuid4())
    review = review_of(attributes, invocation.matched, await versioned.objects(invocation.matched), uid, version)
    try:
        answer = await client.call(webhook.target, review, timeout=webhook.timeout)
        response = read_review(answer, uid=uid, version=version, mutating=mutating)
    except WebhookCallError as error:
        raise CallingWebhookError(webhook, f"failed to call webhook: {error}") from None
    except InvalidReview as error:
        raise CallingWebhookError(webhook, f"received invalid webhook response: {error}") from None
    _record(attributes, webhook, response)
    if not response.allowed:
        raise denial(webhook.name, response.status)
    return response


def _record(attributes: Attributes, webhook: Webhook, response: ReviewResponse) -> None:
    attributes.warnings.extend(response.warnings)
    for name, value in response.annotations.items():
        # What is there stays: a webhook may be named `authorization.k8s.io`, and annotate a `decision`.
        attributes.annotations.setdefault(f"{webhook.name}/{name}", value)


def apply_failure_policy(failure: CallingWebhookError, attributes: Attributes, annotation: str) -> StatusError | None:
    """The error of a write under the failurePolicy Fail; None under Ignore, with an audit annotation."""
    if failure.webhook.fails_closed:
        return internal_error(str(failure))
    attributes.annotations[annotation] = failure.webhook.name
    _LOG.warning("a webhook failed and is ignored", extra={"webhook": failure.webhook.name, "error": str(failure)})
    return None
