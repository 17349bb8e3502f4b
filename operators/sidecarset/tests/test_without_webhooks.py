"""Sets that no webhook has seen: nothing depends on their having been checked or completed (K7)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from home import LOG, Home, condition, names
from kubewright import Cluster
from kubewright.testing import running

from sidecarset.api.v1alpha1.sidecarset import SidecarSet

BAD_SELECTOR = {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}


@pytest.fixture
async def homes(cluster: Cluster) -> AsyncIterator[Home]:
    """Sets that were stored while the operator ran without webhooks, all for the same pods."""
    async with running("sidecarset", on=cluster, webhooks=False) as operator:
        home = await Home.new(operator.client)
        sets: dict[str, dict[str, Any]] = {
            "bad": {"selector": BAD_SELECTOR},
            "empty": {"selector": {}},
            "imageless": {"containers": [{"name": "nothing"}]},
            "good": {"containers": [LOG]},
        }
        for name, spec in sets.items():
            await home.make_set(name, **spec)
        yield home
        await home.leave()


async def test_a_broken_set_says_so_and_harms_nobody(homes: Home, cluster: Cluster) -> None:
    for name in ("bad", "empty", "imageless"):
        seen = await homes.client.get(SidecarSet, homes.name(name))
        assert condition(seen, "Ready") == ("False", "InvalidSpec")

    async with running("sidecarset", on=cluster):
        pod = await homes.make_pod()

        assert names(pod.spec.containers) == ["log", "main"]
        assert pod.spec.containers[0].image_pull_policy == "IfNotPresent"


async def test_all_faults_stand_in_the_condition(homes: Home) -> None:
    found = await homes.make_set("worse", selector={}, containers=[{"name": "UPPER"}])

    message = next(item.message for item in found.status.conditions if item.type == "Ready")

    assert message is not None
    for field in ("spec.selector", "spec.containers[0].name", "spec.containers[0].image"):
        assert field in message


async def test_a_set_that_is_mended_gets_to_work(homes: Home) -> None:
    broken = await homes.make_set("mended", selector={})

    mended = await homes.change(broken, selector={"matchLabels": {"app": "nobody"}})

    assert condition(mended, "Ready") == ("True", "AllPodsReady")
