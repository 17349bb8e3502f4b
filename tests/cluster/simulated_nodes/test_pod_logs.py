"""`kubectl logs` of simulated pods, through the API server.

Covers: kubewright.cluster.kubelet
"""

from __future__ import annotations

import pytest
from tests.builders.pods import pod
from tests.cluster.simulated_nodes.conftest import is_ready
from tests.conftest import Kubectl
from tests.waiting import reach

from kubewright import Client

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


def is_over(item: object) -> bool:
    return getattr(item, "status").phase in ("Succeeded", "Failed")  # noqa: B009 - any kind of pod


async def test_what_a_command_prints_is_its_log(client: Client, namespace: str, kubectl: Kubectl) -> None:
    script = "echo one; echo two; echo three"
    given = pod(
        "web", namespace, container={"image": "busybox", "command": ["sh", "-c", script]}, restartPolicy="Never"
    )
    await reach(client, await client.create(given), is_over)

    assert await kubectl("logs", "web") == "one\ntwo\nthree\n"
    assert await kubectl("logs", "web", "--tail=1") == "three\n"
    assert await kubectl("logs", "web", "--follow") == "one\ntwo\nthree\n"
    assert await kubectl("logs", "web", "--limit-bytes=5") == "one\nt"
    assert await kubectl("logs", "web", "--since=1h") == "one\ntwo\nthree\n"
    stamped = await kubectl("logs", "web", "--timestamps", "--tail=1")
    assert stamped.endswith("Z three\n")


async def test_the_log_of_the_previous_run_is_kept(client: Client, namespace: str, kubectl: Kubectl) -> None:
    created = await client.create(pod("web", namespace, container={"image": "crasher"}))
    await reach(
        client,
        created,
        lambda item: bool(item.status.container_statuses and item.status.container_statuses[0].restart_count),
    )

    assert await kubectl("logs", "web", "--previous") == "crasher: something is broken, giving up\n"


async def test_a_container_without_output_logs_that_it_started(
    client: Client, namespace: str, kubectl: Kubectl
) -> None:
    await reach(client, await client.create(pod("web", namespace)), is_ready)

    assert await kubectl("logs", "web") == "main: nginx started\n"


async def test_an_annotation_overrides_the_log(client: Client, namespace: str, kubectl: Kubectl) -> None:
    given = pod("web", namespace, annotations={"simulation.kubewright.io/logs": "listening on :8080"})
    await reach(client, await client.create(given), is_ready)

    assert await kubectl("logs", "web") == "listening on :8080\n"
