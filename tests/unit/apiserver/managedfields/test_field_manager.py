"""Who owns what after updates and applies."""

from __future__ import annotations

import copy
from typing import Any, Final

import pytest

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.managedfields.conflicts import ApplyConflict, conflict_error
from kubewright.apiserver.managedfields.field_manager import apply, only_times_differ, record_update
from kubewright.apiserver.managedfields.reset_fields import (
    ResetFields,
    reset_fields_of_custom_kind,
    reset_fields_of_kind,
)
from kubewright.apiserver.managedfields.types import FieldType, type_of_kind, type_of_schema
from kubewright.apiserver.wire.status_errors import StatusError

Tree = dict[str, Any]

THEN: Final = "2024-01-01T00:00:00Z"
NOW: Final = "2024-01-01T00:00:05Z"
GVK: Final = GroupVersionKind("", "v1", "ConfigMap")


def config_map(**data: Any) -> Tree:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": data}


def kind_of(gvk: GroupVersionKind) -> FieldType:
    kind = type_of_kind(gvk)
    assert kind is not None
    return kind


def updated(live: Tree | None, new: Tree, manager: str = "ann", time: str = NOW, **options: Any) -> Tree:
    new = copy.deepcopy(new)
    if live is not None:
        new["metadata"].setdefault("uid", live["metadata"].get("uid", "u"))
    defaults: Tree = {"api_version": "v1", "type": kind_of(GVK), "reset": reset_fields_of_kind(GVK)}
    record_update(live, new, manager=manager, time=time, **{**defaults, **options})
    return new


def applied(live: Tree | None, intent: Tree, manager: str = "ann", time: str = NOW, **options: Any) -> Tree:
    before = copy.deepcopy((live, intent))
    defaults: Tree = {"api_version": "v1", "type": kind_of(GVK), "reset": reset_fields_of_kind(GVK), "force": False}
    result = apply(live, intent, manager=manager, time=time, **{**defaults, **options})
    assert (live, intent) == before, "apply changes none of its arguments"
    return dict(result)


def owners(tree: Tree) -> dict[tuple[str, str], Any]:
    entries = tree["metadata"].get("managedFields", ())
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


def times(tree: Tree) -> dict[str, str]:
    return {entry["manager"]: entry.get("time", "") for entry in tree["metadata"].get("managedFields", ())}


def test_a_create_owns_its_fields_but_not_the_identity() -> None:
    tree = updated(None, config_map(a="1"))
    assert owners(tree) == {("ann", "Update"): {"f:data": {".": {}, "f:a": {}}}}
    assert list(tree["metadata"]["managedFields"][0]) == [
        *("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"),
    ]


def test_an_update_owns_what_it_changes_and_nothing_else() -> None:
    live = updated(None, config_map(a="1", b="2"), time=THEN)
    tree = updated(live, config_map(a="1", b="3"), "bob")
    assert owners(tree) == {
        ("ann", "Update"): {"f:data": {".": {}, "f:a": {}}},
        ("bob", "Update"): {"f:data": {"f:b": {}}},
    }
    assert times(tree) == {"ann": THEN, "bob": NOW}


def test_an_update_that_changes_nothing_leaves_times_alone() -> None:
    live = updated(None, config_map(a="1"), time=THEN)
    assert updated(live, config_map(a="1"), "bob")["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_a_removed_field_has_no_owner() -> None:
    live = updated(None, config_map(a="1", b="2"), time=THEN)
    assert owners(updated(live, config_map(a="1"), "bob")) == {("ann", "Update"): {"f:data": {".": {}, "f:a": {}}}}


@pytest.mark.parametrize("given", [[], [{}]])
def test_a_client_can_reset_managed_fields(given: list[Tree]) -> None:
    live = updated(None, config_map(a="1"), time=THEN)
    new = config_map(a="2")
    new["metadata"]["managedFields"] = given
    tree = updated(live, new, "bob")
    assert "managedFields" not in tree["metadata"]
    assert "managedFields" not in updated(tree, config_map(a="3"), "bob")["metadata"]


def test_invalid_managed_fields_of_a_client_are_ignored() -> None:
    live = updated(None, config_map(a="1"), time=THEN)
    new = config_map(a="1")
    new["metadata"]["managedFields"] = [{"manager": "x", "operation": "Dance", "apiVersion": "v1"}]
    assert owners(updated(live, new, "bob")) == owners(live)


def test_a_write_to_a_subresource_cannot_change_managed_fields() -> None:
    live = updated(None, config_map(a="1"), time=THEN)
    new = config_map(a="1")
    new["metadata"]["managedFields"] = [{}]
    assert owners(updated(live, new, "bob", subresource="status")) == owners(live)


def test_the_main_endpoint_resets_the_status() -> None:
    schema = {"type": "object", "properties": {"status": {"type": "object", "properties": {"n": {"type": "integer"}}}}}
    kind = type_of_schema(schema)
    tree = {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x"}, "status": {"n": 1}}
    options: Tree = {"api_version": "x.io/v1", "type": kind}
    main: ResetFields = reset_fields_of_custom_kind(has_status=True)
    assert owners(updated(None, tree, reset=main, **options)) == {}
    status = reset_fields_of_custom_kind("status", has_status=True)
    new = updated(None, tree, reset=status, subresource="status", **options)
    assert new["metadata"]["managedFields"][0]["subresource"] == "status"


def test_an_unnamed_manager_is_unknown() -> None:
    assert list(owners(updated(None, config_map(a="1"), ""))) == [("unknown", "Update")]


def test_an_apply_owns_leaves() -> None:
    tree = applied(None, config_map(a="1"))
    assert owners(tree) == {("ann", "Apply"): {"f:data": {"f:a": {}}}}
    assert tree["data"] == {"a": "1"}


def test_a_field_no_longer_applied_is_removed_unless_it_is_shared() -> None:
    live = applied(None, config_map(a="1", b="2", c="3"))
    live = applied(live, config_map(b="2"), "bob")
    tree = applied(live, config_map(c="3"))
    assert tree["data"] == {"b": "2", "c": "3"}
    assert owners(tree) == {("ann", "Apply"): {"f:data": {"f:c": {}}}, ("bob", "Apply"): {"f:data": {"f:b": {}}}}


def test_the_same_value_is_shared_and_has_no_time() -> None:
    live = applied(None, config_map(a="1"), time=THEN)
    tree = applied(live, config_map(a="1"), "bob")
    assert times(tree) == {"ann": THEN, "bob": ""}


def test_another_value_is_a_conflict_and_force_takes_it() -> None:
    live = updated(None, config_map(a="1"), "kubectl")
    with pytest.raises(ApplyConflict) as caught:
        applied(live, config_map(a="2"))
    status = conflict_error(caught.value).status
    assert status["message"] == 'Apply failed with 1 conflict: conflict with "kubectl" using v1: .data.a'
    assert status["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl" using v1', "field": ".data.a"}
    ]
    tree = applied(live, config_map(a="2"), force=True)
    assert owners(tree) == {("ann", "Apply"): {"f:data": {"f:a": {}}}, ("kubectl", "Update"): {"f:data": {}}}


def test_several_conflicts_are_grouped_by_manager() -> None:
    live = updated(None, config_map(a="1", b="1"), "zed")
    live = updated(live, config_map(a="1", b="2"), "bob", subresource="status")
    with pytest.raises(ApplyConflict) as caught:
        applied(live, config_map(a="9", b="9"))
    assert str(caught.value) == (
        "Apply failed with 2 conflicts: "
        'conflicts with "bob" with subresource "status" using v1:\n- .data.b\n'
        'conflicts with "zed" using v1:\n- .data.a'
    )


def test_an_untracked_object_gets_the_manager_before_first_apply() -> None:
    live = config_map(a="1")
    tree = applied(live, config_map(b="2"))
    assert owners(tree) == {
        ("ann", "Apply"): {"f:data": {"f:b": {}}},
        ("before-first-apply", "Update"): {"f:data": {".": {}, "f:a": {}}},
    }


def test_entries_are_in_order_of_operation_time_and_name() -> None:
    live = updated(None, config_map(a="1"), "zed", THEN)
    live = updated(live, config_map(a="1", b="2"), "bob")
    live = updated(live, config_map(a="1", b="2", c="3"), "ann")
    tree = applied(live, config_map(d="4"), "kim", "2025-01-01T00:00:00Z")
    assert [entry["manager"] for entry in tree["metadata"]["managedFields"]] == ["kim", "zed", "ann", "bob"]


def test_items_are_merged_by_their_keys_in_the_order_of_the_intent() -> None:
    gvk = GroupVersionKind("", "v1", "PodTemplate")
    options: Tree = {"type": kind_of(gvk), "reset": reset_fields_of_kind(gvk)}

    def template(*containers: Tree) -> Tree:
        spec = {"containers": list(containers)}
        return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "t"}, "template": {"spec": spec}}

    live = applied(None, template({"name": "a", "image": "i"}, {"name": "b", "image": "i"}), **options)
    tree = applied(live, template({"name": "c", "image": "j"}, {"name": "a", "image": "i"}), "bob", **options)
    assert [item["name"] for item in tree["template"]["spec"]["containers"]] == ["c", "a", "b"]


def test_an_intent_of_the_wrong_type_is_rejected() -> None:
    with pytest.raises(StatusError) as caught:
        applied(None, {**config_map(), "foo": 1})
    assert caught.value.code == 500
    expected = "failed to create typed patch object (n/c; /v1, Kind=ConfigMap): .foo: field not declared in schema"
    assert caught.value.status["message"] == expected


def test_owners_in_another_version_are_compared_by_conversion() -> None:
    gone = updated(None, {**config_map(a="1", b="1"), "apiVersion": "v0"}, "old", api_version="v0")
    gone["apiVersion"] = "v1"

    def convert(tree: Any, version: str) -> tuple[Any, FieldType]:
        if version != "v0":
            raise LookupError(version)
        return {**tree, "apiVersion": version}, kind_of(GVK)

    tree = updated(gone, config_map(a="2", b="1"), convert=convert)
    assert owners(tree)["old", "Update"] == {"f:data": {".": {}, "f:b": {}}}
    assert list(owners(updated(gone, config_map(a="2", b="1")))) == [("ann", "Update")]


def test_a_version_a_custom_kind_no_longer_has_fails_an_apply() -> None:
    kind = type_of_schema({"type": "object", "properties": {"spec": {"type": "string"}}})
    tree = {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x"}, "spec": "a"}
    options: Tree = {"api_version": "x.io/v1", "type": kind, "reset": {}}
    live = updated(None, tree, **options)
    live["metadata"]["managedFields"][0]["apiVersion"] = "x.io/v0"
    with pytest.raises(StatusError, match=r"request to convert CR to an invalid group/version: x\.io/v0"):
        applied(live, tree, **options)


def test_a_write_of_nothing_but_times_is_recognized() -> None:
    live = updated(None, config_map(a="1"), time=THEN)
    later = copy.deepcopy(live)
    later["metadata"]["managedFields"][0]["time"] = NOW
    assert only_times_differ(live, later)
    assert not only_times_differ(live, {**later, "data": {"a": "2"}})
    assert not only_times_differ(live, updated(live, config_map(a="1", b="2"), "bob"))
