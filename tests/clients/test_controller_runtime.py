"""The benchmark's operator on Go's controller-runtime, on the embedded cluster: 200 Widgets get what they are due."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bench.peers.commands import compiled
from bench.widgets import NAMESPACE, Widget, light_widget
from tests.clients.processes import running
from tests.clients.widgets import Present

from kubewright import Client
from kubewright.api.owners import controller_of
from kubewright.cluster.install import install_crds
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.k8s.core.v1 import ConfigMap, Namespace

COUNT = 200


@pytest.fixture
async def bench_namespace(client: Client) -> AsyncIterator[str]:
    """The one namespace the operator looks at."""
    await install_crds(client, Widget)
    await client.create(Namespace.named(NAMESPACE))
    yield NAMESPACE
    await client.delete(Namespace, NAMESPACE)


async def test_an_operator_on_controller_runtime_brings_two_hundred_widgets_to_their_end(
    client: Client, bench_namespace: str, present: Present, embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    operator_in_go = compiled()
    if operator_in_go is None:
        # Compiling takes minutes, which is no business of a test; where everything is demanded, so is this.
        demanded = os.environ.get("KUBEWRIGHT_REAL") == "1" and shutil.which("go") is not None
        assert not demanded, "the operator in Go is not compiled; run `make binaries`"
        pytest.skip("the operator in Go is not compiled; `make binaries` does that where there is a `go`")
    kubeconfig = embedded_cluster.kubeconfig
    widgets = [light_widget(number) for number in range(COUNT)]
    await asyncio.gather(*map(client.create, widgets[: COUNT // 2]))
    async with running(
        operator_in_go.arguments(kubeconfig), kubeconfig=kubeconfig, log=tmp_path / "go.log"
    ) as operator:
        await asyncio.gather(*map(client.create, widgets[COUNT // 2 :]))
        done = await present(
            Widget,
            bench_namespace,
            lambda have: (
                len(have) == COUNT
                and all(
                    obj.status.ready and obj.status.observed_generation == obj.metadata.generation
                    for obj in have.values()
                )
            ),
        )
        children = await present(ConfigMap, bench_namespace, lambda have: done.keys() <= have.keys())
        for name, obj in done.items():
            owner = controller_of(children[name])
            assert owner is not None
            assert (owner.uid, children[name].data) == (obj.metadata.uid, {"size": str(obj.spec.size)})
        # A child that is taken away is made again: the operator watches what it owns.
        await client.delete(ConfigMap, "widget-000007", namespace=bench_namespace)
        await present(
            ConfigMap,
            bench_namespace,
            lambda have: (
                "widget-000007" in have and have["widget-000007"].metadata.uid != children["widget-000007"].metadata.uid
            ),
        )
        assert "error" not in operator.errors().lower()
