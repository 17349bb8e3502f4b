"""Pods live on simulated nodes as they do on real ones, as far as a client can see.

Covers: kubewright.cluster.kubelet
"""

from __future__ import annotations

import json

import pytest
from tests.builders.pods import pod
from tests.cluster.simulated_nodes.conftest import conditions, is_ready
from tests.waiting import present, reach

from kubewright import Client
from kubewright.api.codec import encode_tree, from_tree
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.batch.v1 import Job
from kubewright.k8s.core.v1 import ConfigMap, ContainerStatus, Event, Pod
from kubewright.testing import time_limit

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


def main(item: Pod) -> ContainerStatus | None:
    return next((status for status in item.status.container_statuses or () if status.name == "main"), None)


def waits_for(reason: str):  # type: ignore[no-untyped-def]  # a predicate of pods
    def holds(item: Pod) -> bool:
        status = main(item)
        return bool(status and status.state and status.state.waiting and status.state.waiting.reason == reason)

    return holds


async def test_a_pod_runs_with_everything_a_kubelet_writes(client: Client, namespace: str) -> None:
    created = await client.create(pod("web", namespace))

    running = await reach(client, created, is_ready)

    assert running.status.phase == "Running"
    assert running.status.host_ip == "127.0.0.1"
    assert running.status.start_time is not None
    assert running.status.observed_generation == running.metadata.generation
    status = main(running)
    assert status is not None
    assert status.image == "docker.io/library/nginx:latest"
    assert status.container_id is not None
    assert status.container_id.startswith("containerd://")
    assert set(conditions(running)) == {
        "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled",
    }  # fmt: skip
    # Each reporter writes its events in their order, and neither waits for the other.
    events = await present(client, Event, namespace, lambda have: len(have) >= 4)
    said: dict[str, list[str]] = {}
    for item in sorted(events.values(), key=lambda item: int(item.metadata.resource_version)):
        said.setdefault(item.reporting_component or "", []).append(item.reason or "")
    assert said == {"default-scheduler": ["Scheduled"], "kubelet": ["Pulled", "Created", "Started"]}


async def test_a_deleted_pod_is_not_ready_before_it_disappears(client: Client, namespace: str) -> None:
    running = await reach(client, await client.create(pod("web", namespace)), is_ready)
    seen: list[tuple[str, str | None, str | None]] = []

    version = running.metadata.resource_version
    async with time_limit(60), client.watch(Pod, namespace=namespace, resource_version=version) as events:
        await client.delete(Pod, running.key)
        async for event in events:
            state = (event.type, event.object.status.phase, conditions(event.object).get("Ready"))
            if state not in seen:  # the server itself writes once more before it removes
                seen.append(state)
            if event.type == "DELETED":
                break

    assert seen == [
        ("MODIFIED", "Running", "True"),  # the deletion was asked for
        ("MODIFIED", "Running", "False"),
        ("MODIFIED", "Succeeded", "False"),
        ("DELETED", "Succeeded", "False"),
    ]


async def test_a_force_deleted_pod_disappears_at_once_and_a_new_pod_of_that_name_runs(
    client: Client, namespace: str
) -> None:
    first = await reach(client, await client.create(pod("web", namespace)), is_ready)
    await client.delete(Pod, first.key, grace_period=0)

    second = await reach(client, await client.create(pod("web", namespace)), is_ready)

    assert second.metadata.uid != first.metadata.uid


async def test_a_finalizer_holds_a_pod_whose_containers_have_ended(client: Client, namespace: str) -> None:
    given = pod("web", namespace)
    given.metadata.finalizers = ["example.io/hold"]
    running = await reach(client, await client.create(given), is_ready)

    await client.delete(Pod, running.key)
    held = await reach(client, running, lambda item: item.status.phase == "Succeeded")
    assert held.metadata.finalizers == ["example.io/hold"]
    await client.patch_by_name(Pod, running.key, {"metadata": {"finalizers": None}})

    await present(client, Pod, namespace, lambda have: not have)


async def test_an_evicted_pod_is_deleted(client: Client, namespace: str) -> None:
    running = await reach(client, await client.create(pod("web", namespace)), is_ready)
    path = await client.object_path(Pod, running.key, namespace=None, subresource="eviction")

    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web", "namespace": namespace}}
    await client.request("POST", path, body=encode_tree(body))

    await present(client, Pod, namespace, lambda have: not have)


async def test_a_crashing_container_backs_off_and_counts(client: Client, namespace: str) -> None:
    created = await client.create(pod("web", namespace, container={"image": "crasher"}))

    crashing = await reach(client, created, waits_for("CrashLoopBackOff"))
    assert crashing.status.phase == "Running"
    again = await reach(client, created, lambda item: bool((status := main(item)) and status.restart_count >= 3))

    status = main(again)
    assert status is not None
    assert status.last_state is not None
    assert status.last_state.terminated is not None
    assert status.last_state.terminated.exit_code == 1


async def test_a_missing_image_is_retried_and_a_corrected_one_runs(client: Client, namespace: str) -> None:
    created = await client.create(pod("web", namespace, container={"image": "nginx:nonexistent"}))
    await reach(client, created, waits_for("ImagePullBackOff"))

    patch = {"spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]}}
    await client.patch_by_name(Pod, created.key, patch, patch_type="strategic")

    running = await reach(client, created, is_ready)
    status = main(running)
    assert status is not None
    assert status.image == "docker.io/library/nginx:1.27"


async def test_a_changed_image_has_another_image_id_after_a_restart(client: Client, namespace: str) -> None:
    before = await reach(
        client, await client.create(pod("web", namespace, container={"image": "nginx:1.27"})), is_ready
    )

    old = main(before)
    assert old is not None
    patch = {"spec": {"containers": [{"name": "main", "image": "nginx:1.28"}]}}
    changed = await client.patch_by_name(Pod, before.key, patch, patch_type="strategic")
    seen: list[tuple[bool, bool]] = []
    async with client.watch(Pod, namespace=namespace, resource_version=changed.metadata.resource_version) as events:
        async for event in events:
            status = main(event.object)
            assert status is not None
            seen.append((status.image_id == old.image_id, is_ready(event.object)))
            if seen[-1] == (False, True):
                break

    assert (True, False) in seen  # a status that was under way when the image was changed may come first


async def test_a_pod_waits_for_a_missing_config_map(client: Client, namespace: str) -> None:
    volumes = [{"name": "settings", "configMap": {"name": "settings"}}]
    environment = {"envFrom": [{"configMapRef": {"name": "env"}}]}
    mounted = await client.create(pod("mounted", namespace, volumes=volumes))
    configured = await client.create(pod("configured", namespace, container=environment))
    await reach(client, configured, waits_for("CreateContainerConfigError"))
    await reach(client, mounted, waits_for("ContainerCreating"))

    await client.create(ConfigMap.named("settings", namespace))
    await client.create(ConfigMap.named("env", namespace))

    await reach(client, mounted, is_ready)
    await reach(client, configured, is_ready)


async def test_a_pod_waits_for_its_readiness_gate(client: Client, namespace: str) -> None:
    created = await client.create(pod("web", namespace, readinessGates=[{"conditionType": "example.io/gate"}]))
    await reach(client, created, lambda item: conditions(item).get("ContainersReady") == "True")

    patch = {"status": {"conditions": [{"type": "example.io/gate", "status": "True"}]}}
    await client.patch_by_name(Pod, created.key, patch, patch_type="strategic", subresource="status")

    ready = await reach(client, created, is_ready)
    assert conditions(ready)["example.io/gate"] == "True"


async def test_the_kubelet_corrects_a_ready_condition_of_another_client(client: Client, namespace: str) -> None:
    created = await client.create(pod("web", namespace))
    before = await reach(client, created, is_ready)

    condition = {"type": "Ready", "status": "False", "lastTransitionTime": "2030-01-01T00:00:00Z"}
    patch = {"status": {"conditions": [condition]}}
    said = await client.patch_by_name(Pod, created.key, patch, patch_type="strategic", subresource="status")
    assert not is_ready(said)

    after = await reach(client, created, is_ready)
    assert after.metadata.resource_version != before.metadata.resource_version


async def test_an_ephemeral_container_runs(client: Client, namespace: str) -> None:
    running = await reach(client, await client.create(pod("web", namespace)), is_ready)

    debug = {"name": "debug", "image": "tools", "terminationMessagePolicy": "File", "imagePullPolicy": "Always"}
    patch = {"spec": {"ephemeralContainers": [debug]}}
    await client.patch_by_name(Pod, running.key, patch, patch_type="strategic", subresource="ephemeralcontainers")

    found = await reach(client, running, lambda item: bool(item.status.ephemeral_container_statuses))
    assert found.status.ephemeral_container_statuses is not None
    state = found.status.ephemeral_container_statuses[0].state
    assert state is not None
    assert state.running is not None


async def test_a_job_completes_and_one_that_fails_fails(client: Client, namespace: str) -> None:
    def job(name: str, *command: str) -> Job:
        template = {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "perl", "command": list(command)}],
            }
        }
        spec = {"template": template, "backoffLimit": 0}
        return from_tree(Job, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})

    good = await client.create(job("pi", "perl", "-wle", "print 3"))
    bad = await client.create(job("bad", "sh", "-c", "exit 1"))

    await reach(client, good, lambda item: bool(item.status.succeeded))
    await reach(client, bad, lambda item: bool(item.status.failed))


async def test_a_deployment_rolls_out_and_on(client: Client, namespace: str) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    created = await client.create(
        from_tree(Deployment, {"metadata": {"name": "web", "namespace": namespace}, "spec": spec})
    )
    await reach(client, created, lambda item: item.status.available_replicas == 3)

    change = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}}}
    await client.patch_by_name(Deployment, created.key, change, patch_type="strategic")

    def rolled_out(item: Deployment) -> bool:
        status = item.status
        return (
            status.observed_generation == 2
            and status.updated_replicas == 3
            and status.available_replicas == 3
            and status.replicas == 3
        )

    await reach(client, created, rolled_out)
    pods = await present(client, Pod, namespace, lambda have: len(have) == 3)
    assert {item.spec.containers[0].image for item in pods.values()} == {"nginx:2"}


async def test_the_kubelet_emits_its_usual_events(client: Client, namespace: str) -> None:
    await reach(client, await client.create(pod("web", namespace)), is_ready)

    events = await present(
        client, Event, namespace, lambda have: any(item.reason == "Started" for item in have.values())
    )

    started = next(item for item in events.values() if item.reason == "Started")
    assert json.loads(encode_tree(started.involved_object))["name"] == "web"
    assert started.reporting_component == "kubelet"
