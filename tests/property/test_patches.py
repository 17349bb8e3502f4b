"""Laws of patches, diffs and overlays, on JSON trees nobody thought of.

Covers: kubewright.api
"""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api.diff import merge_patch, overlay
from kubewright.api.patches import apply_json_patch, apply_merge_patch, json_equal, make_json_patch

# Few names and values, so that two trees often agree and the interesting paths are taken.
NAMES = st.sampled_from(["a", "b", "name", "x/y", "~", ""])
SCALARS = st.sampled_from([0, 1, 2, 1.0, True, False, "", "a", "b"])
NULLABLE = SCALARS | st.none()


def trees(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
        max_leaves=12,
    )


def objects(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(NAMES, trees(scalars), max_size=4)


def strictly(tree: Any) -> Any:
    """A form in which Python's own == tells true from 1, written without the code under test."""
    if isinstance(tree, dict):
        return {name: strictly(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [strictly(item) for item in tree]
    return (isinstance(tree, bool), tree)


@given(one=trees(NULLABLE), two=trees(NULLABLE))
def test_json_equality_is_strict_equality(one: Any, two: Any) -> None:
    assert json_equal(one, two) == (strictly(one) == strictly(two))
    assert json_equal(one, copy.deepcopy(one))


@given(before=objects(SCALARS), after=objects(SCALARS))
def test_a_merge_patch_leads_from_one_object_to_the_other(before: Any, after: Any) -> None:
    kept = copy.deepcopy((before, after))

    patch = merge_patch(before, after)

    assert strictly(apply_merge_patch(before, patch)) == strictly(after)
    assert (patch == {}) == json_equal(before, after)
    assert strictly(kept) == strictly((before, after))


@given(before=objects(NULLABLE), after=objects(SCALARS))
def test_a_merge_patch_removes_nulls_as_well(before: Any, after: Any) -> None:
    assert strictly(apply_merge_patch(before, merge_patch(before, after))) == strictly(after)


@given(target=trees(NULLABLE), patch=objects(NULLABLE))
def test_a_merge_patch_applied_twice_is_applied_once(target: Any, patch: Any) -> None:
    once = apply_merge_patch(target, patch)

    assert strictly(apply_merge_patch(once, patch)) == strictly(once)


@given(before=trees(NULLABLE), after=trees(NULLABLE))
def test_a_json_patch_leads_from_one_tree_to_the_other(before: Any, after: Any) -> None:
    kept = copy.deepcopy((before, after))

    operations = make_json_patch(before, after)

    assert strictly(apply_json_patch(before, operations)) == strictly(after)
    assert (operations == []) == json_equal(before, after)
    assert strictly(kept) == strictly((before, after))


@given(before=objects(NULLABLE), after=objects(NULLABLE))
def test_our_json_patches_mean_the_same_to_the_jsonpatch_library(before: Any, after: Any) -> None:
    operations = make_json_patch(before, after)

    assert strictly(jsonpatch.apply_patch(before, operations)) == strictly(after)


@given(before=objects(NULLABLE), after=objects(NULLABLE))
def test_json_patches_of_the_jsonpatch_library_mean_the_same_to_us(before: Any, after: Any) -> None:
    operations = jsonpatch.make_patch(before, after).patch

    ours = apply_json_patch(before, operations)

    assert strictly(ours) == strictly(jsonpatch.apply_patch(before, operations))


@st.composite
def insertions(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    items = draw(st.lists(trees(NULLABLE), max_size=6))
    at = draw(st.integers(0, len(items)))
    return items, [*items[:at], draw(trees(NULLABLE)), *items[at:]]


@given(lists=insertions())
def test_one_item_more_or_less_is_one_operation(lists: tuple[list[Any], list[Any]]) -> None:
    shorter, longer = lists

    assert [step["op"] for step in make_json_patch(shorter, longer)] == ["add"]
    assert [step["op"] for step in make_json_patch(longer, shorter)] == ["remove"]


KNOWN = ("a", "b", "name")


def understood(raw: Any) -> Any:
    """What a class that knows three names sees of a tree."""
    if isinstance(raw, dict):
        return {name: understood(value) for name, value in raw.items() if name in KNOWN}
    if isinstance(raw, list):
        return [understood(item) for item in raw]
    return raw


@given(raw=objects(NULLABLE), before=objects(NULLABLE))
def test_overlaying_no_change_gives_the_raw_tree(raw: Any, before: Any) -> None:
    assert overlay(raw, before, copy.deepcopy(before)) is raw


@given(raw=objects(SCALARS), after=objects(SCALARS))
def test_a_class_that_knows_everything_gets_what_it_says(raw: Any, after: Any) -> None:
    kept = copy.deepcopy((raw, after))

    assert strictly(overlay(raw, copy.deepcopy(raw), after)) == strictly(after)
    assert strictly(kept) == strictly((raw, after))


@given(raw=objects(SCALARS), change=objects(SCALARS))
def test_what_the_class_sees_of_the_result_is_what_it_said(raw: Any, change: Any) -> None:
    after = understood(change)

    assert strictly(understood(overlay(raw, understood(raw), after))) == strictly(after)


@given(raw=objects(SCALARS), change=objects(SCALARS))
def test_unknown_fields_survive_any_change(raw: Any, change: Any) -> None:
    """On the path of objects alone, where nothing is removed, every unknown field is still there."""
    before = understood(raw)
    after = {**before, **understood(change)}

    _assert_unknown_kept(raw, after, overlay(raw, before, after))


def _assert_unknown_kept(raw: dict[str, Any], after: dict[str, Any], result: dict[str, Any]) -> None:
    for name, value in raw.items():
        if name not in KNOWN:
            assert strictly(result[name]) == strictly(value)
        elif isinstance(value, dict) and isinstance(after.get(name), dict):
            _assert_unknown_kept(value, after[name], result[name])


@st.composite
def named_items(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6))
    return [{"name": name, "a": draw(SCALARS), "unknown": f"only in {name}"} for name in names]


@given(raw=named_items(), change=named_items())
def test_unknown_fields_of_named_items_follow_the_name(raw: list[Any], change: list[Any]) -> None:
    owned = {item["name"] for item in raw}

    result = overlay(raw, understood(raw), understood(change))

    assert [(item["name"], item["a"]) for item in result] == [(item["name"], item["a"]) for item in change]
    for item in result:
        assert item.get("unknown") == (f"only in {item['name']}" if item["name"] in owned else None)
