"""Changing images of a running pod, and knowing when the kubelet is done with it."""

import json
from typing import Any

import pytest
from kubewright.api import from_tree, to_tree
from kubewright.k8s.core.v1 import Pod
from made import LOG, a_pod, a_set, injected, revision_of, running

from sidecarset.inplace import STATE, is_changing, update_patch
from sidecarset.records import HASH, records_of

OLD, NEW = a_set(), a_set(containers=[{**LOG, "image": "fluent-bit:3.2"}])
OLD_ID, NEW_ID = "docker.io/library/fluent-bit:3.1@sha256:1", "docker.io/library/fluent-bit@sha256:2"


def patched(pod: Pod, patch: dict[str, Any]) -> Pod:
    """As the API server would leave the pod."""
    tree = to_tree(pod)
    tree["metadata"]["annotations"].update(patch["metadata"]["annotations"])
    images = {item["name"]: item["image"] for item in patch["spec"]["containers"]}
    for container in tree["spec"]["containers"]:
        container["image"] = images.get(container["name"], container["image"])
    return from_tree(Pod, tree)


@pytest.fixture
def pod() -> Pod:
    return running(injected(a_pod(), OLD))


def test_one_patch_has_images_record_and_what_ran_before(pod: Pod) -> None:
    patch = update_patch(pod, NEW, revision_of(NEW.spec))

    annotations = patch["metadata"].pop("annotations")
    assert patch == {
        "metadata": {"uid": "uid-web", "resourceVersion": "7"},
        "spec": {"containers": [{"name": "log", "image": "fluent-bit:3.2"}]},
    }
    assert json.loads(annotations[STATE]) == {"logs": {"log": OLD_ID}}
    record = records_of(a_pod(metadata={"annotations": {HASH: annotations[HASH]}}))["logs"]
    assert record.revision == revision_of(NEW.spec)


def test_records_and_changes_of_other_sets_are_kept() -> None:
    other = a_set("other", containers=[{"name": "proxy", "image": "envoy:1"}])
    both = running(injected(a_pod(), OLD, other))
    both.metadata.annotations[STATE] = json.dumps({"other": {"proxy": "x"}})

    patch = update_patch(both, NEW, revision_of(NEW.spec))

    assert json.loads(patch["metadata"]["annotations"][STATE]) == {"other": {"proxy": "x"}, "logs": {"log": OLD_ID}}
    assert sorted(records_of(patched(both, patch))) == ["logs", "other"]


def test_a_change_is_over_when_another_image_runs(pod: Pod) -> None:
    changed = patched(pod, update_patch(pod, NEW, revision_of(NEW.spec)))

    assert not is_changing(pod, "logs")
    assert is_changing(changed, "logs")
    assert not is_changing(running(changed, log=NEW_ID), "logs")


def test_an_image_that_cannot_be_pulled_is_a_change_that_does_not_end(pod: Pod) -> None:
    changed = patched(pod, update_patch(pod, NEW, revision_of(NEW.spec)))
    status = (changed.status.container_statuses or [])[0]
    status.state = None  # waits for its image: the rest is still about the container that ran

    assert is_changing(changed, "logs")


def test_another_tag_of_the_same_image_is_known_by_its_name(pod: Pod) -> None:
    changed = patched(pod, update_patch(pod, NEW, revision_of(NEW.spec)))

    assert not is_changing(running(changed, log=OLD_ID), "logs")


@pytest.mark.parametrize(
    ("reported", "wanted"),
    [
        ("docker.io/library/nginx:latest", "nginx"),
        ("docker.io/team/nginx:1", "team/nginx:1"),
        ("registry:5000/nginx:latest", "registry:5000/nginx"),
        ("localhost/nginx:1", "localhost/nginx:1"),
        ("nginx:1", "nginx:1"),
    ],
)
def test_names_are_compared_as_runtimes_report_them(reported: str, wanted: str) -> None:
    pod = running(a_pod(spec={"containers": [{"name": "log", "image": wanted}]}), log="same")
    pod.metadata.annotations[STATE] = json.dumps({"logs": {"log": "same"}})
    (pod.status.container_statuses or [])[0].image = reported

    assert not is_changing(pod, "logs")


def test_an_image_with_a_digest_has_run_when_that_digest_is_reported() -> None:
    digest = "sha256:" + "2" * 64
    pod = running(a_pod(spec={"containers": [{"name": "log", "image": f"nginx@{digest}"}]}), log="nginx@sha256:1")
    pod.metadata.annotations[STATE] = json.dumps({"logs": {"log": "nginx@sha256:0"}})

    assert is_changing(pod, "logs")
    assert not is_changing(running(pod, log=f"docker.io/library/nginx@{digest}"), "logs")


def test_a_container_that_never_ran_has_to_start_first() -> None:
    pod = injected(a_pod(), OLD)
    changed = patched(pod, update_patch(pod, NEW, revision_of(NEW.spec)))

    assert is_changing(changed, "logs")
    assert not is_changing(running(changed, log=NEW_ID), "logs")


@pytest.mark.parametrize("text", ["{", "[]", "1", '{"logs": 3}', '{"logs": {"gone": "x"}}', "[" * 100_000])
def test_what_somebody_else_wrote_there_holds_nothing_up(pod: Pod, text: str) -> None:
    pod.metadata.annotations[STATE] = text

    assert not is_changing(pod, "logs")
