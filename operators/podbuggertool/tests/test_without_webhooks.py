"""The operator without its webhooks: the reconciler fills in and asks itself what they would have."""

from collections.abc import AsyncIterator

import pytest
from kubewright import Cluster
from kubewright.k8s.core.v1 import Pod
from kubewright.k8s.meta.v1 import LabelSelector
from kubewright.testing import RunningOperator, running

from tests.home import Home, condition


@pytest.fixture(scope="module")
async def operator(cluster: Cluster) -> AsyncIterator[RunningOperator]:
    async with running("podbuggertool", on=cluster, webhooks=False) as operator:
        yield operator


async def test_pods_are_served_by_the_defaults(home: Home) -> None:
    await home.running_pod()
    tool = await home.tool()

    await home.counted(matched=1, installed=1, running=1)

    (added,) = list((await home.client.get(Pod, home.key("web"))).spec.ephemeral_containers or ())
    assert (added.command, added.stdin, added.tty, added.image_pull_policy) == (["sh"], True, True, "IfNotPresent")
    assert tool.spec.command is None


async def test_a_tool_that_nobody_refused_is_told_to_be_wrong_and_adds_nothing(home: Home) -> None:
    await home.running_pod()

    await home.tool(selector=LabelSelector(match_labels={"app": "not a value"}))

    seen = await home.until(lambda seen: seen.status.observed_generation == 1)
    assert condition(seen, "Degraded").reason == condition(seen, "Ready").reason == "InvalidSpec"
    assert await home.containers() == []


async def test_another_image_under_the_same_name_is_not_counted_as_there(home: Home) -> None:
    """The webhook would have asked for another name."""
    await home.running_pod()
    await home.tool(container_name="mine")
    await home.counted(matched=1, installed=1)

    await home.change(image="tools:2")

    seen = await home.counted(matched=1, installed=0, running=0)
    (failure,) = seen.status.failures
    assert (failure.pod, failure.reason) == ("web", "NameTaken")
    assert "with the image tools:1 is there already" in failure.message
    assert (condition(seen, "Degraded").reason, condition(seen, "Ready").status) == ("NameTaken", "False")
    await home.change(image="tools:1")
    assert (await home.counted(matched=1, installed=1, running=1)).status.failures == []
