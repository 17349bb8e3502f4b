"""The ValidatingAdmissionWebhook plugin: calls validating webhooks, all at once; any of them can deny the write.

kube-apiserver: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/validating/{plugin,dispatcher}.go.
"""

from __future__ import annotations

import asyncio
from typing import Final, final

from kubewright.apiserver.admission.webhooks.configurations import Configurations, WebhookInvocation
from kubewright.apiserver.admission.webhooks.dispatcher import CallingWebhookError, apply_failure_policy, dispatch
from kubewright.apiserver.admission.webhooks.matcher import Matcher, VersionedAttributes
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.outbound.webhook_client import WebhookClient
from kubewright.apiserver.wire.status_errors import StatusError

__all__ = ("ValidatingAdmissionWebhook",)

_FAILED_OPEN: Final = "failed-open.validating.webhook.admission.k8s.io/"


@final
class ValidatingAdmissionWebhook:
    """Calls the webhooks of every ValidatingWebhookConfiguration."""

    def __init__(self, configurations: Configurations, matcher: Matcher, client: WebhookClient) -> None:
        self._configurations = configurations
        self._matcher = matcher
        self._client = client

    def handles(self, attributes: Attributes) -> bool:
        return bool(self._configurations.invocations(attributes))

    async def validate(self, attributes: Attributes) -> None:
        versioned = VersionedAttributes(attributes)
        called: list[WebhookInvocation] = []
        for invocation in self._configurations.invocations(attributes):
            if await self._matcher.should_call(invocation, versioned):
                await versioned.objects(invocation.matched)
                called.append(invocation)
        if len(called) == 1:
            error = await self._call(called[0], versioned, 0)
        else:
            calls = [self._call(invocation, versioned, index) for index, invocation in enumerate(called)]
            error = next((item for item in await asyncio.gather(*calls) if item is not None), None)
        if error is not None:
            raise error

    async def _call(
        self, invocation: WebhookInvocation, versioned: VersionedAttributes, index: int
    ) -> StatusError | None:
        try:
            await dispatch(self._client, invocation, versioned, mutating=False)
        except CallingWebhookError as failure:
            return apply_failure_policy(failure, versioned.attributes, f"{_FAILED_OPEN}round_0_index_{index}")
        except StatusError as error:
            return error
        return None
