"""What the API server lets in: the schema and the webhooks together, as a user meets them."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from kubewright import Client, Dynamic, FieldErrors
from kubewright.api import DynamicObject
from kubewright.errors import Invalid
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Service

from boxes import box, is_ready, key, main, settled, until
from modelbox.api.v1.modelbox import ModelBox
from modelbox.webhooks.v1 import modelbox as webhook

SAMPLE = Path(__file__).parent.parent / "config" / "samples" / "model_v1_modelbox.yaml"
PORT = {"port": 80}
GOOD = {"image": "nginx:1.27", "ports": [PORT]}
SOME = {"requests": {"cpu": "1"}}


def manifest(namespace: str, spec: dict[str, Any], *, name: str = "web") -> DynamicObject:
    """A ModelBox as somebody writes it, faults and all."""
    return Dynamic("model.github.com/v1", "ModelBox").named(name, namespace, content={"spec": spec})


async def test_the_sample_works_as_it_is(client: Client, namespace: str) -> None:
    """1.8: NodePort 30010, four pods, size small, probes on port 80."""
    tree = yaml.safe_load(SAMPLE.read_text())
    await client.create(manifest(namespace, tree["spec"], name=tree["metadata"]["name"]))

    ready = await until(client, ModelBox, key(namespace, "modelbox-sample"), is_ready)

    service = await client.get(Service, ready.key)
    container = main(await client.get(Deployment, ready.key))
    assert ready.status.available_replicas == 4
    assert ready.status.resource_type == ready.spec.resource_type == "small"
    assert service.spec.type == ready.spec.service_type == "NodePort"
    assert [(port.port, port.node_port) for port in service.spec.ports or ()] == [(80, 30010)]
    assert container.name == "nginx"
    assert container.readiness_probe is not None
    assert container.readiness_probe.tcp_socket is not None
    assert container.readiness_probe.tcp_socket.port == 80


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"ports": [PORT]}, "spec.image"),
        ({"image": "nginx:1.27"}, "spec.ports"),
        (GOOD | {"ports": []}, "spec.ports"),
        (GOOD | {"image": "two words"}, "spec.image"),
        (GOOD | {"rollingUpdate": "abc"}, "spec.rollingUpdate"),
        (GOOD | {"rollingUpdate": "0%"}, "spec.rollingUpdate"),
        (GOOD | {"rollingUpdate": "130%"}, "spec.rollingUpdate"),
        (GOOD | {"rollingUpdate": "030%"}, "spec.rollingUpdate"),
        (GOOD | {"rollingUpdate": "2"}, "spec.rollingUpdate"),
        (GOOD | {"rollingUpdate": 0}, "spec.rollingUpdate"),
        (GOOD | {"resourceType": "huge"}, "spec.resourceType"),
        (GOOD | {"resourceType": "small", "resources": SOME}, "spec.resources"),
        (GOOD | {"resourceType": "custom"}, "spec.resources"),
        (GOOD | {"serviceType": "ClusterIP", "ports": [{"port": 80, "nodePort": 30080}]}, "spec.ports[0].nodePort"),
        (GOOD | {"serviceType": "ExternalName"}, "spec.serviceType"),
        (GOOD | {"ports": [{"port": 80, "name": "http"}, {"port": 81}]}, "spec.ports[1].name"),
        (GOOD | {"ports": [PORT, PORT]}, "spec.ports[1]"),
        (GOOD | {"replicas": -1}, "spec.replicas"),
        (GOOD | {"replicas": 2**31}, "spec.replicas"),
        (GOOD | {"healthPath": "healthz"}, "spec.healthPath"),
    ],
)
async def test_what_cannot_work_is_refused_and_the_field_named(
    client: Client, namespace: str, spec: dict[str, Any], field: str
) -> None:
    """1.8, W14, W15, W18."""
    with pytest.raises(Invalid) as refusal:
        await client.create(manifest(namespace, spec))

    assert refusal.value.code == 422
    assert field in {cause.field for cause in refusal.value.causes}


async def test_a_wrong_size_is_answered_with_the_right_ones(client: Client, namespace: str) -> None:
    """1.8, W18."""
    with pytest.raises(Invalid, match='"small", "medium", "large", "custom"'):
        await client.create(manifest(namespace, GOOD | {"resourceType": "huge"}))


@pytest.mark.parametrize("name", ["a.b", "1box", "b" * 70])
async def test_a_name_that_no_service_can_have_is_refused(client: Client, namespace: str, name: str) -> None:
    """1.8."""
    with pytest.raises(Invalid, match="DNS-1035"):
        await client.create(manifest(namespace, GOOD, name=name))


async def test_all_faults_are_told_at_once(client: Client, namespace: str) -> None:
    """C8."""
    spec = {
        "image": "nginx:1.27",
        "ports": [{"port": 80, "nodePort": 30080}, {"port": 81}],
        "serviceType": "ClusterIP",
        "resourceType": "large",
        "resources": SOME,
        "livenessProbe": {},
    }

    with pytest.raises(Invalid) as refusal:
        await client.create(manifest(namespace, spec))

    assert {cause.field for cause in refusal.value.causes} == {
        "spec.ports[0].name",
        "spec.ports[1].name",
        "spec.ports[0].nodePort",
        "spec.resources",
        "spec.livenessProbe",
    }


@pytest.mark.parametrize("rolling_update", [2, "1%", "100%"])
async def test_numbers_and_percentages_are_accepted_for_rollouts(
    client: Client, namespace: str, rolling_update: int | str
) -> None:
    """1.8."""
    accepted = await client.create(manifest(namespace, GOOD | {"rollingUpdate": rolling_update}), dry_run=True)

    assert accepted["spec"]["rollingUpdate"] == rolling_update


async def test_what_is_left_out_is_filled_in(client: Client, namespace: str) -> None:
    """1.5, W14."""
    accepted = await client.create(manifest(namespace, GOOD), dry_run=True)

    assert accepted["spec"] | {"envs": None} == {
        "name": "web",
        "image": "nginx:1.27",
        "replicas": 1,
        "rollingUpdate": "25%",
        "minReadySeconds": 3,
        "defaultProbes": True,
        "serviceType": "ClusterIP",
        "resourceType": "small",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "containers": [],
        "initContainers": [],
        "volumes": [],
        "volumeMounts": [],
        "envs": None,
    }


async def test_a_server_made_name_becomes_the_containers_name(client: Client, namespace: str) -> None:
    """1.2: the name is not known yet when defaults are filled in."""
    wanted = box("", namespace)
    wanted.metadata.generate_name = "web-"

    ready = await settled(client, await client.create(wanted))

    assert main(await client.get(Deployment, ready.key)).name == ready.metadata.name


async def test_a_spec_that_is_not_touched_is_not_validated_again(
    client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C8: stricter rules must not hold up a change of labels."""
    modelbox = await client.create(box("web", namespace))

    def stricter(modelbox: ModelBox, errors: FieldErrors, *, old: ModelBox | None = None) -> None:
        errors.add("spec.image", "is no longer good enough")

    monkeypatch.setattr(webhook, "check", stricter)
    labelled = await client.patch_by_name(ModelBox, modelbox.key, {"metadata": {"labels": {"team": "a"}}})

    assert labelled.metadata.labels == {"team": "a"}
    with pytest.raises(Invalid, match="is no longer good enough"):
        await client.patch_by_name(ModelBox, modelbox.key, {"spec": {"replicas": 2}})
