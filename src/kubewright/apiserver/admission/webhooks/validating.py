"""The judge that asks validating webhooks, all at once; any of them can refuse."""

from __future__ import annotations

import asyncio
from typing import Final, final

from kubewright.apiserver.admission.webhooks.configurations import Candidate, Configurations
from kubewright.apiserver.admission.webhooks.dispatcher import HookFailed, dispatch, give_up
from kubewright.apiserver.admission.webhooks.matcher import Matcher, Subject
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.outbound.webhook_client import WebhookClient
from kubewright.apiserver.wire.status_errors import StatusError

__all__ = ("ValidatingAdmissionWebhook",)

_FAILED_OPEN: Final = "failed-open.validating.webhook.admission.k8s.io/"


@final
class ValidatingAdmissionWebhook:
    """Asks the webhooks of every ValidatingWebhookConfiguration."""

    def __init__(self, configurations: Configurations, matcher: Matcher, caller: WebhookClient) -> None:
        self._configurations = configurations
        self._matcher = matcher
        self._caller = caller

    def handles(self, attributes: Attributes) -> bool:
        return bool(self._configurations.candidates(attributes))

    async def validate(self, attributes: Attributes) -> None:
        subject = Subject(attributes)
        asked: list[Candidate] = []
        for candidate in self._configurations.candidates(attributes):
            if await self._matcher.asks(candidate, subject):
                await subject.objects(candidate.shown)
                asked.append(candidate)
        if len(asked) == 1:
            refusal = await self._ask(asked[0], subject, 0)
        else:
            answers = [self._ask(candidate, subject, index) for index, candidate in enumerate(asked)]
            refusal = next((item for item in await asyncio.gather(*answers) if item is not None), None)
        if refusal is not None:
            raise refusal

    async def _ask(self, candidate: Candidate, subject: Subject, index: int) -> StatusError | None:
        try:
            await dispatch(self._caller, candidate, subject, mutating=False)
        except HookFailed as failure:
            return give_up(failure, subject.attributes, f"{_FAILED_OPEN}round_0_index_{index}")
        except StatusError as refusal:
            return refusal
        return None
