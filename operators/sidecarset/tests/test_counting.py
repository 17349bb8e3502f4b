"""The numbers in the status: right after one look, and right again after anything that changes them."""

import json

from home import LOG, Home, names
from kubewright.k8s.core.v1 import Namespace, Pod
from kubewright.testing import RunningOperator, until

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.records import HASH


async def test_pods_that_are_older_than_the_set_are_counted_by_themselves(home: Home) -> None:
    # K6: they are in scope, and will never be injected.
    await home.ready_pods(2)

    sidecarset = await home.make_set()
    seen = await home.until_set(sidecarset, lambda now: now.status.uninjected_pods == 2)

    assert (seen.status.matched_pods, seen.status.updated_pods, seen.status.ready_pods) == (0, 0, 0)


async def test_a_pod_that_was_created_before_the_set_was_seen_is_never_called_up_to_date(
    home: Home, operator: RunningOperator
) -> None:
    operator.faults.hold_streams()
    sidecarset = await home.client.create(home.sidecarset())
    pod = await home.make_pod()
    assert names(pod.spec.containers) == ["main"]

    operator.faults.release_streams()
    seen = await home.until_set(sidecarset, lambda now: now.status.uninjected_pods == 1)

    assert (seen.status.matched_pods, seen.status.updated_pods) == (0, 0)


async def test_the_first_status_after_a_change_is_right(home: Home) -> None:
    # K1: no second reconcile is needed.
    sidecarset = await home.make_set(updateStrategy={"paused": True})
    await home.ready_pods(2)
    await home.counted(sidecarset, 2, 2, 2)

    first = await home.change(sidecarset, containers=[{**LOG, "image": "fluent-bit:3.2"}])

    assert (first.status.matched_pods, first.status.updated_pods) == (2, 0)
    assert first.status.observed_generation == first.metadata.generation == 2


async def test_a_pod_that_loses_the_label_leaves_the_count_and_keeps_its_containers(home: Home) -> None:
    sidecarset = await home.make_set()
    first, _ = await home.ready_pods(2)
    await home.counted(sidecarset, 2, 2, 2)

    await home.client.patch_by_name(Pod, first.key, {"metadata": {"labels": {"app": "other"}}})

    await home.counted(sidecarset, 1, 1, 1)
    assert names((await home.client.get(Pod, first.key)).spec.containers) == ["log", "main"]


async def test_a_pod_that_changes_label_and_readiness_at_once_is_not_missed(home: Home) -> None:
    # K4: it stays matched, by another label that the selector allows.
    values = [f"{home.namespace}-a", f"{home.namespace}-b"]
    sidecarset = await home.make_set(
        selector={"matchExpressions": [{"key": "tier", "operator": "In", "values": values}]}
    )
    pod = await home.make_pod(labels={"tier": values[0]})
    await home.counted(sidecarset, 1, 1, 1)

    unready = {"labels": {"tier": values[1]}, "annotations": {"simulation.kubewright.io/ready": "false"}}
    await home.client.patch_by_name(Pod, pod.key, {"metadata": unready})

    await home.counted(sidecarset, 1, 1, 0)


async def test_another_selector_is_another_count_and_the_same_revision(home: Home) -> None:
    # K2: no pod is out of date for it.
    sidecarset = await home.make_set()
    await home.ready_pods(2)
    await home.make_pod("other", labels={**home.labels, "more": "labels"})
    before = await home.counted(sidecarset, 3, 3, 3)

    after = await home.change(before, selector={"matchLabels": {**home.labels, "more": "labels"}})

    assert after.status.latest_revision == before.status.latest_revision
    await home.counted(after, 1, 1, 1)


async def test_a_record_that_somebody_broke_is_no_record(home: Home) -> None:
    sidecarset = await home.make_set()
    pod, _ = await home.ready_pods(2)
    await home.counted(sidecarset, 2, 2, 2)

    await home.client.patch_by_name(Pod, pod.key, {"metadata": {"annotations": {HASH: "{nonsense"}}})

    broken = await home.counted(sidecarset, 1, 1, 1)
    assert broken.status.uninjected_pods == 1
    event = await home.event_on(home.namespace, pod.metadata.name, "BrokenRecord")
    assert event.type == "Warning"


async def test_a_record_that_somebody_forged_is_out_of_date_at_most(home: Home) -> None:
    sidecarset = await home.make_set(updateStrategy={"paused": True})
    (pod,) = await home.ready_pods(1)
    await home.counted(sidecarset, 1, 1, 1)
    forged = json.loads(pod.metadata.annotations[HASH])
    forged[sidecarset.metadata.name]["hash"] = "0"

    await home.client.patch_by_name(Pod, pod.key, {"metadata": {"annotations": {HASH: json.dumps(forged)}}})

    await home.counted(sidecarset, 1, 0, 1)


async def test_labels_of_namespaces_change_who_is_counted(home: Home) -> None:
    sidecarset = await home.make_set(namespaceSelector={"matchLabels": {"team": home.namespace}})
    await home.ready_pods(1)
    assert (await home.counted(sidecarset, 0, 0, 0)).status.uninjected_pods == 0

    labels = {"metadata": {"labels": {"team": home.namespace}}}
    await home.client.patch_by_name(Namespace, home.namespace, labels)
    await home.until_set(sidecarset, lambda now: now.status.uninjected_pods == 1)

    closed = {"metadata": {"labels": {"apps.unisound.io/injection": "disabled"}}}
    await home.client.patch_by_name(Namespace, home.namespace, closed)
    await home.until_set(sidecarset, lambda now: now.status.uninjected_pods == 0)


async def test_pods_that_have_ended_do_not_count(home: Home) -> None:
    sidecarset = await home.make_set()
    ending = {"simulation.kubewright.io/run-for": "0"}
    await home.make_pod("done", restartPolicy="Never", annotations=ending)
    await home.make_pod("at-work")

    await until(home.client, Pod, "done", lambda pod: pod.status.phase == "Succeeded", namespace=home.namespace)

    await home.counted(sidecarset, 1, 1, 1)


async def test_kubectl_shows_the_counts(home: Home) -> None:
    sidecarset: SidecarSet = await home.make_set()
    await home.ready_pods(2)
    await home.counted(sidecarset, 2, 2, 2)

    headers, cells = await home.table(sidecarset)

    assert headers == ["Name", "MATCHED", "UPDATED", "READY", "AGE"]
    assert cells[:4] == [sidecarset.metadata.name, 2, 2, 2]


async def test_the_numbers_are_metrics_too(home: Home, operator: RunningOperator) -> None:
    sidecarset = await home.make_set()
    await home.ready_pods(2)
    await home.counted(sidecarset, 2, 2, 2)
    # The numbers are taken at the end of a reconcile, a moment after its status is seen: the next one is over for sure.
    await home.counted(await home.change(sidecarset, updateStrategy={"paused": True}), 2, 2, 2)

    shown = operator.manager.metrics.exposition().decode()

    assert f'sidecarset_matched_pods{{name="{sidecarset.metadata.name}",namespace=""}} 2.0' in shown
