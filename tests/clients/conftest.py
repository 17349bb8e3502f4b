"""What the tests with other people's clients share: a namespace, and a way to wait for a state.

Covers: kubewright.apiserver
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TypeVar
from uuid import uuid4

import pytest
from tests.clients.widgets import Present, Widget
from tests.waiting import present as state

from kubewright import Client
from kubewright.api.resource import KubeObject
from kubewright.cluster.install import install_crds
from kubewright.cluster.planes.embedded import EmbeddedCluster
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
        return await state(client, kind, namespace, holds, seconds=seconds)

    return wait
