"""What diffs and overlays of JSON trees promise."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubewright.api.diff import merge_patch, overlay
from kubewright.api.patches import apply_merge_patch, json_equal


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 1.0}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": {"b": [1]}}, {"a": {"b": [True]}}, {"a": {"b": [True]}}),
        ({"a": 1}, {}, {"a": None}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": {"b": 1}}, {}, {"a": None}),
        ({"a": 1}, {"a": {}}, {"a": {}}),
        ({}, {"a": {}}, {"a": {}}),
        ({"a": {}}, {"a": {}}, {}),
        ({"a": {}}, {"a": []}, {"a": []}),
        ({"a": []}, {"a": {}}, {"a": {}}),
        ({"a": [1, 2]}, {"a": [1, 3]}, {"a": [1, 3]}),
        ({"a": None}, {}, {"a": None}),
        ({"a": {"b": {"c": {"d": 1}}}}, {"a": {"b": {"c": {"d": 2}}}}, {"a": {"b": {"c": {"d": 2}}}}),
    ],
)
def test_merge_patch_is_the_smallest(before: Any, after: Any, patch: Any) -> None:
    made = merge_patch(before, after)

    assert json_equal(patch, made)
    assert json_equal(after, apply_merge_patch(before, made))


def test_a_null_that_removes_nothing_is_not_sent() -> None:
    assert merge_patch({"a": {}}, {"a": {"b": None}, "c": None}) == {}


def test_a_null_over_a_value_removes_it() -> None:
    assert apply_merge_patch({"a": 1}, merge_patch({"a": 1}, {"a": None})) == {}


def test_the_order_of_names_is_no_difference() -> None:
    assert merge_patch({"a": {"x": 1, "y": True}}, {"a": {"y": True, "x": 1}}) == {}


def test_the_difference_to_something_that_is_no_object_is_all_of_it() -> None:
    assert merge_patch([1], {"a": 1}) == {"a": 1}
    assert merge_patch({"a": 1}, [1]) == [1]


RAW: dict[str, Any] = {
    "spec": {
        "replicas": 1,
        "newField": {"x": 1},
        "containers": [
            {"name": "web", "image": "web:1", "newProbe": {"y": 2}},
            {"name": "log", "image": "log:1", "newProbe": {"y": 3}},
        ],
    },
    "unknown": True,
}
KNOWN: dict[str, Any] = {
    "spec": {
        "replicas": 1,
        "paused": False,
        "containers": [{"name": "web", "image": "web:1"}, {"name": "log", "image": "log:1"}],
    }
}


def _changed() -> tuple[dict[str, Any], dict[str, Any]]:
    """What the class says, to be changed, and what is expected of the whole."""
    return copy.deepcopy(KNOWN), copy.deepcopy(RAW)


def test_without_a_change_the_raw_object_itself_is_the_result() -> None:
    assert overlay(RAW, KNOWN, copy.deepcopy(KNOWN)) is RAW


def test_a_changed_field_is_changed_and_nothing_else() -> None:
    after, expected = _changed()
    after["spec"]["replicas"] = expected["spec"]["replicas"] = 2
    raw = copy.deepcopy(RAW)

    assert expected == overlay(raw, KNOWN, after)
    assert raw == RAW


def test_an_added_and_a_removed_field() -> None:
    after, expected = _changed()
    after["spec"]["selector"] = expected["spec"]["selector"] = {"a": "b"}
    del after["spec"]["replicas"]
    del expected["spec"]["replicas"]

    assert expected == overlay(RAW, KNOWN, after)


def test_a_default_of_the_class_is_not_written_unless_changed() -> None:
    after, expected = _changed()
    after["spec"]["paused"] = expected["spec"]["paused"] = True

    assert expected == overlay(RAW, KNOWN, after)


def test_only_the_change_inside_a_defaulted_object_is_written() -> None:
    before = {"strategy": {"type": "Rolling", "surge": 1}}
    after = {"strategy": {"type": "Rolling", "surge": 2}}

    assert overlay({}, before, after) == {"strategy": {"surge": 2}}
    assert overlay({"strategy": None}, before, after) == {"strategy": {"surge": 2}}


def test_an_object_the_class_saw_nothing_of_keeps_its_unknown_fields() -> None:
    assert overlay({"status": {"x": 1}}, {}, {"status": {"ready": 1}}) == {"status": {"x": 1, "ready": 1}}


def test_unknown_fields_of_list_items_survive_a_change() -> None:
    after, expected = _changed()
    after["spec"]["containers"][1]["image"] = expected["spec"]["containers"][1]["image"] = "log:2"

    assert expected == overlay(RAW, KNOWN, after)


def test_unknown_fields_of_list_items_survive_a_removal() -> None:
    after, expected = _changed()
    del after["spec"]["containers"][0]
    del expected["spec"]["containers"][0]

    assert expected == overlay(RAW, KNOWN, after)


def test_unknown_fields_of_list_items_survive_an_insertion_and_a_new_order() -> None:
    after, expected = _changed()
    new = {"name": "new", "image": "new:1"}
    after["spec"]["containers"] = [new, *reversed(after["spec"]["containers"])]
    expected["spec"]["containers"] = [new, *reversed(expected["spec"]["containers"])]

    assert expected == overlay(RAW, KNOWN, after)


def test_another_merge_key_means_a_new_item() -> None:
    raw = [{"name": "a", "x": 1, "unknown": 2}]

    assert overlay(raw, [{"name": "a", "x": 1}], [{"name": "b", "x": 1}]) == [{"name": "b", "x": 1}]


def test_a_name_that_is_not_unique_gives_way_to_the_next_key() -> None:
    raw = [
        {"name": "data", "mountPath": "/a", "unknown": 1},
        {"name": "data", "mountPath": "/b", "unknown": 2},
    ]
    before = [{"name": "data", "mountPath": "/a"}, {"name": "data", "mountPath": "/b"}]
    after = [{"name": "data", "mountPath": "/b", "readOnly": True}]

    assert overlay(raw, before, after) == [{"name": "data", "mountPath": "/b", "unknown": 2, "readOnly": True}]


def test_numbers_are_merge_keys_too() -> None:
    raw = [{"containerPort": 80, "unknown": 1}, {"containerPort": 81, "unknown": 2}]
    before = [{"containerPort": 80}, {"containerPort": 81}]

    assert overlay(raw, before, [{"containerPort": 81}]) == [{"containerPort": 81, "unknown": 2}]


def test_merge_keys_can_be_given() -> None:
    raw = [{"id": "a", "unknown": 1}, {"id": "b", "unknown": 2}]

    result = overlay(raw, [{"id": "a"}, {"id": "b"}], [{"id": "b", "x": 1}], keys=("id",))

    assert result == [{"id": "b", "x": 1, "unknown": 2}]


def test_items_without_a_key_are_found_by_being_equal() -> None:
    raw = [{"a": 1, "unknown": 1}, {"a": 2, "unknown": 2}, {"a": 3, "unknown": 3}]
    before = [{"a": 1}, {"a": 2}, {"a": 3}]

    assert overlay(raw, before, [{"a": 3}, {"a": 1}]) == [{"a": 3, "unknown": 3}, {"a": 1, "unknown": 1}]


def test_items_without_a_key_are_found_by_their_place_when_the_length_stays() -> None:
    raw = [{"a": 1, "unknown": 1}, {"a": 2, "unknown": 2}]

    result = overlay(raw, [{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 9}])

    assert result == [{"a": 1, "unknown": 1}, {"a": 9, "unknown": 2}]


def test_an_item_is_used_once() -> None:
    raw = [{"a": 1, "unknown": 1}]

    assert overlay(raw, [{"a": 1}], [{"a": 1}, {"a": 1}]) == [{"a": 1, "unknown": 1}, {"a": 1}]


def test_scalars_in_lists() -> None:
    assert overlay(["a", "b"], ["a", "b"], ["b", "c", "a"]) == ["b", "c", "a"]


def test_lists_of_lists() -> None:
    raw = [[{"a": 1, "unknown": 1}], [{"a": 2, "unknown": 2}]]

    result = overlay(raw, [[{"a": 1}], [{"a": 2}]], [[{"a": 1}], [{"a": 3}]])

    assert result == [[{"a": 1, "unknown": 1}], [{"a": 3, "unknown": 2}]]


def test_a_list_the_class_sees_differently_is_replaced_whole() -> None:
    assert overlay([1, 1, 2], [1, 2], [1, 2, 3]) == [1, 2, 3]


def test_a_change_of_type_replaces() -> None:
    assert overlay({"a": {"x": 1}}, {"a": {"x": 1}}, {"a": [1]}) == {"a": [1]}
    assert overlay({"a": 1}, {"a": 1}, {"a": True})["a"] is True
    assert overlay({"a": "text"}, {"a": {"x": 1}}, {"a": {"x": 2}}) == {"a": {"x": 2}}
