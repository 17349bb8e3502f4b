"""The generated manifests while nobody answers: what waits for the operator, and what must not (K9)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from home import Home
from kubewright import Cluster, Dynamic
from kubewright.api import from_tree
from kubewright.errors import ServerError
from kubewright.k8s.core.v1 import Namespace
from kubewright.manager import load_operator
from kubewright.testing import running, time_limit

MANIFESTS = Path(__file__).parents[1] / "config" / "webhook" / "manifests.yaml"
OWN = load_operator("sidecarset").namespace


@pytest.fixture
async def home(cluster: Cluster) -> AsyncIterator[Home]:
    """A cluster that has been told to ask the operator, which is not there."""
    async with running("sidecarset", on=cluster, webhooks=False):
        pass  # leaves behind the CRDs, and the namespace of the operator
    home = await Home.new(cluster.client)
    configurations = [placed(tree) for tree in yaml.safe_load_all(MANIFESTS.read_text())]
    made = [await cluster.client.create(item) for item in configurations]
    try:
        await until_asked(home, True)
        yield home
    finally:
        for item in made:
            await cluster.client.delete(item)
        await until_asked(home, False)
        await home.leave()


async def until_asked(home: Home, asked: bool) -> None:
    """A server hears of webhooks, and that they are gone, a moment later than whoever says so."""
    async with time_limit(60):
        while True:
            try:
                await home.client.create(home.pod("probe"), dry_run=True)
            except ServerError:
                if asked:
                    return
            else:
                if not asked:
                    return


def placed(tree: dict[str, Any]) -> Any:
    """A configuration with the names that config/default gives."""
    tree["metadata"]["name"] = f"sidecarset-{tree['metadata']['name']}"
    for webhook in tree["webhooks"]:
        webhook["clientConfig"]["service"] |= {"name": "sidecarset-webhook-service", "namespace": OWN}
    return from_tree(Dynamic(tree["apiVersion"], tree["kind"]), tree)


async def test_pods_wait_for_the_operator_where_it_is_responsible(home: Home) -> None:
    with pytest.raises(ServerError, match="failed calling webhook"):
        await home.make_pod()


async def test_pods_of_the_operator_itself_do_not(home: Home) -> None:
    pod = await home.make_pod("controller-manager", OWN)

    assert pod.metadata.uid
    await home.client.delete(pod, grace_period=0)


async def test_nor_do_those_of_the_cluster_and_of_closed_namespaces(home: Home) -> None:
    closed = f"{home.namespace}-closed"
    await home.make_namespace(closed, **{"apps.unisound.io__injection": "disabled"})

    for namespace in ("kube-system", closed):
        pod = await home.make_pod(home.name("system"), namespace)
        await home.client.delete(pod, grace_period=0)

    assert await home.client.find(Namespace, closed) is not None
