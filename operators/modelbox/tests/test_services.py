"""Services: types, addresses, node ports."""

import pytest
from kubewright import Client
from kubewright.errors import Invalid
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import (
    Container,
    ContainerPort,
    LoadBalancerIngress,
    LoadBalancerStatus,
    Service,
    ServicePort,
    ServiceSpec,
)

from boxes import as_condition, box, condition, is_ready, key, main, settled, until
from modelbox.api.v1.modelbox import ModelBox
from modelbox.api.v1.ports import ModelBoxPort


async def test_the_cluster_ip_stays_through_changes_of_type(client: Client, namespace: str) -> None:
    """T9, W5."""
    modelbox = await settled(client, await client.create(box("web", namespace)))
    first = await client.get(Service, key(namespace))
    assert first.spec.type == "ClusterIP"

    modelbox.spec.service_type = "NodePort"
    modelbox = await settled(client, await client.patch(modelbox))
    second = await client.get(Service, key(namespace))
    modelbox.spec.service_type = "ClusterIP"
    modelbox = await settled(client, await client.patch(modelbox))
    third = await client.get(Service, key(namespace))

    assert first.spec.cluster_ip == second.spec.cluster_ip == third.spec.cluster_ip
    assert second.spec.ports is not None
    assert second.spec.ports[0].node_port
    assert third.spec.ports is not None
    assert not third.spec.ports[0].node_port
    assert modelbox.status.service is not None
    assert modelbox.status.service.type == "ClusterIP"


async def test_a_node_port_that_the_cluster_chose_stays(client: Client, namespace: str) -> None:
    """R8."""
    modelbox = await settled(client, await client.create(box("web", namespace, service_type="NodePort")))
    before = modelbox.status.service

    modelbox.spec.image = "nginx:1.28"
    modelbox = await settled(client, await client.patch(modelbox))

    assert before is not None
    assert before.ports[0].node_port
    assert modelbox.status.service == before


async def test_a_node_port_that_is_taken_is_waited_for(client: Client, namespace: str) -> None:
    """1.8."""
    port = ServicePort(port=80, node_port=30123, protocol="TCP")
    other = await client.create(Service.named("other", namespace, spec=ServiceSpec(type="NodePort", ports=[port])))

    created = await client.create(box("web", namespace, ports=[ModelBoxPort(port=80, node_port=30123)]))

    waiting = await until(client, ModelBox, created.key, as_condition("ServiceReady", "False", "NodePortUnavailable"))
    assert condition(waiting, "Ready").reason == "NodePortUnavailable"
    await until(client, ModelBox, created.key, as_condition("Available", "True"))
    await client.delete(other)
    healed = await settled(client, created)
    assert healed.status.service is not None
    assert healed.status.service.ports[0].node_port == 30123


async def test_a_load_balancer_is_ready_when_it_has_an_address(client: Client, namespace: str) -> None:
    """1.3."""
    created = await client.create(box("web", namespace, service_type="LoadBalancer"))
    await until(client, ModelBox, created.key, as_condition("ServiceReady", "False", "LoadBalancerPending"))

    service = await client.get(Service, key(namespace))
    service.status.load_balancer = LoadBalancerStatus(ingress=[LoadBalancerIngress(ip="192.0.2.1")])
    await client.patch(service, subresource="status")

    ready = await settled(client, created)
    assert ready.status.service is not None
    assert [address.ip for address in ready.status.service.load_balancer] == ["192.0.2.1"]


async def test_a_headless_service_has_no_address_and_never_gets_one(client: Client, namespace: str) -> None:
    """R8, 1.2."""
    modelbox = await settled(client, await client.create(box("web", namespace, service_type="Headless")))
    service = await client.get(Service, key(namespace))
    assert (service.spec.type, service.spec.cluster_ip) == ("ClusterIP", "None")

    modelbox.spec.service_type = "ClusterIP"
    with pytest.raises(Invalid, match=r"spec\.serviceType"):
        await client.patch(modelbox)


async def test_ports_lead_to_named_and_to_unnamed_ports_of_the_pod(client: Client, namespace: str) -> None:
    """W13, R5."""
    ports = [
        ModelBoxPort(port=80, name="http"),
        ModelBoxPort(port=9000, name="metrics", target_port="prometheus"),
        ModelBoxPort(port=53, name="dns", protocol="UDP", target_port=5353),
    ]
    exporter = Container(
        name="exporter", image="exporter:1", ports=[ContainerPort(container_port=9090, name="prometheus")]
    )

    await settled(client, await client.create(box("web", namespace, ports=ports, containers=[exporter])))

    container = main(await client.get(Deployment, key(namespace)))
    service = await client.get(Service, key(namespace))
    assert [(port.container_port, port.protocol, port.name) for port in container.ports or ()] == [
        (80, "TCP", "http"),
        (5353, "UDP", "dns"),
    ]
    assert [port.target_port for port in service.spec.ports or ()] == [80, "prometheus", 5353]


async def test_a_port_may_move_and_keep_its_node_port(client: Client, namespace: str) -> None:
    """C1: the key of the list changes, the node port is the same."""
    created = box("web", namespace, ports=[ModelBoxPort(port=80, node_port=30124)])
    modelbox = await settled(client, await client.create(created))

    modelbox.spec.ports = [ModelBoxPort(port=81, node_port=30124)]
    modelbox = await until(client, ModelBox, (await client.patch(modelbox)).key, is_ready)

    service = await client.get(Service, key(namespace))
    assert [(port.port, port.node_port) for port in service.spec.ports or ()] == [(81, 30124)]
