"""Whose a child is, and when an apply can be left out."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kubewright import ObjectMeta
from kubewright.api import OwnerReference, copy_of
from kubewright.controllers.applied_objects import (
    AppliedObjects,
    Claim,
    claim_on,
    is_subset,
    not_owned_message,
    with_preconditions,
)
from kubewright.k8s.core.v1 import ConfigMap


def owner(uid: str = "1") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="owner", namespace="shop", uid=uid))


def child(**metadata: object) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(**{"name": "c", "namespace": "shop", **metadata}))  # type: ignore[arg-type]  # any mix of metadata


def controlled(*, name: str = "owner", uid: str = "1", version: str = "v1") -> list[OwnerReference]:
    return [OwnerReference(api_version=version, kind="ConfigMap", name=name, uid=uid, controller=True)]


@pytest.mark.parametrize(
    ("present", "claim"),
    [
        (child(owner_references=controlled()), Claim.OWNED),
        (child(owner_references=controlled(uid="2")), Claim.STALE_OWNER),
        (child(owner_references=controlled(uid="2", version="v2")), Claim.STALE_OWNER),
        (child(owner_references=controlled(uid="2", version="example.io/v1")), Claim.FOREIGN),
        (child(owner_references=controlled(name="other", uid="2")), Claim.FOREIGN),
        (child(labels={"for": "owner"}), Claim.ADOPTABLE),
        (child(), Claim.FOREIGN),
        (child(owner_references=controlled(), deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC)), Claim.TERMINATING),
    ],
)
def test_whose_an_existing_child_is(present: ConfigMap, claim: Claim) -> None:
    assert claim_on(present, owner(), labels={"for": "owner"}) is claim


def test_nobody_is_adopted_without_labels() -> None:
    assert claim_on(child(labels={"for": "owner"}), owner()) is Claim.FOREIGN


@pytest.mark.parametrize(
    ("present", "labels", "message"),
    [
        (
            child(),
            {"for": "owner", "app": "shop"},
            "ConfigMap shop/c exists and is not managed by ConfigMap shop/owner nor by anybody else, "
            "so it is left as it is; "
            "rename one of the two, delete it or label it with for=owner, app=shop to have it adopted",
        ),
        (
            child(),
            None,
            "ConfigMap shop/c exists and is not managed by ConfigMap shop/owner nor by anybody else, "
            "so it is left as it is; "
            "rename one of the two or delete it",
        ),
        (
            child(owner_references=controlled(name="other", uid="2")),
            {"for": "owner"},
            "ConfigMap shop/c exists and is not managed by ConfigMap shop/owner but by ConfigMap other, "
            "so it is left as it is; rename one of the two or delete it",
        ),
    ],
    ids=["nobody's", "nobody's, and not to be adopted", "somebody's"],
)
def test_the_message_names_who_controls_a_foreign_object_and_what_to_do(
    present: ConfigMap, labels: dict[str, str] | None, message: str
) -> None:
    assert not_owned_message(present, "ConfigMap shop/owner", labels=labels) == message


@pytest.mark.parametrize("said", [{"uid": "7"}, {"resource_version": "12"}], ids=["uid", "version"])
@pytest.mark.parametrize("present", [None, child()], ids=["none there", "one there"])
def test_document_that_says_which_object_it_means_is_sent_as_it_is(
    present: ConfigMap | None, said: dict[str, str]
) -> None:
    document = child(**said)

    assert with_preconditions(present, document) is document


def applied_once() -> tuple[AppliedObjects, ConfigMap, ConfigMap]:
    wanted = ConfigMap.named("c", "shop", data={"k": "v"})
    result = copy_of(wanted)
    result.metadata.uid, result.metadata.resource_version = "u", "5"
    memory = AppliedObjects()
    memory.remember(wanted, result)
    return memory, wanted, result


def test_first_apply_is_never_left_out() -> None:
    wanted = ConfigMap.named("c", "shop", data={"k": "v"})

    assert not AppliedObjects().is_noop(wanted, wanted)


def test_same_document_on_the_same_version_is_left_out() -> None:
    memory, wanted, result = applied_once()

    assert memory.is_noop(wanted, result)


def test_same_document_is_left_out_when_others_changed_other_fields() -> None:
    memory, wanted, result = applied_once()
    result.metadata.resource_version = "9"
    result.metadata.labels["theirs"] = "x"

    assert memory.is_noop(wanted, result)


def test_drift_of_an_applied_field_is_repaired() -> None:
    memory, wanted, result = applied_once()
    result.metadata.resource_version = "9"
    result.data = {"k": "changed"}

    assert not memory.is_noop(wanted, result)


def test_what_the_server_spells_otherwise_stands_until_the_generation_changes() -> None:
    memory, wanted, result = applied_once()
    result.data, result.metadata.generation = {"k": "as the server spells it"}, 3
    memory.remember(wanted, result)
    result.metadata.resource_version = "9"

    assert memory.is_noop(wanted, result)
    result.metadata.generation = 4
    assert not memory.is_noop(wanted, result)


def test_metadata_is_repaired_although_the_generation_stays() -> None:
    memory, wanted, result = applied_once()
    wanted.metadata.labels["ours"] = "x"
    result.metadata.labels["ours"] = "x"
    result.metadata.generation = 3
    memory.remember(wanted, result)
    result.metadata.resource_version = "9"
    assert memory.is_noop(wanted, result)

    result.metadata.labels["ours"] = "changed"

    assert not memory.is_noop(wanted, result)


def test_another_document_a_new_incarnation_and_a_missing_child_are_applied() -> None:
    memory, wanted, result = applied_once()
    other = ConfigMap.named("c", "shop", data={"k": "w"})
    reborn = copy_of(result)
    reborn.metadata.uid = "v"

    assert not memory.is_noop(other, result)
    assert not memory.is_noop(wanted, reborn)
    assert not memory.is_noop(wanted, None)
    memory.forget(ConfigMap, wanted.key)
    assert not memory.is_noop(wanted, result)


@pytest.mark.parametrize(
    ("wanted", "present", "stands"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {}, False),
        ({"a": 1}, {"a": True}, False),
        ([1, 2], [1, 2], True),
        ([1], [1, 2], False),
        ([{"name": "x", "v": 1}], [{"name": "side"}, {"name": "x", "v": 1, "d": 0}], True),
        ([{"name": "x", "v": 1}], [{"name": "side"}, {"name": "x", "v": 2}], False),
        ([], [1], False),
        ({"a": []}, {"a": None}, False),
    ],
)
def test_what_stands_in_what(wanted: object, present: object, stands: bool) -> None:
    assert is_subset(wanted, present) is stands
