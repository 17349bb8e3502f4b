"""Children follow their ModelBox and nobody else; what others add stays."""

from collections.abc import Callable
from typing import Any

import pytest
from kubewright import Client
from kubewright.api import copy_of
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import (
    Container,
    EmptyDirVolumeSource,
    EnvVar,
    HostPathVolumeSource,
    Service,
    Volume,
    VolumeMount,
)

from boxes import box, key, main, replaced, settled, until
from modelbox.api.v1.modelbox import ModelBox
from modelbox.api.v1.ports import ModelBoxPort

RESTARTED = "kubectl.kubernetes.io/restartedAt"


async def test_going_back_to_an_earlier_spec_brings_its_children_back(client: Client, namespace: str) -> None:
    """T4, W3."""
    modelbox = await settled(client, await client.create(box("web", namespace, image="nginx:1")))
    first = await client.get(Deployment, key(namespace))
    for image in ("nginx:2", "nginx:1"):
        modelbox.spec.image = image
        modelbox = await settled(client, await client.patch(modelbox))

    last = await client.get(Deployment, key(namespace))

    assert main(last).image == "nginx:1"
    assert last.spec == first.spec


HTTP, DNS = ModelBoxPort(port=80, name="http"), ModelBoxPort(port=53, protocol="UDP", name="dns", target_port=5353)
SIDE, PREPARE = Container(name="side", image="busybox:1"), Container(name="prepare", image="busybox:1")
RICH: dict[str, Any] = {
    "replicas": 0,
    "ports": [HTTP, DNS],
    "envs": [EnvVar(name="A", value="1"), EnvVar(name="B", value="$(A)")],
    "containers": [SIDE],
    "init_containers": [PREPARE],
    "volumes": [Volume(name="data", empty_dir=EmptyDirVolumeSource())],
    "volume_mounts": [VolumeMount(name="data", mount_path="/data")],
}


@pytest.mark.parametrize(
    "change",
    [
        {"ports": [ModelBoxPort(port=53, name="dns"), ModelBoxPort(port=80, name="web", target_port=8080)]},
        {"ports": [ModelBoxPort(port=53, name="tcp"), ModelBoxPort(port=53, protocol="UDP", name="udp")]},
        {"ports": [ModelBoxPort(port=8080)]},
        {"name": "renamed"},
        {"containers": [PREPARE], "init_containers": [SIDE]},
        {"containers": [Container(name="other", image="busybox:1")], "init_containers": []},
        {"volumes": [Volume(name="data", host_path=HostPathVolumeSource(path="/data"))]},
        {
            "volumes": [Volume(name="other", empty_dir=EmptyDirVolumeSource())],
            "volume_mounts": [VolumeMount(name="other", mount_path="/data")],
        },
        {"envs": [EnvVar(name="B", value="2"), EnvVar(name="A", value="$(B)")]},
        {"service_type": "NodePort"},
        {"rolling_update": 3, "min_ready_seconds": 700},
        {"default_probes": True, "health_path": "/healthz"},
        {field: [] for field in ("envs", "containers", "init_containers", "volumes", "volume_mounts")},
    ],
    ids=lambda change: ",".join(change),
)
async def test_a_change_leads_to_what_a_new_modelbox_would_have_and_back(
    client: Client, namespace: str, change: dict[str, Any]
) -> None:
    """A, B and A again: whatever is renamed or dropped goes."""
    modelbox = await settled(client, await client.create(box("web", namespace, **RICH)))
    first = await _children(client, modelbox)
    new = box("new", namespace, **{"name": "web", **RICH, **change})
    fresh = await settled(client, await client.create(new))

    await settled(client, await replaced(client, modelbox.key, lambda seen: _become(seen, change)))
    assert await _children(client, modelbox) == await _children(client, fresh)

    await settled(client, await replaced(client, modelbox.key, lambda seen: _become(seen, {})))
    assert await _children(client, modelbox) == first


def _become(modelbox: ModelBox, change: dict[str, Any]) -> None:
    modelbox.spec = box("web", "", **RICH | change).spec


async def _children(client: Client, modelbox: ModelBox) -> tuple[Any, ...]:
    """What the children ask for, but for their names and what the cluster allocates."""
    deployment, service = await client.get(Deployment, modelbox.key), await client.get(Service, modelbox.key)
    template, strategy = deployment.spec.template.spec, deployment.spec.strategy
    ports = [(port.name, port.port, port.protocol, port.target_port) for port in service.spec.ports or ()]
    deadline = deployment.spec.progress_deadline_seconds
    return template, strategy, deployment.spec.min_ready_seconds, deadline, sorted(ports, key=str), service.spec.type


async def test_what_somebody_changes_in_the_deployment_is_put_right(client: Client, namespace: str) -> None:
    """T5, W6, R10."""
    env = [EnvVar(name="MODE", value="fast")]
    modelbox = await settled(client, await client.create(box("web", namespace, envs=env, replicas=2)))
    wanted = await client.get(Deployment, key(namespace))
    changed = copy_of(wanted)
    changed.spec.replicas = 1
    main(changed).image = "foreign:1"
    main(changed).env = [EnvVar(name="MODE", value="slow")]

    drifted = await client.patch(changed)

    healed = await until(
        client,
        Deployment,
        key(namespace),
        lambda found: found.metadata.generation > drifted.metadata.generation and main(found).image == "nginx:1.27",
    )
    assert healed.spec == wanted.spec
    await settled(client, modelbox)


async def test_what_somebody_changes_in_the_service_is_put_right(client: Client, namespace: str) -> None:
    """T5, W6."""
    port = ModelBoxPort(port=80, target_port=8080, name="http")
    modelbox = await settled(client, await client.create(box("web", namespace, ports=[port])))
    wanted = await client.get(Service, key(namespace))
    changed = copy_of(wanted)
    assert changed.spec.ports is not None
    changed.spec.ports[0].target_port = 1
    changed.spec.selector = {"model.github.com/modelbox": "foreign"}

    await client.patch(changed)

    healed = await until(client, Service, key(namespace), lambda found: found.spec == wanted.spec)
    assert healed.spec.ports is not None
    assert healed.spec.ports[0].target_port == 8080
    await settled(client, modelbox)


async def test_what_others_add_to_the_deployment_stays_through_twenty_changes(client: Client, namespace: str) -> None:
    """T6, W4."""
    modelbox = await settled(client, await client.create(box("web", namespace)))
    deployment = await client.get(Deployment, key(namespace))
    deployment.metadata.annotations["example.com/owner"] = "team-a"
    assert deployment.spec.template.metadata is not None
    deployment.spec.template.metadata.annotations[RESTARTED] = "2026-01-01T00:00:00Z"
    deployment.spec.revision_history_limit = 3
    restarted = await client.patch(deployment)
    await until(client, Deployment, key(namespace), is_rolled_out(restarted.metadata.generation))
    modelbox = await settled(client, modelbox)

    for number in range(1, 21):
        modelbox.spec.min_ready_seconds = number
        modelbox = await client.patch(modelbox)
        modelbox = await until(client, ModelBox, key(namespace), is_observed(modelbox.metadata.generation))

    survivor = await client.get(Deployment, key(namespace))
    assert survivor.spec.min_ready_seconds == 20
    assert survivor.metadata.annotations["example.com/owner"] == "team-a"
    assert survivor.spec.template.metadata is not None
    assert survivor.spec.template.metadata.annotations[RESTARTED] == "2026-01-01T00:00:00Z"
    assert survivor.spec.revision_history_limit == 3


async def test_what_others_set_in_the_service_stays(client: Client, namespace: str) -> None:
    """W5."""
    port = ModelBoxPort(port=80, name="http")
    modelbox = await settled(client, await client.create(box("web", namespace, ports=[port])))
    service = await client.get(Service, key(namespace))
    service.metadata.annotations["example.com/owner"] = "team-a"
    service.spec.session_affinity = "ClientIP"
    await client.patch(service)

    modelbox.spec.ports = [port, ModelBoxPort(port=81, name="admin")]
    await settled(client, await client.patch(modelbox))

    survivor = await client.get(Service, key(namespace))
    assert [found.port for found in survivor.spec.ports or ()] == [80, 81]
    assert survivor.spec.session_affinity == "ClientIP"
    assert survivor.spec.cluster_ip == service.spec.cluster_ip
    assert survivor.metadata.annotations["example.com/owner"] == "team-a"


async def test_what_the_spec_no_longer_has_disappears_from_the_children(client: Client, namespace: str) -> None:
    """R11."""
    ports = [ModelBoxPort(port=80, name="http"), ModelBoxPort(port=81, name="admin")]
    env = [EnvVar(name="MODE", value="fast"), EnvVar(name="LEVEL", value="info")]
    created = box("web", namespace, ports=ports, envs=env, default_probes=True, readiness_probe=None)
    created.spec.default_probes = False
    modelbox = await settled(client, await client.create(created))

    modelbox.spec.ports = ports[:1]
    modelbox.spec.envs = env[:1]
    await settled(client, await client.patch(modelbox))

    deployment = await client.get(Deployment, key(namespace))
    service = await client.get(Service, key(namespace))
    assert main(deployment).env == env[:1]
    assert [port.container_port for port in main(deployment).ports or ()] == [80]
    assert [port.port for port in service.spec.ports or ()] == [80]


@pytest.mark.parametrize("annotations", [{}, {"modelbox.model.github.com/last-oldSpec": "not json"}])
async def test_no_annotation_is_needed_to_notice_a_change(
    client: Client, namespace: str, annotations: dict[str, str]
) -> None:
    """W2: a replaced object that carries none, or a broken one, is reconciled all the same."""
    await settled(client, await client.create(box("web", namespace)))

    def edit(modelbox: ModelBox) -> None:
        modelbox.metadata.annotations = annotations
        modelbox.spec.image = "nginx:1.28"

    await settled(client, await replaced(client, key(namespace), edit))

    assert main(await client.get(Deployment, key(namespace))).image == "nginx:1.28"


def is_rolled_out(generation: int) -> Callable[[Deployment], bool]:
    """Whether a Deployment of one pod has got that far."""
    return lambda found: (found.status.observed_generation or 0) >= generation and found.status.replicas == 1


def is_observed(generation: int) -> Callable[[ModelBox], bool]:
    """Whether the operator has seen that much of a ModelBox."""
    return lambda modelbox: (modelbox.status.observed_generation or 0) >= generation
