"""The operator without its webhooks, as with ENABLE_WEBHOOKS=false: the same for what is valid; the rest is told."""

from collections.abc import AsyncIterator

import pytest
from kubewright import Client, Cluster
from kubewright.errors import Invalid
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Service
from kubewright.testing import RunningOperator, running

from boxes import as_condition, box, condition, key, main, settled, tiny, told, until
from modelbox.api.v1.modelbox import ModelBox
from modelbox.api.v1.ports import ModelBoxPort


@pytest.fixture(scope="module")
async def operator(cluster: Cluster) -> AsyncIterator[RunningOperator]:
    """The operator, serving no webhooks."""
    async with running("modelbox", on=cluster, webhooks=False) as operator:
        yield operator


async def test_what_is_left_out_holds_without_being_written(client: Client, namespace: str) -> None:
    """T15, C7."""
    created = await client.create(box("web", namespace, ports=[ModelBoxPort(port=80, node_port=30321)]))

    ready = await settled(client, created)

    service = await client.get(Service, key(namespace))
    assert main(await client.get(Deployment, key(namespace))).name == "web"
    assert service.spec.type == "NodePort"
    assert [(port.port, port.target_port, port.node_port) for port in service.spec.ports or ()] == [(80, 80, 30321)]
    assert ready.status.resource_type == "custom"
    assert (ready.spec.name, ready.spec.service_type, ready.spec.resource_type) == (None, None, None)


async def test_an_invalid_spec_is_reported_and_the_children_stay_as_they_are(client: Client, namespace: str) -> None:
    """1.8, C7, W15."""
    modelbox = await settled(client, await client.create(box("web", namespace)))
    deployment = await client.get(Deployment, key(namespace))
    service = await client.get(Service, key(namespace))

    modelbox.spec.image = "nginx:1.28"
    modelbox.spec.resource_type = "small"
    modelbox.spec.resources = tiny()
    modelbox.spec.ports = [ModelBoxPort(port=80, name="http"), ModelBoxPort(port=81)]
    await client.patch(modelbox)

    seen = await until(client, ModelBox, key(namespace), as_condition("Ready", "False", "InvalidSpec"))
    message = condition(seen, "Ready").message or ""
    assert "spec.resources" in message
    assert "spec.ports[1].name" in message
    assert condition(seen, "Degraded").status == "True"
    assert (await client.get(Deployment, key(namespace))).spec == deployment.spec
    assert (await client.get(Service, key(namespace))).spec == service.spec
    assert (await told(client, namespace, "InvalidSpec")).type == "Warning"

    seen.spec.ports = [ModelBoxPort(port=80)]
    seen.spec.resource_type = "custom"
    await settled(client, await client.patch(seen))


@pytest.mark.parametrize("name", ["a.b", "1box", "b" * 70])
async def test_a_name_that_no_service_can_have_is_refused_by_the_schema_alone(
    client: Client, namespace: str, name: str
) -> None:
    """1.8."""
    with pytest.raises(Invalid, match="DNS-1035"):
        await client.create(box(name, namespace))
