"""Strategic merge patches, directive by directive, and the errors of kube-apiserver."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.verbs.patches.strategic_merge.patch import apply_strategic_patch
from kubewright.apiserver.wire.status_errors import StatusError

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")

LIVE: dict[str, Any] = {
    "metadata": {"name": "web", "labels": {"a": "1"}, "finalizers": ["x/a", "x/b"]},
    "spec": {
        "replicas": 1,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        "template": {
            "spec": {
                "containers": [
                    {"name": "c", "image": "i", "args": ["x"], "env": [{"name": "A", "value": "1"}]},
                    {"name": "d", "image": "j"},
                ],
                "tolerations": [{"key": "a"}, {"key": "b"}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            }
        },
    },
}


def of_pods(patch: dict[str, Any]) -> dict[str, Any]:
    """A patch of the pods of a Deployment."""
    return {"spec": {"template": {"spec": patch}}}


REFUSALS: list[tuple[Any, int, str]] = [
    ([1], 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ("x", 400, "json: cannot unmarshal string into Go value of type map[string]interface {}"),
    (
        of_pods({"containers": [{"image": "z"}]}),
        500,
        "map: map[image:z] does not contain declared merge key: name",
    ),
    ({"$patch": "merge"}, 500, "unknown patch type: merge in map: map[$patch:merge]"),
    (
        {"spec": {"$patch": "bogus", "a": [1, "b", None, 1.5, True, {"z": "q"}]}},
        500,
        "unknown patch type: bogus in map: map[$patch:bogus a:[1 b <nil> 1.5 true map[z:q]]]",
    ),
    ({"spec": {"$patch": 5}}, 500, "unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
    (
        of_pods({"containers": [{"name": "c", "$patch": "merge"}]}),
        500,
        "merging lists cannot yet be specified in the patch",
    ),
    (
        of_pods({"containers": [{"$patch": "delete"}]}),
        500,
        "map: map[$patch:delete] does not contain declared merge key: name",
    ),
    ({"metadata": {"$deleteFromPrimitiveList": ["a"]}}, 400, "invalid patch format of primitive list"),
    ({"metadata": {"$setElementOrder": ["a"]}}, 400, "invalid patch format of setElementOrder list"),
    (
        {"metadata": {"$setElementOrder/finalizers": "a"}},
        500,
        "expected a []interface {}, but received a string",
    ),
    ({"spec": {"strategy": {"$retainKeys": "type"}}}, 400, "invalid patch format of retainKeys"),
    (
        {"spec": {"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}}},
        400,
        "invalid patch format of retainKeys",
    ),
    (
        of_pods({"$setElementOrder/containers": [{"name": "c"}], "containers": [{"name": "d", "image": "q"}]}),
        500,
        "The order in patch list:\n[map[image:q name:d]]\n doesn't match $setElementOrder list:\n[map[name:c]]\n",
    ),
    (
        of_pods({"$setElementOrder/bogus": []}),
        500,
        'unable to find api field in struct PodSpec for the json field "bogus"',
    ),
    (
        of_pods({"containers": ["a"]}),
        500,
        "list element types are not identical: "
        "[[map[args:[x] env:[map[name:A value:1]] image:i name:c] map[image:j name:d]] [a]]",
    ),
    (
        {"metadata": {"finalizers": ["x/a", None]}},
        500,
        "list element types are not identical: [[x/a x/b] [x/a <nil>]]",
    ),
]
"""Patches of `LIVE` that the server refuses: code and words. tests/differential asks it about each of them."""


def applied(patch: Any) -> dict[str, Any]:
    before = copy.deepcopy((LIVE, patch))
    result: dict[str, Any] = apply_strategic_patch(LIVE, patch, gvk=DEPLOYMENT)
    assert (LIVE, patch) == before
    return result


def patched(patch: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = applied(of_pods(patch))["spec"]["template"]["spec"]
    return found


def names(items: list[dict[str, Any]]) -> list[str]:
    return [item["name"] for item in items]


def test_elements_merge_by_their_key_and_the_rest_stays() -> None:
    containers = patched({"containers": [{"name": "d", "image": "k"}]})["containers"]

    assert containers == [LIVE["spec"]["template"]["spec"]["containers"][0], {"name": "d", "image": "k"}]


def test_a_new_element_stands_in_front_of_what_only_the_server_has() -> None:
    containers = patched({"containers": [{"name": "e", "image": "k"}]})["containers"]

    assert names(containers) == ["e", "c", "d"]


def test_nested_lists_merge_too() -> None:
    containers = patched({"containers": [{"name": "c", "env": [{"name": "B", "value": "2"}]}]})["containers"]

    assert containers[0]["env"] == [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]


def test_lists_without_a_strategy_are_replaced() -> None:
    assert patched({"tolerations": [{"key": "z"}]})["tolerations"] == [{"key": "z"}]
    assert patched({"containers": [{"name": "c", "args": ["y"]}]})["containers"][0]["args"] == ["y"]


def test_null_deletes_and_null_for_nothing_is_nothing() -> None:
    metadata = applied({"metadata": {"labels": None, "annotations": {"a": None}}})["metadata"]

    assert metadata == {"name": "web", "annotations": {}, "finalizers": ["x/a", "x/b"]}


def test_an_element_can_be_deleted() -> None:
    assert names(patched({"containers": [{"name": "c", "$patch": "delete"}]})["containers"]) == ["d"]


def test_a_list_can_be_replaced() -> None:
    replaced = patched({"containers": [{"$patch": "replace"}, {"name": "z", "image": "i"}]})["containers"]

    assert replaced == [{"name": "z", "image": "i"}]


def test_an_object_can_be_replaced_or_emptied() -> None:
    replaced = applied({"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}})

    assert replaced["spec"]["strategy"] == {"type": "Recreate"}
    assert applied({"metadata": {"labels": {"$patch": "delete"}}})["metadata"]["labels"] == {}


def test_retain_keys_drops_what_it_does_not_name() -> None:
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}

    assert applied(patch)["spec"]["strategy"] == {"type": "Recreate"}


def test_retain_keys_works_inside_elements() -> None:
    volume = {"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "m"}}

    assert patched({"volumes": [volume]})["volumes"] == [{"name": "v", "configMap": {"name": "m"}}]


def test_scalars_merge_without_doubles_and_can_be_deleted() -> None:
    merged = applied({"metadata": {"finalizers": ["x/b", "x/c"]}})
    deleted = applied({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a", "x/z"]}})

    assert merged["metadata"]["finalizers"] == ["x/a", "x/b", "x/c"]
    assert deleted["metadata"]["finalizers"] == ["x/b"]


def test_the_order_can_be_set() -> None:
    patch = {"$setElementOrder/containers": [{"name": "d"}, {"name": "c"}]}
    with_new = {
        "$setElementOrder/containers": [{"name": "d"}, {"name": "n"}, {"name": "c"}],
        "containers": [{"name": "n", "image": "i"}],
    }

    assert names(patched(patch)["containers"]) == ["d", "c"]
    assert names(patched(with_new)["containers"]) == ["d", "n", "c"]


def test_parts_that_are_new_lose_their_directives() -> None:
    patch = {"initContainers": [{"name": "a", "$patch": "delete"}, {"name": "b", "image": None}]}

    assert patched(patch)["initContainers"] == [{"name": "b"}]


@pytest.mark.parametrize(("patch", "code", "message"), REFUSALS)
def test_refusals_are_those_of_the_server(patch: Any, code: int, message: str) -> None:
    with pytest.raises(StatusError) as refusal:
        apply_strategic_patch(LIVE, patch, gvk=DEPLOYMENT)

    assert (refusal.value.code, refusal.value.status["message"]) == (code, message)
    assert refusal.value.reason == ("BadRequest" if code == 400 else "")


def test_what_crashes_the_real_server_is_refused_here() -> None:
    patch = {"metadata": {"$setElementOrder/finalizers": [["a"]], "finalizers": [["a"]]}}

    with pytest.raises(StatusError) as refusal:
        apply_strategic_patch(LIVE, patch, gvk=DEPLOYMENT)

    assert refusal.value.code == 500


def test_free_form_json_merges_only_at_its_top() -> None:
    revision = GroupVersionKind("apps", "v1", "ControllerRevision")
    live = {"revision": 1, "data": {"a": {"b": 1}, "c": 1}}

    assert apply_strategic_patch(live, {"data": {"c": 2}}, gvk=revision)["data"] == {"a": {"b": 1}, "c": 2}
    with pytest.raises(StatusError, match='unable to find api field in struct RawExtension for the json field "a"'):
        apply_strategic_patch(live, {"data": {"a": {"b": 2}}}, gvk=revision)


def test_custom_resources_have_no_strategic_merge() -> None:
    with pytest.raises(StatusError, match="strategic merge patch format is not supported"):
        apply_strategic_patch({}, {}, gvk=GroupVersionKind("example.com", "v1", "Widget"))


def test_kinds_of_subresources_are_known() -> None:
    scale = GroupVersionKind("autoscaling", "v1", "Scale")

    assert apply_strategic_patch({"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}, gvk=scale) == {
        "spec": {"replicas": 2}
    }
