"""SidecarSets on their way in: what is filled in, what is refused, and with which words."""

from typing import Any

import pytest
from home import LOG, Home, causes
from kubewright import Dynamic
from kubewright.api import from_tree, to_tree
from kubewright.errors import Invalid
from kubewright.testing import RunningOperator

from sidecarset.api.v1alpha1.sidecarset import SidecarSet

WITHOUT_CLASS = Dynamic("apps.unisound.io/v1alpha1", "SidecarSet")
"""What the class would not let a test leave out."""


async def refused(home: Home, name: str = "logs", **spec: Any) -> Invalid:
    """The refusal of a set; 422, so that clients do not try again (K8)."""
    with pytest.raises(Invalid) as refusal:
        await home.client.create(home.sidecarset(name, **spec))
    assert refusal.value.code == 422
    return refusal.value


async def test_what_is_left_out_is_filled_in_on_creation_and_on_updates(home: Home) -> None:
    made = await home.client.create(home.sidecarset())
    container = made.spec.containers[0]
    assert (container.image_pull_policy, container.termination_message_policy) == ("IfNotPresent", "File")
    assert container.pod_inject_policy == "BeforeAppContainer"
    assert made.spec.update_strategy.max_unavailable == 1

    # K3: a container that is added later gets the same.
    more = {"name": "more", "image": "fluent-bit:3.1"}
    updated = await home.client.patch_by_name(
        SidecarSet, made.key, {"spec": {"containers": [to_tree(container), more]}}
    )

    assert updated.spec.containers[1].image_pull_policy == "IfNotPresent"


async def test_a_set_has_a_selector(home: Home) -> None:
    assert causes(await refused(home, selector={})) == ["spec.selector"]
    with pytest.raises(Invalid) as refusal:
        await home.client.create(from_tree(WITHOUT_CLASS, {"metadata": {"name": "x"}, "spec": {"containers": [LOG]}}))
    assert causes(refusal.value) == ["spec.selector"]


@pytest.mark.parametrize("name", ["with.dot", "a" * 64])
async def test_a_set_has_a_short_name_without_dots(home: Home, name: str) -> None:
    assert causes(await refused(home, name)) == ["metadata.name"]


async def test_all_faults_are_told_in_one_answer(home: Home) -> None:
    refusal = await refused(
        home,
        containers=[{"name": "log"}, {**LOG, "name": "twice", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}],
        initContainers=[{**LOG, "name": "twice"}],
        updateStrategy={"maxUnavailable": 0},
    )

    assert causes(refusal) == [
        "spec.containers[0].image",
        "spec.initContainers[0].name",
        "spec.containers[1].volumeMounts[0].name",
        "spec.updateStrategy.maxUnavailable",
    ]
    assert refusal.reason == "Invalid"


async def test_a_name_stands_once_in_a_list(home: Home) -> None:
    assert "spec.containers[1]" in causes(await refused(home, containers=[LOG, LOG]))


async def test_only_known_words_are_taken(home: Home) -> None:
    spec = {"selector": {"matchLabels": home.labels}, "containers": [{**LOG, "podInjectPolicy": "Somewhere"}]}
    tree = {"metadata": {"name": "x"}, "spec": {**spec, "updateStrategy": {"type": "Recreate"}}}

    with pytest.raises(Invalid) as refusal:
        await home.client.create(from_tree(WITHOUT_CLASS, tree))

    assert sorted(causes(refusal.value)) == ["spec.containers[0].podInjectPolicy", "spec.updateStrategy.type"]


async def test_a_second_set_for_the_same_pods_may_not_bring_the_same_container(home: Home) -> None:
    await home.make_set("first")

    refusal = await refused(home, "second")

    assert causes(refusal) == ["spec.containers[0].name"]
    assert home.name("first") in str(refusal)


async def test_sets_for_different_pods_may_bring_the_same_container(home: Home) -> None:
    await home.make_set("first", selector={"matchLabels": {home.namespace: "1"}})
    await home.make_set("second", selector={"matchLabels": {home.namespace: "2"}})


async def test_a_label_and_the_existence_of_another_overlap(home: Home) -> None:
    # K10: one pod can have both.
    await home.make_set("first", selector={"matchLabels": {home.namespace: "b"}})
    exists = [{"key": f"{home.namespace}-c", "operator": "Exists"}]

    await refused(home, "second", selector={"matchExpressions": exists})


async def test_an_update_that_begins_to_overlap_is_refused_and_nothing_is_changed(home: Home) -> None:
    await home.make_set("first", selector={"matchLabels": {home.namespace: "1"}})
    second = await home.make_set("second", selector={"matchLabels": {home.namespace: "2"}})

    with pytest.raises(Invalid):
        await home.change(second, selector={"matchLabels": {home.namespace: "1"}})

    assert (await home.client.get(SidecarSet, second.key)).metadata.generation == 1


async def test_containers_can_be_added_and_removed(home: Home) -> None:
    sidecarset = await home.make_set()

    changed = await home.change(sidecarset, containers=[{"name": "other", "image": "fluent-bit:3.1"}])

    assert [item.name for item in changed.spec.containers] == ["other"]


async def test_what_is_stored_can_be_labelled_though_it_would_be_refused_now(
    home: Home, operator: RunningOperator
) -> None:
    _, second = await home.make_together(operator, home.sidecarset("first"), home.sidecarset("second"))

    labelled = await home.client.patch_by_name(SidecarSet, second.key, {"metadata": {"labels": {"a": "b"}}})

    assert labelled.metadata.labels == {"a": "b"}
    with pytest.raises(Invalid):
        await home.change(second, updateStrategy={"paused": True})
