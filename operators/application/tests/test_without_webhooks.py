"""The operator without its webhooks: the reconciler asks itself what they would have asked."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from kubewright import Cluster, Dynamic
from kubewright.errors import Invalid, NotFound
from kubewright.k8s.core.v1 import Service
from kubewright.testing import RunningOperator, running

from application.api.v1alpha1.application import Application
from tests.home import Home, condition, is_ready, says


@pytest.fixture(scope="module")
async def operator(cluster: Cluster) -> AsyncIterator[RunningOperator]:
    async with running("application", on=cluster, webhooks=False) as operator:
        yield operator


async def test_an_application_becomes_ready(home: Home) -> None:
    application = await home.ready(replicas=2, port=8080)

    assert (await home.client.get(Service, home.key())).spec.ports
    assert application.status.ready_replicas == 2


async def test_the_sample_of_the_stored_version_works_as_it_is(home: Home) -> None:
    """It is as it was stored, so nobody has to convert it."""
    sample = Path(__file__).parent.parent / "config" / "samples" / "apps_v1alpha1_application.yaml"
    tree = yaml.safe_load(sample.read_text())
    await home.client.create(Dynamic(tree["apiVersion"], tree["kind"]).named("corner", home.namespace, content=tree))

    await home.until(is_ready, name="corner")

    assert (await home.client.get(Service, home.key("corner"))).spec.ports


async def test_the_version_that_would_have_to_be_converted_is_not_served(home: Home) -> None:
    """Else it would be stored without its image, which has another place there."""
    nested = Dynamic("apps.example.io/v1beta1", "Application")

    with pytest.raises(NotFound, match="v1beta1"):
        await home.client.create(
            nested.named("web", home.namespace, content={"spec": {"container": {"image": "nginx"}}})
        )


async def test_a_spec_that_nobody_refused_is_told_fault_by_fault_and_nothing_is_made(home: Home) -> None:
    await home.make(image="Nginx", deletion_policy="Retain", drain_seconds=5)

    application = await home.until(says("Ready", "False", "InvalidSpec"))

    message = condition(application, "Ready").message or ""
    assert "spec.image" in message
    assert "spec.drainSeconds" in message
    assert condition(application, "Degraded").status == "True"
    assert (await home.event("InvalidSpec")).type == "Warning"
    assert home.writes(path="/deployments") == []


async def test_children_stay_as_they_are_when_the_spec_becomes_wrong(home: Home) -> None:
    await home.ready()
    before = await home.deployment()

    await home.edit({"image": "Nginx", "replicas": 3})
    application = await home.until(says("Ready", "False", "InvalidSpec"))

    assert (await home.deployment()).metadata.generation == before.metadata.generation
    assert application.status.ready_replicas == 1
    await home.edit({"image": "nginx:1.30"})
    await home.until(is_ready)


async def test_the_schema_holds_without_them(home: Home) -> None:
    with pytest.raises(Invalid):
        await home.make(replicas=101)
    with pytest.raises(Invalid):
        await home.make(image="nginx 1.29")


async def test_a_rule_that_is_new_does_not_hold_up_the_end_of_what_is_old(cluster: Cluster, home: Home) -> None:
    await home.make(image="Nginx")
    await home.until(says("Ready", "False", "InvalidSpec"))

    async with running("application", on=cluster):
        with pytest.raises(Invalid, match="lower case"):
            await home.edit({"replicas": 2})
        await home.client.patch_by_name(Application, home.key(), {"metadata": {"finalizers": None}})
        await home.delete()
        await home.gone()
