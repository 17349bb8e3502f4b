"""What the tests with other people's clients share: a namespace, and a way to wait for a state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar
from uuid import uuid4

import pytest
from tests.clients.widgets import Present, Widget

from kubewright import Client
from kubewright.api.resource import KubeObject
from kubewright.client.watch import Bookmark
from kubewright.cluster.embedded import EmbeddedCluster
from kubewright.cluster.install import install_crds
from kubewright.k8s.core.v1 import Namespace

K = TypeVar("K", bound=KubeObject)


@pytest.fixture(scope="module")
async def client(embedded_cluster: EmbeddedCluster) -> Client:
    """An administrator's client of a cluster that has the kind."""
    await install_crds(embedded_cluster.client, Widget)
    return embedded_cluster.client


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    """A fresh namespace; its deletion is asked for, not awaited."""
    name = f"clients-{uuid4().hex[:10]}"
    await client.create(Namespace.named(name))
    yield name
    await client.delete(Namespace, name)


@pytest.fixture
def present(client: Client) -> Present:
    """Waits for a state of the server, by a watch."""

    async def wait(
        kind: type[K], namespace: str, holds: Callable[[dict[str, K]], bool], *, seconds: float = 60
    ) -> dict[str, K]:
        have: dict[str, K] = {}
        complete = False
        try:
            async with (
                asyncio.timeout(seconds),
                client.watch(kind, namespace=namespace, initial_events=True, bookmarks=True) as events,
            ):
                async for event in events:
                    if isinstance(event, Bookmark):
                        complete = complete or event.initial_events_end
                    elif event.type == "DELETED":
                        have.pop(event.object.metadata.name, None)
                    else:
                        have[event.object.metadata.name] = event.object
                    if complete and holds(have):
                        return have
        except TimeoutError:
            raise AssertionError(f"after {seconds:g} s there is still {have}") from None
        raise AssertionError("the watch ended")

    return wait
