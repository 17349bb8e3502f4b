"""From a spec to a Deployment and a Service."""

from typing import Any

import pytest
from kubewright import Quantity
from kubewright.k8s.core.v1 import (
    Container,
    ContainerPort,
    EnvVar,
    HTTPGetAction,
    Probe,
    ResourceRequirements,
    TCPSocketAction,
)

from boxes import box, main, pod_spec
from modelbox.api.v1.modelbox import ModelBoxSpec
from modelbox.api.v1.ports import ModelBoxPort
from modelbox.children.container_ports import container_ports, is_container_port_name
from modelbox.children.deployment import deployment_for
from modelbox.children.probes import lacks_default_probes, liveness_of, readiness_of
from modelbox.children.service import service_for

HTTP = ModelBoxPort(port=80, target_port=8080, name="http")
DNS = ModelBoxPort(port=53, protocol="UDP")


def probed(**fields: Any) -> ModelBoxSpec:
    return box("web", **{"default_probes": True, "ports": [HTTP]} | fields).spec


def test_default_probes_connect_to_the_first_tcp_port() -> None:
    """T10."""
    liveness, readiness = liveness_of(probed(ports=[DNS, HTTP])), readiness_of(probed(ports=[DNS, HTTP]))

    connect = TCPSocketAction(port=8080)
    assert liveness == Probe(
        tcp_socket=connect, initial_delay_seconds=10, period_seconds=10, timeout_seconds=5, failure_threshold=3
    )
    assert readiness == Probe(
        tcp_socket=connect, initial_delay_seconds=5, period_seconds=5, timeout_seconds=3, failure_threshold=3
    )


def test_default_probes_ask_the_health_path_if_there_is_one() -> None:
    """T10."""
    readiness = readiness_of(probed(health_path="/healthz"))

    assert readiness is not None
    assert readiness.http_get == HTTPGetAction(path="/healthz", port=8080)
    assert readiness.tcp_socket is None


def test_a_given_probe_is_used_and_the_other_one_made_up() -> None:
    """T10."""
    mine = Probe(http_get=HTTPGetAction(path="/live", port=1))

    assert liveness_of(probed(liveness_probe=mine)) == mine
    assert liveness_of(probed(liveness_probe=mine, default_probes=False)) == mine
    assert readiness_of(probed(liveness_probe=mine)) == readiness_of(probed())


def test_default_probes_can_be_switched_off() -> None:
    """T10."""
    spec = probed(default_probes=False)

    assert (liveness_of(spec), readiness_of(spec), lacks_default_probes(spec)) == (None, None, False)


def test_nothing_is_probed_over_udp() -> None:
    """T10."""
    spec = probed(ports=[DNS])

    assert (liveness_of(spec), readiness_of(spec), lacks_default_probes(spec)) == (None, None, True)


def test_a_default_probe_finds_a_port_that_another_container_declares() -> None:
    """R6: by its number, since names are looked up in the probed container only."""
    helper = Container(name="helper", image="helper:1", ports=[ContainerPort(container_port=9090, name="metrics")])

    readiness = readiness_of(probed(ports=[ModelBoxPort(port=80, target_port="metrics")], containers=[helper]))

    assert readiness is not None
    assert readiness.tcp_socket == TCPSocketAction(port=9090)


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        ([ModelBoxPort(port=80)], [(80, "TCP", None)]),
        ([HTTP], [(8080, "TCP", "http")]),
        ([ModelBoxPort(port=80, target_port="elsewhere")], []),
        ([HTTP, ModelBoxPort(port=81, target_port=8080, name="again")], [(8080, "TCP", "http")]),
        (
            [ModelBoxPort(port=53, name="dns"), ModelBoxPort(port=53, protocol="UDP", name="dns-udp")],
            [(53, "TCP", "dns"), (53, "UDP", "dns-udp")],
        ),
        ([ModelBoxPort(port=80, name="a-very-long-name-for-a-port")], [(80, "TCP", None)]),
    ],
)
def test_the_main_container_declares_what_the_service_leads_to(
    ports: list[ModelBoxPort], expected: list[tuple[int, str, str | None]]
) -> None:
    """R5, W13."""
    found = container_ports(box("web", ports=ports).spec)

    assert [(port.container_port, port.protocol, port.name) for port in found] == expected


@pytest.mark.parametrize(
    ("name", "good"),
    [("http", True), ("a" * 15, True), ("a" * 16, False), ("80", False), ("8o", True), ("a--b", False), ("-a", False)],
)
def test_container_ports_are_named_more_strictly_than_services(name: str, good: bool) -> None:
    """R5."""
    assert is_container_port_name(name) is good


@pytest.mark.parametrize(
    ("size", "cpu", "memory"), [("small", "1000m", "2Gi"), ("medium", "2000m", "4Gi"), ("large", "4000m", "8Gi")]
)
def test_a_size_is_what_the_main_container_gets_and_it_alone(size: str, cpu: str, memory: str) -> None:
    """T8."""
    helper = Container(name="helper", image="helper:1")
    sized = deployment_for(box("web", resource_type=size, containers=[helper]))

    expected = {"cpu": Quantity(cpu), "memory": Quantity(memory)}
    assert main(sized).resources == ResourceRequirements(requests=expected, limits=expected)
    assert pod_spec(sized).containers[1].resources is None


def test_a_custom_size_is_what_the_spec_says() -> None:
    """T8."""
    own = ResourceRequirements(requests={"cpu": Quantity("3")})

    assert main(deployment_for(box("web", resource_type="custom", resources=own))).resources == own


def test_the_environment_is_for_the_main_container_only() -> None:
    """1.2."""
    helper = Container(name="helper", image="helper:1")
    deployment = deployment_for(box("web", envs=[EnvVar(name="A", value="1")], containers=[helper]))

    assert main(deployment).env == [EnvVar(name="A", value="1")]
    assert pod_spec(deployment).containers[1].env is None


def test_the_spec_names_the_container_and_the_object_names_the_children() -> None:
    """W14."""
    modelbox = box("web", "shop", name="server")

    deployment, service = deployment_for(modelbox), service_for(modelbox)

    assert main(deployment).name == "server"
    assert deployment.key == service.key == modelbox.key
    assert deployment.metadata.labels["app.kubernetes.io/name"] == "server"
    assert deployment.metadata.labels["app.kubernetes.io/instance"] == "web"


def test_a_long_wait_for_readiness_gets_a_longer_deadline() -> None:
    """1.2: Kubernetes refuses a Deployment whose minReadySeconds is not below its deadline."""
    patient, quick = deployment_for(box("web", min_ready_seconds=3600)), deployment_for(box("web"))

    assert (patient.spec.progress_deadline_seconds or 0) > 3600
    assert quick.spec.progress_deadline_seconds is None


def test_replicas_of_others_are_left_out() -> None:
    """R3."""
    modelbox = box("web", replicas=4)
    assert deployment_for(modelbox).spec.replicas == 4

    modelbox.metadata.annotations["model.github.com/replicas-managed-by"] = "external"

    assert deployment_for(modelbox).spec.replicas is None


def test_what_the_cluster_allocates_is_never_sent() -> None:
    """C1, R8."""
    service = service_for(box("web", service_type="NodePort"))

    assert (service.spec.cluster_ip, service.spec.cluster_ips, service.spec.ip_families) == (None, None, None)
    assert service.spec.ports is not None
    assert (service.spec.ports[0].node_port, service.spec.ports[0].protocol) == (None, "TCP")
