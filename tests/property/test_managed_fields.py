"""Laws of field sets, and of applies and updates whatever is written.

Covers: kubewright.apiserver.managedfields
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.patches import json_equal
from kubewright.apiserver.managedfields.comparison import compare
from kubewright.apiserver.managedfields.conflicts import ApplyConflict
from kubewright.apiserver.managedfields.field_manager import apply, record_update
from kubewright.apiserver.managedfields.field_sets import (
    FieldSet,
    difference,
    has,
    intersection,
    paths,
    recursive_difference,
    sort_elements,
    union,
)
from kubewright.apiserver.managedfields.types import FieldType, type_of_kind, type_of_schema

Tree = dict[str, Any]
Path = tuple[str, ...]

STEPS = ["f:a", "f:b", 'k:{"n":1}', 'k:{"n":20}', 'v:"x"']
all_paths = st.sets(st.lists(st.sampled_from(STEPS), min_size=1, max_size=3).map(tuple), max_size=8)


def made(members: set[Path]) -> FieldSet:
    whole: FieldSet = {}
    for path in members:
        node: FieldSet = {}
        for step in reversed(path):
            node = {step: node}
        whole = union(whole, node)
    return whole


@given(all_paths)
def test_a_set_has_the_paths_it_was_made_of(members: set[Path]) -> None:
    fields = made(members)
    assert set(paths(fields)) == members
    assert all(has(fields, path) for path in members)
    assert sort_elements(fields) == fields


@given(all_paths, all_paths)
def test_sets_add_and_subtract_like_sets(one: set[Path], two: set[Path]) -> None:
    first, second = made(one), made(two)
    assert set(paths(union(first, second))) == one | two
    assert set(paths(intersection(first, second))) == one & two
    assert set(paths(difference(first, second))) == one - two
    assert union(first, second) == made(one | two), "equal sets have equal form"
    assert difference(first, second) == made(one - two)
    assert intersection(first, second) == made(one & two)


@given(all_paths, all_paths)
def test_excluding_a_field_excludes_what_is_below_it(one: set[Path], two: set[Path]) -> None:
    left = {path for path in one if not any(path[: len(other)] == other for other in two)}
    assert recursive_difference(made(one), made(two)) == made(left)


values = st.sampled_from(["x", "y"])
texts = st.dictionaries(st.sampled_from("pqr"), values, min_size=1, max_size=3)
items = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"value": values}),
    unique_by=lambda item: item["name"],
    min_size=1,
    max_size=3,
)
# Nothing empty: what is left of a map or list that lost everything is null, on the real server as well.
specs = st.fixed_dictionaries(
    {"size": st.integers(0, 2)},
    optional={
        "granular": texts,
        "atomic": texts,
        "tags": st.lists(values, unique=True, min_size=1, max_size=2),
        "items": items,
        "plain": st.lists(values, min_size=1, max_size=2),
    },
)
TEXT: Tree = {"type": "string"}
KIND: FieldType = type_of_schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "granular": {"type": "object", "additionalProperties": TEXT},
                    "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": TEXT},
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
                    "items": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {"type": "object", "properties": {"name": TEXT, "value": TEXT}},
                    },
                    "plain": {"type": "array", "items": TEXT},
                    "size": {"type": "integer"},
                },
            }
        },
    }
)


def thing(spec: Tree) -> Tree:
    return {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x", "uid": "u"}, "spec": copy.deepcopy(spec)}


def applied(live: Tree | None, spec: Tree, manager: str, *, force: bool = True, time: str = "2024") -> Tree:
    result = apply(
        live,
        thing(spec),
        manager=manager,
        force=force,
        api_version="x.io/v1",
        time=time,
        type=KIND,
        reset={},
    )
    return dict(result)


steps = st.lists(st.tuples(st.sampled_from(["ann", "bob", "update"]), specs), min_size=1, max_size=5)


def after(history: list[tuple[str, Tree]]) -> Tree:
    live: Tree | None = None
    for manager, spec in history:
        if manager != "update":
            live = applied(live, spec, manager)
            continue
        new = thing(spec)
        record_update(live, new, manager=manager, api_version="x.io/v1", time="2024", type=KIND, reset={})
        live = new
    assert live is not None
    return live


@given(steps, specs)
def test_applying_twice_is_applying_once(history: list[tuple[str, Tree]], spec: Tree) -> None:
    once = applied(after(history), spec, "ann")
    assert applied(once, spec, "ann", force=False, time="2025") == once


@given(steps, specs)
def test_an_intent_is_in_the_object_that_comes_of_it(history: list[tuple[str, Tree]], spec: Tree) -> None:
    tree = applied(after(history), spec, "ann")
    again = applied(tree, spec, "kim", force=False)
    assert json_equal(again["spec"], tree["spec"]), "whoever wants the same does not conflict and changes nothing"


@given(steps, specs)
def test_without_force_nobody_loses_a_field(history: list[tuple[str, Tree]], spec: Tree) -> None:
    live = after(history)
    others = {
        entry["manager"]: set(paths(entry["fieldsV1"]))
        for entry in live["metadata"].get("managedFields", ())
        if entry["manager"] != "ann"
    }
    try:
        tree = applied(live, spec, "ann", force=False)
    except ApplyConflict as conflict:
        for one in conflict.conflicts:
            assert one.steps in others[one.owner.manager]
        return
    left = {entry["manager"]: set(paths(entry["fieldsV1"])) for entry in tree["metadata"].get("managedFields", ())}
    for manager, fields in others.items():
        assert {path for path in fields if len(path) > 1} <= left.get(manager, set()) | {("f:spec",)}


@given(specs, specs)
def test_what_is_set_and_what_is_gone_tell_two_objects_apart(one: Tree, two: Tree) -> None:
    fields, gone = compare(KIND, thing(one), thing(two))
    back_fields, back_gone = compare(KIND, thing(two), thing(one))
    if json_equal(one, two):
        assert (fields, gone) == ({}, {})
    added = set(paths(fields)) - set(paths(back_fields))
    assert added == set(paths(back_gone)) - set(paths(gone))


@given(st.dictionaries(st.sampled_from(["a", "b<c>"]), st.text(max_size=5), max_size=2))
def test_a_create_owns_every_leaf(data: dict[str, str]) -> None:
    kind = type_of_kind(GroupVersionKind("", "v1", "ConfigMap"))
    assert kind is not None
    tree: Tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data}
    record_update(None, tree, manager="m", api_version="v1", time="2024", type=kind, reset={})
    owned = set(paths(tree["metadata"]["managedFields"][0]["fieldsV1"]))
    assert owned == {("f:data",), *(("f:data", f"f:{name}") for name in data)}
