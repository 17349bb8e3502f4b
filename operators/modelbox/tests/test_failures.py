"""What goes wrong: with one child and not the other, for a while or until somebody does something. It is told."""

from kubewright import Client, ObjectMeta, Quantity, controller_of
from kubewright.k8s.apps.v1 import Deployment, DeploymentSpec
from kubewright.k8s.core.v1 import (
    Container,
    PodSpec,
    PodTemplateSpec,
    ResourceQuota,
    ResourceQuotaSpec,
    Secret,
    Service,
    ServicePort,
    ServiceSpec,
)
from kubewright.k8s.meta.v1 import LabelSelector
from kubewright.testing import RunningOperator, status

from boxes import as_condition, box, condition, is_ready, key, main, settled, told, until
from modelbox.api.v1.modelbox import ModelBox
from modelbox.api.v1.ports import ModelBoxPort
from refusals import Refusal, refused

TAKEN = 'Service "web" is invalid: spec.ports[0].nodePort: Invalid value: 30555: provided port is already allocated'


async def test_a_service_that_is_refused_does_not_hold_up_the_deployment(
    operator: RunningOperator, client: Client, namespace: str
) -> None:
    """T3, W7: the Service appears when it is no longer refused."""
    with Refusal(operator, f"/{namespace}/services/", status(422, reason="Invalid", message=TAKEN), times=3) as refusal:
        created = await client.create(box("web", namespace))
        await until(client, Deployment, key(namespace), lambda found: found.status.available_replicas == 1)
        await until(client, ModelBox, key(namespace), as_condition("Available", "True"))
        meanwhile = await until(
            client, ModelBox, key(namespace), as_condition("ServiceReady", "False", "NodePortUnavailable")
        )
        assert condition(meanwhile, "Degraded").message == TAKEN
        assert await client.find(Service, key(namespace)) is None
        refusal.may_end()

        await until(client, Service, key(namespace))

    assert refusal.count >= 3
    healed = await settled(client, created)
    assert condition(healed, "Degraded").status == "False"


async def test_a_deployment_that_cannot_be_written_does_not_hold_up_the_service(
    operator: RunningOperator, client: Client, namespace: str
) -> None:
    """W9: errors are neither swallowed nor the end; the Deployment is tried again."""
    with Refusal(operator, f"/{namespace}/deployments/", status(503, message="injected"), times=3) as refusal:
        created = await client.create(box("web", namespace))
        await until(client, Service, key(namespace))
        seen = await until(client, ModelBox, key(namespace), as_condition("Ready", "False"))
        assert condition(seen, "Available").reason == "DeploymentMissing"
        refusal.may_end()

        await settled(client, created)


async def test_a_conflict_is_got_over_with_what_is_wanted_by_then(
    operator: RunningOperator, client: Client, namespace: str
) -> None:
    """W10: what is sent again is not the stale object."""
    modelbox = await settled(client, await client.create(box("web", namespace, image="nginx:1")))
    answer = status(409, reason="Conflict", message="the object has been modified")
    with Refusal(operator, f"/{namespace}/deployments/", answer, times=2) as refusal:
        modelbox.spec.image = "nginx:2"
        modelbox = await client.patch(modelbox)
        modelbox.spec.image = "nginx:3"
        modelbox = await client.patch(modelbox)
        refusal.may_end()

        await settled(client, modelbox)

    assert refusal.count >= 2
    assert main(await client.get(Deployment, key(namespace))).image == "nginx:3"


async def test_a_status_that_could_not_be_written_is_written_later(
    operator: RunningOperator, client: Client, namespace: str
) -> None:
    """W10, C6."""
    answer = status(409, reason="Conflict", message="the object has been modified")
    with Refusal(operator, f"/{namespace}/modelboxes/web/status", answer, times=3) as refusal:
        created = await client.create(box("web", namespace))
        refusal.may_end()

        await settled(client, created)

    assert refusal.count >= 3


async def test_a_stranger_of_the_same_name_is_left_alone(client: Client, namespace: str) -> None:
    """1.8, W17."""
    foreign = await client.create(_stranger(namespace))

    created = await client.create(box("web", namespace))

    conflict = await until(client, ModelBox, key(namespace), as_condition("Degraded", "True", "NameConflict"))
    assert condition(conflict, "Ready").reason == "NameConflict"
    assert "left as it is" in (condition(conflict, "Ready").message or "")
    await until(client, ModelBox, key(namespace), as_condition("ServiceReady", "True"))
    untouched = await client.get(Deployment, key(namespace))
    assert untouched.spec == foreign.spec
    assert untouched.metadata.owner_references == []
    warning = await told(client, namespace, "NameConflict")
    assert warning.type == "Warning"
    # It has another selector, which nobody can change.
    assert (warning.note or "").endswith("rename one of the two or delete it")

    await client.delete(untouched)
    created.spec.image = "nginx:1.28"
    await client.patch(created)
    await until(client, ModelBox, key(namespace), is_ready)


async def test_a_stranger_that_could_be_adopted_is_once_it_has_the_label_that_is_recommended(
    client: Client, namespace: str
) -> None:
    """The advice is tried before it is given."""
    stranger = _stranger(namespace, {"model.github.com/modelbox": "web"})
    foreign = await client.create(stranger)
    theirs = ServiceSpec(ports=[ServicePort(port=80, target_port=8080)], selector={"app": "foreign"})
    await client.create(Service.named("web", namespace, spec=theirs))
    await client.create(box("web", namespace))
    conflict = await until(client, ModelBox, key(namespace), as_condition("Degraded", "True", "NameConflict"))
    advice = "label it with model.github.com/modelbox=web to have it adopted"
    assert (condition(conflict, "Degraded").message or "").count(advice) == 2

    label = {"metadata": {"labels": {"model.github.com/modelbox": "web"}}}
    await client.patch_by_name(Deployment, key(namespace), label)
    await client.patch_by_name(Service, key(namespace), label)

    await until(client, ModelBox, key(namespace), is_ready)
    adopted = await client.get(Deployment, key(namespace))
    assert adopted.metadata.uid == foreign.metadata.uid
    assert controller_of(adopted) == controller_of(await client.get(Service, key(namespace)))
    assert (await client.get(Service, key(namespace))).spec.selector == {"model.github.com/modelbox": "web"}


async def test_a_service_whose_ports_do_not_go_with_ours_is_not_to_be_labelled(client: Client, namespace: str) -> None:
    theirs = ServiceSpec(ports=[ServicePort(port=443)], selector={"app": "foreign"})
    await client.create(Service.named("web", namespace, spec=theirs))

    await client.create(box("web", namespace))

    conflict = await until(client, ModelBox, key(namespace), as_condition("ServiceReady", "False", "NameConflict"))
    assert (condition(conflict, "ServiceReady").message or "").endswith("rename one of the two or delete it")


async def test_a_child_that_is_refused_is_reported_in_the_servers_words(client: Client, namespace: str) -> None:
    """C6, W15: what only the API server can know ends in a condition and not in a log line alone."""
    created = await client.create(box("web", namespace, ports=[ModelBoxPort(port=80, node_port=80)]))

    seen = await until(client, ModelBox, created.key, as_condition("ServiceReady", "False", "ApplyFailed"))

    assert "not in the valid range" in (condition(seen, "ServiceReady").message or "")
    assert condition(seen, "Degraded").status == "True"
    await until(client, ModelBox, created.key, as_condition("Available", "True"))


async def test_a_quota_that_refuses_pods_is_named_in_the_status(client: Client, namespace: str) -> None:
    """1.8."""
    hard = {"pods": Quantity("1"), "secrets": Quantity("0")}
    await client.create(ResourceQuota.named("few", namespace, spec=ResourceQuotaSpec(hard=hard)))
    await refused(client, Secret.named("none", namespace))

    await client.create(box("web", namespace, replicas=3))

    await until(
        client,
        ModelBox,
        key(namespace),
        lambda found: "exceeded quota" in (condition(found, "Available").message or ""),
    )


async def test_an_image_that_cannot_be_pulled_ends_up_as_degraded(client: Client, namespace: str) -> None:
    """1.8."""
    modelbox = await client.create(box("web", namespace, image="nginx:no-such"))
    await until(client, ModelBox, key(namespace), as_condition("Available", "False", "MinimumReplicasUnavailable"))

    deployment = await client.get(Deployment, key(namespace))
    deployment.spec.progress_deadline_seconds = 1
    await client.patch(deployment)

    overdue = await until(
        client, ModelBox, key(namespace), as_condition("Degraded", "True", "ProgressDeadlineExceeded")
    )
    assert condition(overdue, "Ready").reason == "ProgressDeadlineExceeded"
    modelbox.spec.image = "nginx:1.28"
    await settled(client, await client.patch(modelbox))


async def test_old_pods_serve_on_while_a_new_image_cannot_be_pulled(client: Client, namespace: str) -> None:
    """1.8."""
    modelbox = await settled(client, await client.create(box("web", namespace)))

    modelbox.spec.image = "nginx:no-such"
    await client.patch(modelbox)

    stuck = await until(
        client,
        ModelBox,
        key(namespace),
        lambda found: found.status.replicas == 2 and found.status.updated_replicas == 1,
    )
    assert stuck.status.available_replicas == 1
    assert condition(stuck, "Available").status == "True"
    assert condition(stuck, "Progressing").status == "True"
    assert condition(stuck, "Ready").status == "False"


async def test_no_replicas_are_ready_too(client: Client, namespace: str) -> None:
    """1.8."""
    ready = await settled(client, await client.create(box("web", namespace, replicas=0)))

    assert (ready.status.replicas, ready.status.ready_replicas) == (0, 0)


async def test_without_a_tcp_port_the_ready_message_says_that_there_are_no_probes(
    client: Client, namespace: str
) -> None:
    """1.8, T10."""
    udp = box("web", namespace, ports=[ModelBoxPort(port=53, protocol="UDP")], default_probes=True)

    ready = await settled(client, await client.create(udp))

    assert "no default probes" in (condition(ready, "Ready").message or "")
    container = main(await client.get(Deployment, key(namespace)))
    assert (container.liveness_probe, container.readiness_probe) == (None, None)


async def test_what_really_happened_is_told_in_events(client: Client, namespace: str) -> None:
    """C10."""
    modelbox = await settled(client, await client.create(box("web", namespace)))
    created = await told(client, namespace, "Created")
    assert created.type == "Normal"

    modelbox.spec.replicas = 2
    await settled(client, await client.patch(modelbox))

    scaled = await told(client, namespace, "Scaled")
    assert "from 1 to 2 replicas" in (scaled.note or "")


def _stranger(namespace: str, labels: dict[str, str] | None = None) -> Deployment:
    labels = labels or {"app": "foreign"}
    container = Container(name="web", image="foreign:1")
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container]))
    spec = DeploymentSpec(selector=LabelSelector(match_labels=labels), template=template)
    return Deployment.named("web", namespace, spec=spec)
