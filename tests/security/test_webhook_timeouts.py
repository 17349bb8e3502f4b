"""No caller of a webhook keeps a handler busy for longer than an API server may wait: thirty seconds.

Covers: kubewright.webhooks.serving
"""

from __future__ import annotations

import pytest

from kubewright import Client
from kubewright.errors import ConfigError, Invalid
from kubewright.k8s.admissionregistration.v1 import ValidatingWebhook, ValidatingWebhookConfiguration
from kubewright.k8s.admissionregistration.v1 import WebhookClientConfig as ClientConfig
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.webhooks import validate
from kubewright.webhooks.serving.router import _handler_seconds


@pytest.mark.parametrize("query", ["timeout=31s", "timeout=1000h", "timeout=5s&timeout=1000h", "x=1&timeout=2000000h"])
def test_a_caller_that_asks_for_hours_gets_thirty_seconds(query: str) -> None:
    assert _handler_seconds(query, 5) < 30


@pytest.mark.parametrize("query", ["", "timeout=-1s", "timeout=0s", "timeout=never", "timeout="])
def test_a_caller_that_asks_for_nonsense_gets_what_is_declared(query: str) -> None:
    assert _handler_seconds(query, 5) == 4.5


@pytest.mark.parametrize("seconds", [0, -1, 31, 3600])
def test_no_webhook_declares_more_than_thirty_seconds(seconds: int) -> None:
    with pytest.raises(ConfigError, match="1 to 30"):

        @validate(ConfigMap, timeout_seconds=seconds)
        def check(config: ConfigMap) -> None: ...


@pytest.mark.parametrize("seconds", [0, -1, 31, 2**31 - 1])
async def test_a_server_takes_no_webhook_of_more_than_thirty_seconds(client: Client, seconds: int) -> None:
    hook = ValidatingWebhook(
        name="x.example.io",
        admission_review_versions=["v1"],
        side_effects="None",
        client_config=ClientConfig(url="https://127.0.0.1:1/"),
        timeout_seconds=seconds,
    )

    with pytest.raises(Invalid, match="the timeout value must be between 1 and 30 seconds"):
        await client.create(ValidatingWebhookConfiguration.named(f"slow{abs(seconds)}", webhooks=[hook]))
