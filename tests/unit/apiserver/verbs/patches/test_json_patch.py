"""JSON patches as kube-apiserver applies them, with its messages."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.apiserver.verbs.patches.json_patch import JsonPatchError, apply_json_patch

TARGET: dict[str, Any] = {"data": {"x": "y"}, "list": [1, 2], "a/b": {"~": 1}}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/data/z", "value": 1}, {"data": {"x": "y", "z": 1}}),
        ({"op": "add", "path": "/data/x"}, {"data": {"x": None}}),
        ({"op": "replace", "path": "/data/none", "value": 1}, {"data": {"x": "y", "none": 1}}),
        ({"op": "remove", "path": "/data/x"}, {"data": {}}),
        ({"op": "add", "path": "/list/-", "value": 3}, {"list": [1, 2, 3]}),
        ({"op": "add", "path": "/list/0", "value": 0}, {"list": [0, 1, 2]}),
        ({"op": "add", "path": "/list/-1", "value": 3}, {"list": [1, 2, 3]}),
        ({"op": "remove", "path": "/list/-1"}, {"list": [1]}),
        ({"op": "replace", "path": "/list/1", "value": 5}, {"list": [1, 5]}),
        ({"op": "move", "from": "/data/x", "path": "/moved"}, {"data": {}, "moved": "y"}),
        ({"op": "copy", "from": "/list", "path": "/data"}, {"data": [1, 2]}),
        ({"op": "test", "path": "/a~1b/~0", "value": 1}, {}),
        ({"op": "test", "path": "/none"}, {}),
    ],
)
def test_an_operation_changes_what_it_names(operation: dict[str, Any], expected: dict[str, Any]) -> None:
    assert apply_json_patch(TARGET, [operation]) == {**TARGET, **expected}


def test_the_target_stays_as_it_is() -> None:
    target = {"a": {"b": [1]}}

    changed = apply_json_patch(target, [{"op": "add", "path": "/a/b/-", "value": 2}])

    assert target == {"a": {"b": [1]}}
    assert changed == {"a": {"b": [1, 2]}}


def test_an_operation_on_the_root_replaces_everything() -> None:
    assert apply_json_patch(TARGET, [{"op": "replace", "path": "", "value": {"new": 1}}]) == {"new": 1}


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ({"op": "frob", "path": "/x"}, "Unexpected kind: frob"),
        ({"path": "/x"}, "Unexpected kind: unknown"),
        ({"op": "add", "value": 1}, "add operation failed to decode path: missing value"),
        (
            {"op": "add", "path": "/a/b/c", "value": 1},
            'add operation does not apply: doc is missing path: "/a/b/c": missing value',
        ),
        (
            {"op": "remove", "path": "/data/none"},
            "error in remove for path: '/data/none': Unable to remove nonexistent key: none: missing value",
        ),
        (
            {"op": "add", "path": "/list/9", "value": 1},
            "error in add for path: '/list/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            {"op": "add", "path": "/list/x", "value": 1},
            "error in add for path: '/list/x': value was not a proper array index: 'x':"
            ' strconv.Atoi: parsing "x": invalid syntax',
        ),
        ({"op": "test", "path": "/data/x", "value": "z"}, "testing value /data/x failed: test failed"),
        (
            {"op": "replace", "path": "/list/7", "value": 1},
            "replace operation does not apply: doc is missing key: /list/7: missing value",
        ),
        (
            {"op": "move", "from": "/data/no", "path": "/x"},
            "error in move for path: 'no': Unable to remove nonexistent key: no: missing value",
        ),
    ],
)
def test_what_does_not_fit_is_said(operation: dict[str, Any], words: str) -> None:
    with pytest.raises(JsonPatchError) as caught:
        apply_json_patch(TARGET, [operation])

    assert str(caught.value) == words
