"""Fixtures of the contract tests: the same cases on every control plane.

`plane` is the control plane under test. The embedded one joins the list when it exists; each case then runs twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated
from uuid import uuid4

import pytest

from kubewright import Client, Config, Field, Model, Resource, Spec, Status, connect
from kubewright.cluster.install import install_crds
from kubewright.cluster.real import RealCluster
from kubewright.k8s.core.v1 import Namespace

PLANES = [pytest.param("real", marks=pytest.mark.real)]


@pytest.fixture(scope="session", params=PLANES)
def plane(request: pytest.FixtureRequest) -> RealCluster:
    """A running control plane."""
    cluster = request.getfixturevalue(f"{request.param}_cluster")
    assert isinstance(cluster, RealCluster)
    return cluster


@pytest.fixture(scope="session")
async def client(plane: RealCluster) -> AsyncIterator[Client]:
    """An administrator's client."""
    async with connect(Config.load(kubeconfig=plane.kubeconfig)) as client:
        yield client


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    """A fresh namespace; its deletion is asked for, not awaited."""
    name = f"case-{uuid4().hex[:10]}"
    await client.create(Namespace.named(name))
    yield name
    await client.delete(Namespace, name)


class WidgetPart(Model):
    name: str
    weight: int | None = None


class WidgetSpec(Spec):
    size: Annotated[int, Field(ge=0, le=100)] = 1
    note: str | None = None
    parts: list[WidgetPart] | None = None


class WidgetStatus(Status):
    ready: int = 0


class Widget(
    Resource[WidgetSpec, WidgetStatus],
    group="contract.example.io",
    version="v1",
    short_names=("wd",),
    categories=("all",),
    scale=("spec.size", "status.ready"),
):
    """A custom resource with one of everything."""


@pytest.fixture(scope="session")
async def widget(client: Client) -> type[Widget]:
    """A custom resource whose definition is installed."""
    await install_crds(client, Widget)
    return Widget
