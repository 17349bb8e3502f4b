"""Pods on their way in: what they get, and what they are refused for."""

import pytest
from home import LOG, Home, causes, names
from kubewright import Quantity
from kubewright.errors import Invalid
from kubewright.k8s.apps.v1 import ReplicaSet
from kubewright.k8s.core.v1 import Container, LimitRange, Pod, ResourceQuota
from kubewright.testing import RunningOperator, until

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.records import HASH, INJECTED_LIST, records_of

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"

any_volume = pytest.mark.parametrize(
    "source",
    [
        {"ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}},
        {"emptyDir": {}},
        {},
        {"image": {"reference": "registry.example/data:1"}},
        {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
        {
            "downwardAPI": {
                "items": [{"path": "cpu", "resourceFieldRef": {"containerName": "log", "resource": "limits.cpu"}}]
            }
        },
        {"hostPath": {"path": "/var/log"}},
        {"nfs": {"server": "files.example", "path": "/"}},
        {"iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}},
        {"csi": {"driver": "disks.example"}},
    ],
    ids=lambda source: next(iter(source), "none"),
)


def mounts(container: Container) -> list[str]:
    return [mount.mount_path for mount in container.volume_mounts or ()]


async def test_a_pod_that_is_selected_gets_the_containers(home: Home) -> None:
    sidecarset = await home.make_set()

    pod = await home.make_pod()

    assert names(pod.spec.containers) == ["log", "main"]
    assert [(item.name, item.value) for item in pod.spec.containers[0].env or ()] == [("IS_INJECTED", "true")]
    assert pod.metadata.annotations[INJECTED_LIST] == sidecarset.metadata.name
    record = records_of(pod)[sidecarset.metadata.name]
    assert record.revision.hash == sidecarset.status.latest_revision
    assert (record.containers, record.generation) == (("log",), 1)
    await home.counted(sidecarset, 1, 1, 1)


async def test_everything_that_a_set_brings_arrives(home: Home) -> None:
    await home.make_set(
        containers=[{**LOG, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        initContainers=[{"name": "prepare", "image": "busybox:1.36"}],
        volumes=[{"name": "data", "configMap": {"name": "data", "optional": True}}, {"name": "spare", "emptyDir": {}}],
        imagePullSecrets=[{"name": "registry"}],
    )

    pod = await home.make_pod(initContainers=[{"name": "own", "image": "busybox:1.36"}])

    assert names(pod.spec.init_containers) == ["own", "prepare"]
    assert "data" in names(pod.spec.volumes)
    assert "spare" not in names(pod.spec.volumes)
    assert [item.name for item in pod.spec.image_pull_secrets or ()] == ["registry"]


async def test_a_pod_that_three_sets_select_gets_all_three_in_the_order_of_their_names(home: Home) -> None:
    for name in ("c", "a", "b"):
        await home.make_set(name, containers=[{"name": f"{name}-log", "image": "fluent-bit:3.1"}])

    pod = await home.make_pod()

    assert names(pod.spec.containers) == ["a-log", "b-log", "c-log", "main"]
    assert pod.metadata.annotations[INJECTED_LIST] == ",".join(home.name(name) for name in "abc")
    assert list(records_of(pod)) == [home.name(name) for name in "abc"]


async def test_a_pod_that_no_set_selects_stays_as_it_was_sent(home: Home) -> None:
    await home.make_set()

    pod = await home.make_pod(labels={"app": "other"})

    assert names(pod.spec.containers) == ["main"]
    assert pod.metadata.annotations == {}


async def test_a_container_of_the_pods_own_is_not_overwritten(home: Home) -> None:
    await home.make_set()
    own = [{"name": "main", "image": "nginx"}, {"name": "log", "image": "mine"}]

    with pytest.raises(Invalid, match=f"SidecarSet {home.name('logs')} brings a container log") as refusal:
        await home.make_pod(containers=own)

    assert causes(refusal.value) == ["spec.containers[1].name"]


async def test_a_volume_of_the_pods_own_is_not_shared_by_accident(home: Home) -> None:
    mounted = {**LOG, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    await home.make_set(containers=[mounted], volumes=[{"name": "data", "configMap": {"name": "data"}}])

    with pytest.raises(Invalid, match="another volume data"):
        await home.make_pod(volumes=[{"name": "data", "emptyDir": {}}])
    same = await home.make_pod(volumes=[{"name": "data", "configMap": {"name": "data"}}])

    assert names(same.spec.volumes).count("data") == 1


async def test_a_copy_of_an_injected_pod_is_accepted(home: Home) -> None:
    await home.make_set()
    first = await home.make_pod("first")

    copy = home.pod("copy", annotations=first.metadata.annotations)
    copy.spec = first.spec
    second = await home.client.create(copy)

    assert names(second.spec.containers) == ["log", "main"]
    assert records_of(second) == records_of(first)


async def test_a_pod_can_do_without(home: Home) -> None:
    sidecarset = await home.make_set()

    pod = await home.make_pod("plain", annotations={"apps.unisound.io/inject": "false"})
    await home.make_pod("injected")

    assert names(pod.spec.containers) == ["main"]
    assert (await home.counted(sidecarset, 1, 1, 1)).status.uninjected_pods == 0


async def test_nothing_is_injected_while_injection_is_paused(home: Home) -> None:
    sidecarset = await home.make_set(injectionStrategy={"paused": True})

    pod = await home.make_pod()

    assert names(pod.spec.containers) == ["main"]
    await home.until_set(sidecarset, lambda now: now.status.uninjected_pods == 1)


async def test_namespaces_are_selected_by_their_labels(home: Home) -> None:
    sidecarset = await home.make_set(namespaceSelector={"matchLabels": {"team": home.namespace}})
    inside = f"{home.namespace}-inside"
    await home.make_namespace(inside, team=home.namespace)

    outsider = await home.make_pod()
    insider = await home.make_pod(namespace=inside)

    assert names(outsider.spec.containers) == ["main"]
    assert names(insider.spec.containers) == ["log", "main"]
    assert (await home.counted(sidecarset, 1, 1, 1)).status.uninjected_pods == 0


async def test_a_namespace_that_is_too_new_for_the_cache_is_asked_for(home: Home, operator: RunningOperator) -> None:
    await home.make_set(namespaceSelector={"matchLabels": {"team": home.namespace}})
    operator.faults.hold_streams()
    new = f"{home.namespace}-new"
    await home.make_namespace(new, team=home.namespace)

    pod = await home.make_pod(namespace=new)

    assert names(pod.spec.containers) == ["log", "main"]


async def test_a_namespace_can_be_closed(home: Home) -> None:
    sidecarset = await home.make_set()
    closed = f"{home.namespace}-closed"
    await home.make_namespace(closed, **{"apps.unisound.io__injection": "disabled"})

    pod = await home.make_pod(namespace=closed)
    await home.make_pod()

    assert names(pod.spec.containers) == ["main"]
    assert (await home.counted(sidecarset, 1, 1, 1)).status.uninjected_pods == 0


@pytest.mark.parametrize("namespace", ["kube-system", "sidecarset-system"])
async def test_pods_of_the_cluster_and_of_the_operator_are_left_alone(home: Home, namespace: str) -> None:
    sidecarset = await home.make_set()

    pod = await home.make_pod(home.name("system"), namespace)
    await home.make_pod()

    assert names(pod.spec.containers) == ["main"]
    assert (await home.counted(sidecarset, 1, 1, 1)).status.uninjected_pods == 0
    await home.client.delete(pod, grace_period=0)


async def test_a_trial_shows_the_sidecars_and_leaves_no_trace(home: Home, operator: RunningOperator) -> None:
    sidecarset = await home.make_set()
    before = len(operator.faults.requests)

    pod = await home.client.create(home.pod("trial"), dry_run=True)

    assert names(pod.spec.containers) == ["log", "main"]
    assert await home.client.find(Pod, pod.key) is None
    await home.make_pod("real")
    assert (await home.counted(sidecarset, 1, 1, 1)).status.uninjected_pods == 0
    written = [request.path for request in operator.faults.requests[before:] if request.method != "GET"]
    assert written
    assert all(path.endswith(f"/sidecarsets/{sidecarset.metadata.name}/status") for path in written)


async def test_a_set_that_is_deleted_leaves_its_pods_and_injects_no_more(home: Home, operator: RunningOperator) -> None:
    sidecarset = await home.make_set()
    await home.make_set("other", containers=[{"name": "other", "image": "fluent-bit:3.1"}])
    old = await home.make_pod("old")

    await home.client.delete(sidecarset)
    await operator.until_cached(SidecarSet, sidecarset.key, lambda seen: seen is None)
    new = await home.make_pod("new")

    assert names(new.spec.containers) == ["other", "main"]
    kept = await home.client.get(Pod, old.key)
    assert names(kept.spec.containers) == ["log", "other", "main"]
    assert HASH in kept.metadata.annotations


async def test_pods_that_a_controller_makes_are_injected_as_well(home: Home) -> None:
    await home.make_set()
    template = {
        "metadata": {"labels": home.labels},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]},
    }
    owner = await home.make_replicaset("web", template, replicas=2)

    await until(home.client, ReplicaSet, owner.key, lambda now: now.status and now.status.ready_replicas == 2)

    assert [names(pod.spec.containers) for pod in await home.pods()] == [["log", "main"]] * 2


async def test_two_sets_that_were_created_at_the_same_moment_do_not_overwrite_each_other(
    home: Home, operator: RunningOperator
) -> None:
    await home.make_together(operator, home.sidecarset("first"), home.sidecarset("second"))

    with pytest.raises(Invalid, match=f"{home.name('first')} and {home.name('second')} both bring a container log"):
        await home.make_pod()


async def test_a_sidecar_keeps_what_the_server_gives_every_container(home: Home) -> None:
    """The API server asks again after it has added the token and the defaults of a LimitRange."""
    await home.make_set()
    limits = {"type": "Container", "default": {"cpu": "100m", "memory": "64Mi"}, "defaultRequest": {"cpu": "50m"}}
    await home.make(LimitRange, "defaults", {"limits": [limits]})
    await home.make(ResourceQuota, "quota", {"hard": {"limits.cpu": "10", "requests.memory": "1Gi"}})

    pod = await home.make_pod()

    log, main = pod.spec.containers
    assert (log.name, mounts(log)) == ("log", [TOKEN])
    assert mounts(main) == [TOKEN]
    assert log.resources == main.resources
    assert log.resources is not None
    assert log.resources.limits == {"cpu": Quantity("100m"), "memory": Quantity("64Mi")}


@any_volume
async def test_a_volume_of_any_kind_is_the_sets_own_when_the_server_asks_again(
    home: Home, source: dict[str, object]
) -> None:
    """It asks again because it has added a token; by then the volume has the server's own defaults."""
    mounted = {**LOG, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    await home.make_set(containers=[mounted], volumes=[{"name": "data", **source}])

    pod = await home.make_pod()

    assert mounts(pod.spec.containers[0]) == ["/data", TOKEN]
    copy = home.pod("copy", annotations=pod.metadata.annotations)
    copy.spec.containers, copy.spec.volumes = pod.spec.containers, pod.spec.volumes
    assert (await home.client.create(copy)).spec.volumes == pod.spec.volumes


@any_volume
async def test_a_volume_that_is_the_same_may_be_the_pods_own(home: Home, source: dict[str, object]) -> None:
    mounted = {**LOG, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    volumes = [{"name": "data", **source}]
    await home.make_set(containers=[mounted], volumes=volumes)

    pod = await home.make_pod(volumes=volumes)

    assert names(pod.spec.volumes).count("data") == 1


async def test_a_copy_of_an_injected_pod_follows_the_set_and_keeps_what_others_added(home: Home) -> None:
    sidecarset = await home.make_set(containers=[{**LOG, "command": ["run"], "env": [{"name": "LEVEL", "value": "3"}]}])
    first = await home.make_pod("first")
    first.spec.containers[0].working_dir = "/theirs"
    await home.change(sidecarset, containers=[{**LOG, "image": "fluent-bit:4"}])

    copy = home.pod("copy", annotations=first.metadata.annotations)
    copy.spec.containers, copy.spec.volumes = first.spec.containers, first.spec.volumes
    log = (await home.client.create(copy)).spec.containers[0]

    assert (log.image, log.command, log.working_dir) == ("fluent-bit:4", None, "/theirs")
    assert [item.name for item in log.env or ()] == ["IS_INJECTED"]
    assert mounts(log) == [TOKEN]
