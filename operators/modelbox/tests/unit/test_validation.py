"""Rules between fields; every fault is found, and named by its field."""

from typing import Any

import pytest
from hypothesis import given
from kubewright import FieldErrors, Quantity, Warnings
from kubewright.k8s.core.v1 import (
    Container,
    ContainerPort,
    EmptyDirVolumeSource,
    EnvVar,
    EnvVarSource,
    ExecAction,
    Probe,
    ResourceRequirements,
    TCPSocketAction,
    Volume,
    VolumeMount,
)

from boxes import box, tiny
from examples import modelboxes
from modelbox.api.v1.modelbox import ModelBox
from modelbox.api.v1.ports import ModelBoxPort
from modelbox.webhooks.v1.modelbox import default_modelbox, validate_modelbox

CONNECT = TCPSocketAction(port=80)
MOUNT = VolumeMount(name="models", mount_path="/models")


def extra(**fields: Any) -> list[Container]:
    return [Container(**{"name": "helper", "image": "helper:1"} | fields)]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({"ports": [ModelBoxPort(port=80, name="a"), ModelBoxPort(port=81, name="a")]}, ["spec.ports[1].name"]),
        ({"ports": [ModelBoxPort(port=80), ModelBoxPort(port=81)]}, ["spec.ports[0].name", "spec.ports[1].name"]),
        (
            {
                "ports": [
                    ModelBoxPort(port=80, name="a", node_port=30000),
                    ModelBoxPort(port=81, name="b", node_port=30000),
                ]
            },
            ["spec.ports[1].nodePort"],
        ),
        (
            {
                "ports": [
                    ModelBoxPort(port=53, name="a", node_port=30000),
                    ModelBoxPort(port=53, name="b", node_port=30000, protocol="UDP"),
                ]
            },
            [],
        ),
        (
            {"service_type": "Headless", "ports": [ModelBoxPort(port=80, node_port=30000)]},
            ["spec.ports[0].nodePort"],
        ),
        ({"service_type": "LoadBalancer", "ports": [ModelBoxPort(port=80, node_port=30000)]}, []),
        ({"ports": [ModelBoxPort(port=80, target_port="nobody")]}, ["spec.ports[0].targetPort"]),
        ({"ports": [ModelBoxPort(port=80, target_port="a--b")]}, ["spec.ports[0].targetPort"]),
        ({"ports": [ModelBoxPort(port=80, target_port="a" * 16)]}, ["spec.ports[0].targetPort"]),
        (
            {
                "ports": [ModelBoxPort(port=80, target_port="web")],
                "containers": extra(ports=[ContainerPort(container_port=1, name="web")]),
            },
            [],
        ),
        (
            {
                "ports": [ModelBoxPort(port=80, target_port="web", protocol="UDP")],
                "containers": extra(ports=[ContainerPort(container_port=1, name="web")]),
            },
            ["spec.ports[0].targetPort"],
        ),
        ({"ports": [ModelBoxPort(port=80, app_protocol="kubernetes.io/h2c")]}, []),
        ({"ports": [ModelBoxPort(port=80, app_protocol="not so")]}, ["spec.ports[0].appProtocol"]),
        ({"resource_type": "custom"}, ["spec.resources"]),
        ({"resource_type": "large", "resources": tiny()}, ["spec.resources"]),
        ({"resource_type": "large", "resources": ResourceRequirements()}, []),
        (
            {"resources": ResourceRequirements(requests={"cpu": Quantity("2")}, limits={"cpu": Quantity("1500m")})},
            ["spec.resources.requests[cpu]"],
        ),
        ({"resources": ResourceRequirements(limits={"cpu": Quantity("-1")})}, ["spec.resources.limits[cpu]"]),
        ({"resources": ResourceRequirements(limits={"cpu": Quantity("much")})}, ["spec.resources.limits[cpu]"]),
        ({"containers": extra(name="web")}, ["spec.containers[0].name"]),
        ({"name": "main", "containers": extra(name="main")}, ["spec.containers[0].name"]),
        ({"containers": extra(), "init_containers": extra()}, ["spec.initContainers[0].name"]),
        ({"containers": extra(image=None)}, ["spec.containers[0].image"]),
        ({"volume_mounts": [MOUNT]}, ["spec.volumeMounts[0].name"]),
        ({"init_containers": extra(volume_mounts=[MOUNT])}, ["spec.initContainers[0].volumeMounts[0].name"]),
        ({"volume_mounts": [MOUNT], "volumes": [Volume(name="models", empty_dir=EmptyDirVolumeSource())]}, []),
        ({"envs": [EnvVar(name="A", value="1", value_from=EnvVarSource())]}, ["spec.envs[0].valueFrom"]),
        (
            {"containers": extra(env=[EnvVar(name="A"), EnvVar(name="A", value="1")])},
            ["spec.containers[0].env[1]"],
        ),
        (
            {
                "containers": extra(
                    ports=[ContainerPort(container_port=1), ContainerPort(container_port=1, protocol="TCP")]
                )
            },
            ["spec.containers[0].ports[1]"],
        ),
        ({"liveness_probe": Probe()}, ["spec.livenessProbe"]),
        ({"readiness_probe": Probe(tcp_socket=CONNECT, exec=ExecAction())}, ["spec.readinessProbe"]),
        (
            {"liveness_probe": Probe(tcp_socket=CONNECT, success_threshold=2)},
            ["spec.livenessProbe.successThreshold"],
        ),
        ({"readiness_probe": Probe(tcp_socket=CONNECT, success_threshold=2)}, []),
        ({"liveness_probe": Probe(tcp_socket=CONNECT, timeout_seconds=0)}, ["spec.livenessProbe.timeoutSeconds"]),
    ],
)
def test_faults_are_found_where_they_are(fields: dict[str, Any], expected: list[str]) -> None:
    """1.2, 1.5."""
    fields = fields | (
        {"resource_type": "small"} if "resources" not in fields and "resource_type" not in fields else {}
    )

    errors = validate_modelbox.check(box("web", **fields))

    assert [error.path for error in errors] == expected


@pytest.mark.parametrize("name", ["a.b", "1box", "b" * 64, "UPPER"])
def test_a_name_must_be_fit_for_a_service(name: str) -> None:
    """1.1."""
    errors = validate_modelbox.check(box(name))

    assert "metadata.name" in [error.path for error in errors]


@pytest.mark.parametrize(
    ("before", "after", "good"),
    [
        ("ClusterIP", "NodePort", True),
        ("Headless", "Headless", True),
        ("Headless", "ClusterIP", False),
        (None, "Headless", False),
    ],
)
def test_a_service_stays_with_or_without_an_address(before: str | None, after: str, good: bool) -> None:
    """1.2."""
    errors = validate_modelbox.check(box("web", service_type=after), old=box("web", service_type=before))

    assert [error.path for error in errors] == ([] if good else ["spec.serviceType"])


@pytest.mark.parametrize(
    ("image", "warned"),
    [
        ("nginx", True),
        ("nginx:latest", True),
        ("registry:5000/nginx", True),
        ("nginx:1.27", False),
        ("registry:5000/nginx:1.27", False),
        ("nginx@sha256:0123", False),
    ],
)
def test_an_image_that_may_be_another_tomorrow_is_warned_of(image: str, warned: bool) -> None:
    """1.5."""
    assert bool(_warnings(box("web", image=image))) is warned


def test_no_replicas_and_a_rollout_of_all_at_once_are_warned_of_and_accepted() -> None:
    """1.5."""
    daring = box("web", replicas=0, rolling_update="100%")

    warnings = _warnings(daring)

    assert [text.partition(":")[0] for text in warnings] == ["spec.replicas", "spec.rollingUpdate"]
    assert not validate_modelbox.check(daring)


@given(modelboxes)
def test_a_valid_object_stays_valid_when_defaults_are_filled_in(modelbox: ModelBox) -> None:
    """C7: the webhooks run one after the other, the reconciler checks what they have not seen."""
    before = [error.path for error in validate_modelbox.check(modelbox)]

    assert [error.path for error in validate_modelbox.check(default_modelbox.defaulted(modelbox))] == before


def _warnings(modelbox: ModelBox) -> list[str]:
    warnings = Warnings()
    validate_modelbox(modelbox, None, FieldErrors(), warnings)
    return list(warnings)
