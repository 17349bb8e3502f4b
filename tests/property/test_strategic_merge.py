"""Laws of strategic merge patches, on pods nobody thought of.

Covers: kubewright.apiserver.verbs.patches
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.verbs.patches.strategic_merge.patch import apply_strategic_patch

POD = GroupVersionKind("", "v1", "Pod")

# Few names, so that patch and object often speak of the same element.
WORDS = st.sampled_from(["a", "b", "c", "d"])
LABELS = st.dictionaries(WORDS, WORDS, max_size=3)


def keyed(key: str, values: st.SearchStrategy[Any], rest: dict[str, Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    element = st.fixed_dictionaries({key: values}, optional=rest)
    return st.lists(element, max_size=4, unique_by=lambda item: item[key])


VARIABLES = keyed("name", WORDS, {"value": WORDS})
PORTS = keyed("containerPort", st.integers(80, 83), {"protocol": st.sampled_from(["TCP", "UDP"])})
CONTAINERS = keyed("name", WORDS, {"image": WORDS, "env": VARIABLES, "ports": PORTS, "args": st.lists(WORDS)})
PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({}, optional={"labels": LABELS, "finalizers": st.lists(WORDS, unique=True)}),
        "spec": st.fixed_dictionaries({"containers": CONTAINERS}, optional={"nodeSelector": LABELS}),
    }
)


def apply(live: Any, patch: Any) -> dict[str, Any]:
    result: dict[str, Any] = apply_strategic_patch(live, patch, gvk=POD)
    return result


@given(PODS)
def test_an_object_patched_with_itself_stays_as_it_is(live: dict[str, Any]) -> None:
    assert apply(live, live) == live


@given(PODS)
def test_an_empty_patch_changes_nothing(live: dict[str, Any]) -> None:
    assert apply(live, {}) == live


@given(PODS, PODS)
def test_a_patch_changes_neither_argument(live: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copy.deepcopy((live, patch))

    apply(live, patch)

    assert (live, patch) == before


@given(PODS, PODS)
def test_a_patch_applied_again_changes_nothing_more(live: dict[str, Any], patch: dict[str, Any]) -> None:
    once = apply(live, patch)

    assert apply(once, patch) == once


@given(PODS, PODS)
def test_elements_of_both_sides_are_there_once(live: dict[str, Any], patch: dict[str, Any]) -> None:
    merged = apply(live, patch)

    found = [container["name"] for container in merged["spec"]["containers"]]
    expected = {container["name"] for side in (live, patch) for container in side["spec"]["containers"]}
    assert sorted(found) == sorted(expected)


@given(PODS, st.permutations(["a", "b", "c", "d"]))
def test_the_order_asked_for_is_the_order_there_is(live: dict[str, Any], order: list[str]) -> None:
    patch = {"spec": {"$setElementOrder/containers": [{"name": name} for name in order]}}
    if not live["spec"]["containers"]:
        live["spec"]["containers"] = [{"name": "a"}]

    found = [container["name"] for container in apply(live, patch)["spec"]["containers"]]

    assert found == [name for name in order if name in found]


@given(PODS, st.sets(WORDS))
def test_what_is_deleted_is_gone_and_the_rest_stays(live: dict[str, Any], gone: set[str]) -> None:
    patch = {"spec": {"containers": [{"name": name, "$patch": "delete"} for name in sorted(gone)]}}

    containers = apply(live, patch)["spec"]["containers"]

    assert containers == [container for container in live["spec"]["containers"] if container["name"] not in gone]


@given(PODS, PODS)
def test_a_replaced_object_is_the_patch(live: dict[str, Any], patch: dict[str, Any]) -> None:
    replaced = apply(live, {"spec": {"$patch": "replace", **patch["spec"]}})

    assert replaced == {**live, "spec": patch["spec"]}
