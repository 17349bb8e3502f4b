"""What becomes of a pod that sets select."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubewright import FieldErrors, Quantity
from kubewright.api import copy_of, to_tree
from kubewright.k8s.core.v1 import Pod, ResourceRequirements, VolumeMount
from made import LOG, a_pod, a_set, injected

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.injection import inject
from sidecarset.records import HASH, INJECTED_LIST, records_of

AFTER = {"name": "after", "image": "fluent-bit:3.1", "podInjectPolicy": "AfterAppContainer"}
MOUNTED = {**LOG, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
DATA = {"name": "data", "configMap": {"name": "data"}}


def refused(pod: Pod, *sets: SidecarSet) -> dict[str, str]:
    errors = FieldErrors()
    inject(copy_of(pod), sets, errors)
    return {error.path: str(error) for error in errors}


def names(pod: Pod) -> tuple[list[str], list[str]]:
    return [item.name for item in pod.spec.containers], [item.name for item in pod.spec.init_containers or ()]


def test_sets_are_taken_in_the_order_of_their_names_and_containers_in_that_of_the_spec() -> None:
    first = a_set("a", containers=[{**LOG, "name": "a2"}, {**LOG, "name": "a1"}, {**AFTER, "name": "a3"}])
    second = a_set("b", containers=[{**LOG, "name": "b1"}, {**AFTER, "name": "b2"}])

    pod = injected(a_pod(), second, first)

    assert names(pod)[0] == ["a2", "a1", "b1", "main", "a3", "b2"]
    assert pod.metadata.annotations[INJECTED_LIST] == "a,b"


def test_init_containers_come_behind_the_pods_own_sorted_by_name() -> None:
    one = a_set("a", initContainers=[{**LOG, "name": "z"}, {**LOG, "name": "m"}], containers=[])
    two = a_set("b", initContainers=[{**LOG, "name": "c"}], containers=[])

    pod = injected(a_pod(spec={"initContainers": [{"name": "own", "image": "busybox"}]}), one, two)

    assert names(pod)[1] == ["own", "c", "m", "z"]


def test_every_injected_container_is_marked_whatever_the_set_says_itself() -> None:
    loud = {**LOG, "env": [{"name": "IS_INJECTED", "value": "no"}, {"name": "A", "value": "b"}]}

    container = injected(a_pod(), a_set(containers=[loud])).spec.containers[0]

    assert [(item.name, item.value) for item in container.env or ()] == [("A", "b"), ("IS_INJECTED", "true")]
    assert "podInjectPolicy" not in to_tree(container)


def test_a_container_of_the_pods_own_is_never_replaced() -> None:
    pod = a_pod(spec={"containers": [{"name": "main", "image": "nginx"}, {"name": "log", "image": "mine"}]})

    found = refused(pod, a_set())

    assert list(found) == ["spec.containers[1].name"]
    assert "SidecarSet logs brings a container log" in found["spec.containers[1].name"]


def test_a_name_that_the_other_list_has_is_refused_too() -> None:
    pod = a_pod(spec={"initContainers": [{"name": "log", "image": "mine"}]})

    assert list(refused(pod, a_set())) == ["spec.initContainers[0].name"]


def test_two_sets_that_slipped_past_each_other_do_not_overwrite_each_other() -> None:
    found = refused(a_pod(), a_set("a"), a_set("b"))

    assert "SidecarSets a and b both bring a container log" in found["spec.containers"]


def test_injecting_again_changes_nothing() -> None:
    sets = (
        a_set("a", containers=[MOUNTED, AFTER], volumes=[DATA], imagePullSecrets=[{"name": "registry"}]),
        a_set("b", containers=[], initContainers=[{**LOG, "name": "prepare"}]),
    )
    once = injected(a_pod(), *sets)

    assert injected(once, *sets) == once


@given(st.permutations(["a", "b", "c"]), st.integers(0, 3))
def test_neither_the_order_of_sets_nor_a_second_time_matters(order: list[str], own: int) -> None:
    sets = {name: a_set(name, containers=[{**LOG, "name": f"{name}-log"}]) for name in order}
    containers = [{"name": f"own-{index}", "image": "nginx"} for index in range(own)] or [{"name": "x", "image": "y"}]
    pod = a_pod(spec={"containers": containers})

    once = injected(pod, *(sets[name] for name in order))

    assert injected(once, *sets.values()) == once
    assert once == injected(pod, *(sets[name] for name in sorted(sets)))


def test_a_copy_of_an_injected_pod_gets_the_newer_container_in_its_old_place() -> None:
    old = injected(a_pod(), a_set("a", containers=[AFTER]))
    newer = a_set("a", containers=[{**AFTER, "image": "fluent-bit:4"}])

    copy = injected(old, newer)

    assert [item.image for item in copy.spec.containers] == ["nginx:1.27", "fluent-bit:4"]
    assert records_of(copy)["a"].revision.hash != records_of(old)["a"].revision.hash


def test_what_others_added_to_a_sidecar_stays() -> None:
    sidecarset = a_set()
    pod = injected(a_pod(), sidecarset)
    log = pod.spec.containers[0]
    log.volume_mounts = [VolumeMount(name="token", mount_path="/var/run/secrets/kubernetes.io/serviceaccount")]
    log.resources = ResourceRequirements(limits={"cpu": Quantity("1")})

    assert injected(pod, sidecarset) == pod


def test_what_the_set_says_no_more_is_taken_from_a_copy_of_an_injected_pod() -> None:
    verbose = {**MOUNTED, "env": [{"name": "LEVEL", "value": "debug"}]}
    old = injected(a_pod(), a_set(containers=[verbose], volumes=[DATA]))
    old.spec.containers[0].working_dir = "/theirs"

    log = injected(old, a_set()).spec.containers[0]

    assert [item.name for item in log.env or ()] == ["IS_INJECTED"]
    assert (log.volume_mounts, log.working_dir) == (None, "/theirs")


def test_a_container_that_was_renamed_or_moved_is_not_left_behind_in_a_copy() -> None:
    init = {**LOG, "name": "prepare"}
    old = injected(a_pod(), a_set(containers=[MOUNTED, AFTER], initContainers=[init], volumes=[DATA]))

    copy = injected(old, a_set(containers=[{**LOG, "name": "logger"}, {**LOG, "name": "prepare"}]))

    assert names(copy) == (["logger", "prepare", "main"], [])
    assert not copy.spec.volumes
    assert records_of(copy)["logs"].containers == ("logger", "prepare")


def test_a_name_that_goes_from_one_set_to_another_is_in_a_copy_once() -> None:
    both = [{**LOG, "name": "a"}, LOG]
    old = injected(a_pod(), a_set("b", containers=both))

    copy = injected(old, a_set("a", containers=[LOG]), a_set("b", containers=both[:1]))

    assert names(copy)[0] == ["log", "a", "main"]


def test_a_volume_that_others_mount_stays_in_a_copy() -> None:
    old = injected(a_pod(), a_set(containers=[MOUNTED], volumes=[DATA]))
    old.spec.containers[1].volume_mounts = [VolumeMount(name="data", mount_path="/shared")]

    assert [volume.name for volume in injected(old, a_set()).spec.volumes or ()] == ["data"]


def test_without_a_record_a_marked_container_is_replaced() -> None:
    old = injected(a_pod(), a_set(containers=[{**LOG, "command": ["old"]}]))
    old.metadata.annotations.clear()

    assert injected(old, a_set()).spec.containers[0].command is None


def test_a_record_of_before_fields_were_written_is_no_broken_one() -> None:
    old = injected(a_pod(), a_set(containers=[{**LOG, "command": ["old"]}]))
    records = json.loads(old.metadata.annotations[HASH])
    del records["logs"]["fields"]
    old.metadata.annotations[HASH] = json.dumps(records)

    assert records_of(old)["logs"].containers == ("log",)
    assert injected(old, a_set()).spec.containers[0].command is None


def test_a_volume_of_the_set_follows_it_in_a_copy() -> None:
    old = injected(a_pod(), a_set(containers=[MOUNTED], volumes=[DATA]))

    copy = injected(old, a_set(containers=[MOUNTED], volumes=[{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}]))

    assert [to_tree(volume) for volume in copy.spec.volumes or ()] == [
        {"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}
    ]


def test_records_of_sets_that_select_the_pod_no_more_are_removed() -> None:
    pod = injected(a_pod(), a_set("a", containers=[{**LOG, "name": "a"}]), a_set("b"))

    assert list(records_of(injected(pod, a_set("b")))) == ["b"]


def test_a_copy_keeps_the_record_of_a_set_that_is_paused_now() -> None:
    pod = injected(a_pod(), a_set("a", containers=[{**LOG, "name": "a"}]))
    paused = a_set("a", containers=[{**LOG, "name": "a"}], injectionStrategy={"paused": True})

    copy = injected(pod, paused, a_set("b"))

    assert sorted(records_of(copy)) == ["a", "b"]
    assert names(copy)[0] == ["log", "a", "main"]


def test_a_broken_record_on_a_copy_is_replaced() -> None:
    pod = a_pod(metadata={"annotations": {HASH: "{"}})

    assert list(records_of(injected(pod, a_set()))) == ["logs"]


def test_a_pod_that_no_set_wants_stays_as_it_is() -> None:
    assert injected(a_pod()) == a_pod()
    assert injected(a_pod(), a_set(injectionStrategy={"paused": True})) == a_pod()


def test_only_volumes_that_are_mounted_are_added() -> None:
    sidecarset = a_set(containers=[MOUNTED], volumes=[DATA, {"name": "spare", "emptyDir": {}}])

    pod = injected(a_pod(), sidecarset)

    assert [volume.name for volume in pod.spec.volumes or ()] == ["data"]


def test_a_volume_of_an_init_container_or_a_device_is_added_too() -> None:
    device = {**LOG, "name": "dev", "volumeDevices": [{"name": "disk", "devicePath": "/dev/xvda"}]}
    claim = {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}

    pod = injected(a_pod(), a_set(containers=[device], initContainers=[MOUNTED], volumes=[DATA, claim]))

    assert [volume.name for volume in pod.spec.volumes or ()] == ["data", "disk"]


@pytest.mark.parametrize(
    ("present", "refusals"),
    [
        ({"name": "data", "configMap": {"name": "data", "defaultMode": 420}}, []),
        ({"name": "data", "configMap": {"name": "other", "defaultMode": 420}}, ["spec.volumes[0].name"]),
        ({"name": "data", "emptyDir": {}}, ["spec.volumes[0].name"]),
    ],
)
def test_a_volume_that_is_there_has_to_be_the_same(present: dict[str, object], refusals: list[str]) -> None:
    pod = a_pod(spec={"volumes": [present]})

    assert list(refused(pod, a_set(containers=[MOUNTED], volumes=[DATA]))) == refusals


def test_pull_secrets_are_merged_by_name() -> None:
    pod = a_pod(spec={"imagePullSecrets": [{"name": "own"}, {"name": "shared"}]})
    sidecarset = a_set(imagePullSecrets=[{"name": "shared"}, {"name": "registry"}])

    merged = injected(pod, sidecarset).spec.image_pull_secrets or []

    assert [reference.name for reference in merged] == ["own", "shared", "registry"]
