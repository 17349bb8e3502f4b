"""The manager that `kubewright run` makes, at work on a server.

Covers: kubewright.cli, kubewright.manager
"""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from kubewright import Client, validate
from kubewright.cli.commands.run import assemble_manager, local_options
from kubewright.cluster.planes.cluster import Cluster
from kubewright.k8s.admissionregistration.v1 import ValidatingWebhookConfiguration
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.manager.flags import Flags
from kubewright.manager.operator import Operator

pytestmark = pytest.mark.timeout(60)


@validate(ConfigMap, object_selector={"run-command": "yes"})
def check(config: ConfigMap) -> None: ...


async def test_the_port_that_the_system_chose_is_registered(
    plane: Cluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEWRIGHT_WEBHOOK_PORT", "0")
    operator = Operator(name="run-command", package=__name__, namespace="default", webhooks=(check,))
    options = local_options(operator, Flags(), webhook_address="127.0.0.1")

    async with assemble_manager(operator, options, plane.config) as manager:
        ports = [
            urlsplit(webhook.client_config.url or "").port
            for found in await client.list(ValidatingWebhookConfiguration)
            if found.metadata.name.startswith("run-command-")
            for webhook in found.webhooks or ()
        ]

        assert ports == [manager.port("webhooks")]
        assert ports != [0]
