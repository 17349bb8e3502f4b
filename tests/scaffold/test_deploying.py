"""`kubewright deploy` and `undeploy`: a whole operator in and out of a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kubewright.cluster.binaries import Binaries
from kubewright.cluster.embedded import EmbeddedCluster
from kubewright.cluster.install import CRD
from kubewright.errors import NotFound
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import ServiceAccount

from .conftest import API, output_of

HOME = "shop-operator-system"


@pytest.mark.slow
async def test_an_operator_is_deployed_until_it_is_available_and_taken_away_again(
    embedded_cluster: EmbeddedCluster, real_binaries: Binaries, tmp_path: Path
) -> None:
    assert real_binaries.kubectl.exists()  # it builds the overlay
    folder = tmp_path / "shop-operator"
    folder.mkdir()
    client = embedded_cluster.client

    async def kubewright(*arguments: str) -> None:
        await output_of((sys.executable, "-m", "kubewright.cli", *arguments), folder)

    await kubewright("init", "--domain", "deploying.io")
    await kubewright(*API, "--kind", "Cart")

    await kubewright("deploy", "--image", "shop:1.2", "--kubeconfig", str(embedded_cluster.kubeconfig))

    deployment = await client.get(Deployment, "shop-operator-controller-manager", namespace=HOME)
    assert deployment.status.available_replicas == 1
    pod = deployment.spec.template.spec
    assert pod is not None
    assert [container.image for container in pod.containers] == ["shop:1.2"]
    assert (await client.get(CRD, "carts.apps.deploying.io"))["spec"]["names"]["kind"] == "Cart"

    await kubewright("undeploy", "--yes", "--kubeconfig", str(embedded_cluster.kubeconfig))

    with pytest.raises(NotFound):
        await client.get(ServiceAccount, "shop-operator-controller-manager", namespace=HOME)
