"""Children are made, and come back when somebody deletes them."""

import time

from kubewright import Client, controller_of
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Container, ContainerPort, EmptyDirVolumeSource, Pod, Service, Volume, VolumeMount
from kubewright.testing import RunningOperator, gone, time_limit

from boxes import box, key, settled, until


async def test_a_modelbox_gets_a_deployment_and_a_service_and_becomes_ready(client: Client, namespace: str) -> None:
    """T1, W11."""
    created = await client.create(box("web", namespace, replicas=2))

    ready = await settled(client, created)

    deployment = await client.get(Deployment, key(namespace))
    service = await client.get(Service, key(namespace))
    for child in (deployment, service):
        owner = controller_of(child)
        assert owner is not None
        assert (owner.kind, owner.name, owner.uid) == ("ModelBox", "web", created.metadata.uid)
        assert owner.block_owner_deletion
        assert child.metadata.labels["model.github.com/modelbox"] == "web"
        assert child.metadata.labels["app.kubernetes.io/managed-by"] == "modelbox-operator"
    assert deployment.spec.selector.match_labels == service.spec.selector == {"model.github.com/modelbox": "web"}
    assert ready.status.observed_generation == ready.metadata.generation
    assert (ready.status.replicas, ready.status.available_replicas, ready.status.updated_replicas) == (2, 2, 2)
    assert ready.status.selector == "model.github.com/modelbox=web"
    assert ready.status.service is not None
    assert ready.status.service.cluster_ip == service.spec.cluster_ip


def five_seconds(begun: float) -> float:
    """Or where a new box took longer than that to be ready, a few times as long as it took."""
    return max(5.0, 3 * (time.monotonic() - begun))


async def test_a_deleted_deployment_comes_back_and_the_service_is_left_alone(client: Client, namespace: str) -> None:
    """T2, W8."""
    begun = time.monotonic()
    created = await client.create(box("web", namespace))
    await settled(client, created)
    limit = five_seconds(begun)
    deployment = await client.get(Deployment, key(namespace))
    service = await client.get(Service, key(namespace))

    await client.delete(deployment)

    healed = await until(
        client, Deployment, key(namespace), lambda found: found.metadata.uid != deployment.metadata.uid, seconds=limit
    )
    assert healed.spec.template == deployment.spec.template
    assert (await client.get(Service, key(namespace))).metadata.uid == service.metadata.uid
    await settled(client, created)


async def test_a_deleted_service_comes_back_with_its_ports(client: Client, namespace: str) -> None:
    """T2, W7."""
    begun = time.monotonic()
    created = await client.create(box("web", namespace))
    await settled(client, created)
    limit = five_seconds(begun)
    service = await client.get(Service, key(namespace))

    await client.delete(service)

    healed = await until(
        client, Service, key(namespace), lambda found: found.metadata.uid != service.metadata.uid, seconds=limit
    )
    assert [(port.port, port.protocol) for port in healed.spec.ports or ()] == [(80, "TCP")]
    await settled(client, created)


async def test_a_deleted_pod_comes_back_and_is_counted(client: Client, namespace: str) -> None:
    """T2."""
    created = await client.create(box("web", namespace, replicas=2))
    await settled(client, created)
    pods = await client.list(Pod, namespace=namespace)

    await client.delete(pods[0])

    await gone(client, Pod, pods[0].key)
    # It is made anew by others than who counts it: the status may say nothing of either for a while.
    names: set[str] = set()
    async with time_limit(60), client.watch(Pod, namespace=namespace, initial_events=True) as events:
        async for event in events:
            if event.type != "DELETED" and event.object.metadata.deletion_timestamp is None:
                names.add(event.object.metadata.name)
            if len(names) == 2:
                break
    await settled(client, created)
    assert pods[0].metadata.name not in names


async def test_everything_deleted_at_once_comes_back(client: Client, namespace: str) -> None:
    """T2."""
    created = await client.create(box("web", namespace))
    await settled(client, created)
    deployment = await client.get(Deployment, key(namespace))
    service = await client.get(Service, key(namespace))
    (pod,) = await client.list(Pod, namespace=namespace)

    await client.delete(pod)
    await client.delete(service)
    await client.delete(deployment)

    await until(client, Deployment, key(namespace), lambda found: found.metadata.uid != deployment.metadata.uid)
    await until(client, Service, key(namespace), lambda found: found.metadata.uid != service.metadata.uid)
    healed = await settled(client, created)
    assert healed.status.available_replicas == 1


async def test_nothing_is_written_to_the_modelbox_but_its_status(
    operator: RunningOperator, client: Client, namespace: str
) -> None:
    """W1."""
    created = await client.create(box("web", namespace))
    ready = await settled(client, created)

    ours = [request for request in operator.faults.requests if f"/{namespace}/modelboxes/" in request.path]
    writes = {request.path.rpartition("/")[2] for request in ours if request.method != "GET"}
    assert writes == {"status"}
    assert ready.metadata.annotations == {}
    assert ready.metadata.generation == created.metadata.generation


async def test_only_what_was_asked_for_is_in_the_pod(client: Client, namespace: str) -> None:
    """W12."""
    created = await client.create(box("web", namespace))
    await settled(client, created)

    (pod,) = await client.list(Pod, namespace=namespace)

    assert [container.name for container in pod.spec.containers] == ["web"]
    assert not pod.spec.init_containers


async def test_extra_containers_run_beside_the_main_one_and_init_containers_before_it(
    client: Client, namespace: str
) -> None:
    """Feature 3, R7."""
    shared = VolumeMount(name="models", mount_path="/models")
    created = await client.create(
        box(
            "web",
            namespace,
            name="server",
            volumes=[Volume(name="models", empty_dir=EmptyDirVolumeSource())],
            volume_mounts=[shared],
            containers=[Container(name="exporter", image="exporter:1", ports=[ContainerPort(container_port=9090)])],
            init_containers=[
                Container(name="fetch", image="fetch:1", command=["/bin/true"], volume_mounts=[shared]),
                Container(name="check", image="check:1", command=["/bin/true"]),
            ],
        )
    )

    await settled(client, created)

    (pod,) = await client.list(Pod, namespace=namespace)
    assert [container.name for container in pod.spec.containers] == ["server", "exporter"]
    assert [container.name for container in pod.spec.init_containers or ()] == ["fetch", "check"]
    assert pod.metadata.labels["app.kubernetes.io/name"] == "server"
