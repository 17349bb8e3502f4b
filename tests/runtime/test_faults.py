"""The fault-injecting transport does what it says, on a real server.

Covers: kubewright.testing
"""

from __future__ import annotations

import pytest

from kubewright import Client
from kubewright.errors import ConnectFailed, ServerError, TooManyRequests, TransportError
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.testing.faults import FaultyTransport, status


@pytest.fixture
def faults(client: Client) -> FaultyTransport:
    return FaultyTransport(client.transport)


async def test_nothing_gets_through_when_offline(faults: FaultyTransport, namespace: str) -> None:
    client = Client(faults)
    faults.offline = True

    with pytest.raises(ConnectFailed):
        await client.list(ConfigMap, namespace=namespace)

    faults.offline = False
    await client.list(ConfigMap, namespace=namespace)
    assert len(faults.requests) == 1


async def test_chosen_answers(faults: FaultyTransport, namespace: str) -> None:
    client = Client(faults)
    faults.answer = lambda request: status(429, retry_after=3) if request.method == "GET" else status(500)

    with pytest.raises(TooManyRequests) as caught:
        await client.list(ConfigMap, namespace=namespace)
    with pytest.raises(ServerError):
        await client.create(ConfigMap.named("a", namespace))
    with pytest.raises(TooManyRequests):
        async with client.watch(ConfigMap, namespace=namespace):
            pass

    assert caught.value.retry_after == 3


async def test_open_watches_are_cut(faults: FaultyTransport, client: Client, namespace: str) -> None:
    broken = Client(faults)
    await client.create(ConfigMap.named("a", namespace))
    seen = []

    async def watch_until_cut() -> None:
        async with broken.watch(ConfigMap, namespace=namespace, initial_events=True) as events:
            async for event in events:
                seen.append(event.object.metadata.name)
                if event.object.metadata.name == "a":
                    assert faults.cut_streams() == 1

    with pytest.raises(TransportError, match="cut"):
        await watch_until_cut()
    assert "a" in seen
    assert faults.cut_streams() == 0
