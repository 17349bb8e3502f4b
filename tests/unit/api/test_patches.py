"""What patches of JSON trees promise; many cases are from the appendices of RFC 7386 and RFC 6902."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubewright.api.patches import apply_json_patch, apply_merge_patch, json_equal, make_json_patch
from kubewright.errors import DecodeError


@pytest.mark.parametrize(
    ("one", "two", "equal"),
    [
        (1, 1.0, True),
        (True, True, True),
        (True, 1, False),
        (0, False, False),
        (1.0, True, False),
        (None, None, True),
        (None, False, False),
        (None, 0, False),
        ("1", 1, False),
        ([1, [2]], [1.0, [2]], True),
        ([True], [1], False),
        ([1], [1, 2], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": {"b": [0]}}, {"a": {"b": [False]}}, False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": None}, {}, False),
        ({}, [], False),
        ({"a": 2**70}, {"a": 2**70}, True),
        ({"a": "\ud800"}, {"a": "\ud800"}, True),
    ],
)
def test_json_equality_tells_booleans_from_numbers(one: Any, two: Any, equal: bool) -> None:
    assert equal == json_equal(one, two)
    assert equal == json_equal(two, one)
    assert equal == json_equal(copy.deepcopy(one), two)


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches_apply_as_rfc_7386_says(target: Any, patch: Any, expected: Any) -> None:
    original = copy.deepcopy(target)

    assert expected == apply_merge_patch(target, patch)
    assert original == target


@pytest.mark.parametrize(
    ("target", "operations", "expected"),
    [
        ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
        ({"foo": [1, 3]}, [{"op": "add", "path": "/foo/1", "value": 2}], {"foo": [1, 2, 3]}),
        ({"foo": [1]}, [{"op": "add", "path": "/foo/-", "value": [2]}], {"foo": [1, [2]]}),
        ({"foo": [1]}, [{"op": "add", "path": "/foo/1", "value": 2}], {"foo": [1, 2]}),
        ({"foo": 1}, [{"op": "add", "path": "/foo", "value": 2}], {"foo": 2}),
        ({"foo": 1}, [{"op": "add", "path": "", "value": [1]}], [1]),
        ({"foo": 1, "bar": 2}, [{"op": "remove", "path": "/foo"}], {"bar": 2}),
        ({"foo": [1, 2, 3]}, [{"op": "remove", "path": "/foo/1"}], {"foo": [1, 3]}),
        ({"foo": 1}, [{"op": "remove", "path": ""}], None),
        ({"foo": 1}, [{"op": "replace", "path": "/foo", "value": None}], {"foo": None}),
        ({"foo": [1, 2]}, [{"op": "replace", "path": "/foo/0", "value": 3}], {"foo": [3, 2]}),
        ({"foo": 1}, [{"op": "replace", "path": "", "value": 2}], 2),
        (
            {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
            [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
            {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
        ),
        ({"foo": [1, 2, 3]}, [{"op": "move", "from": "/foo/0", "path": "/foo/2"}], {"foo": [2, 3, 1]}),
        ({"foo": 1}, [{"op": "move", "from": "/foo", "path": "/foo"}], {"foo": 1}),
        ({"foo": 1}, [{"op": "move", "from": "/foo", "path": ""}], 1),
        ({"foo": [1]}, [{"op": "copy", "from": "/foo", "path": "/bar"}], {"foo": [1], "bar": [1]}),
        ({"foo": 1}, [{"op": "test", "path": "/foo", "value": 1.0}], {"foo": 1}),
        ({"a/b": {"m~n": 1}}, [{"op": "replace", "path": "/a~1b/m~0n", "value": 2}], {"a/b": {"m~n": 2}}),
        ({"~1": 1}, [{"op": "remove", "path": "/~01"}], {}),
        ({"": 1}, [{"op": "replace", "path": "/", "value": 2}], {"": 2}),
        ({"-": 1, "0": 2}, [{"op": "remove", "path": "/-"}, {"op": "remove", "path": "/0"}], {}),
        ({"foo": 1}, [], {"foo": 1}),
    ],
)
def test_json_patches_apply_as_rfc_6902_says(target: Any, operations: Any, expected: Any) -> None:
    original = copy.deepcopy(target)

    assert expected == apply_json_patch(target, operations)
    assert original == target


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"op": "remove", "path": "/x"}, "operation 1 (remove '/x'): there is no 'x'"),
        ({"op": "replace", "path": "/x", "value": 1}, "(replace '/x'): there is no 'x'"),
        ({"op": "add", "path": "/x/y", "value": 1}, "there is no 'x'"),
        ({"op": "add", "path": "/list/3", "value": 1}, "index 3 is out of range; the list has 2 items"),
        ({"op": "replace", "path": "/list/2", "value": 1}, "index 2 is out of range"),
        ({"op": "remove", "path": "/list/-"}, "'-' is no index of a list"),
        ({"op": "add", "path": "/list/01", "value": 1}, "'01' is no index of a list"),
        ({"op": "add", "path": "/list/-1", "value": 1}, "'-1' is no index of a list"),
        ({"op": "add", "path": "/text/a", "value": 1}, "'a' cannot be added to a string"),
        ({"op": "remove", "path": "/null/a"}, "there is no 'a' inside a null"),
        ({"op": "remove", "path": "/flag/a"}, "there is no 'a' inside a boolean"),
        ({"op": "remove", "path": "/number/a"}, "there is no 'a' inside a number"),
        ({"op": "test", "path": "/number", "value": True}, "the test failed"),
        ({"op": "test", "path": "/x", "value": None}, "there is no 'x'"),
        ({"op": "move", "from": "/map", "path": "/map/inner"}, "a value cannot be moved into itself"),
        ({"op": "move", "from": "/x", "path": "/x"}, "there is no 'x'"),
        ({"op": "copy", "path": "/x"}, "the member 'from' is missing or no string"),
        ({"op": "add", "value": 1}, "the member 'path' is missing or no string"),
        ({"op": "add", "path": "/x"}, "the value is missing"),
        ({"op": "add", "path": "x", "value": 1}, "is no JSON pointer; it must be empty or start with a slash"),
        ({"op": "add", "path": "/a~2", "value": 1}, "is no JSON pointer; write ~ as ~0 and / as ~1"),
        ({"op": "merge", "path": "/x", "value": 1}, "unknown operation"),
        ("remove", "operation 1 is not an object"),
    ],
)
def test_an_operation_that_does_not_fit_is_named_and_nothing_is_changed(operation: Any, message: str) -> None:
    target: dict[str, Any] = {"list": [1, 2], "text": "t", "null": None, "flag": True, "number": 1, "map": {}}
    original = copy.deepcopy(target)

    with pytest.raises(DecodeError) as caught:
        apply_json_patch(target, [_NO_CHANGE, operation])

    assert message in str(caught.value)
    assert original == target


_NO_CHANGE = {"op": "test", "path": "/text", "value": "t"}


def test_a_late_failure_leaves_the_target_untouched() -> None:
    target = {"items": [{"a": 1}]}

    with pytest.raises(DecodeError, match="operation 1 "):
        apply_json_patch(target, [{"op": "replace", "path": "/items/0/a", "value": 2}, {"op": "remove", "path": "/x"}])

    assert target == {"items": [{"a": 1}]}


def test_values_of_operations_are_not_shared_with_the_result() -> None:
    value: dict[str, int] = {}

    result = apply_json_patch(
        {}, [{"op": "add", "path": "/a", "value": value}, {"op": "add", "path": "/a/b", "value": 1}]
    )

    assert result == {"a": {"b": 1}}
    assert value == {}


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [{"op": "replace", "path": "/a", "value": 2}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({"a": 1}, {}, [{"op": "remove", "path": "/a"}]),
        ({}, {"a/b~c": None}, [{"op": "add", "path": "/a~1b~0c", "value": None}]),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, [{"op": "replace", "path": "/a/b", "value": 2}]),
        ([1, 2, 3], [1, 9, 2, 3], [{"op": "add", "path": "/1", "value": 9}]),
        ([1, 2, 3], [1, 3], [{"op": "remove", "path": "/1"}]),
        ([1, 2, 3], [], [{"op": "remove", "path": f"/{index}"} for index in (2, 1, 0)]),
        ([1, 1], [1], [{"op": "remove", "path": "/1"}]),
        ([1], [1, 2], [{"op": "add", "path": "/1", "value": 2}]),
        ([{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 3}], [{"op": "replace", "path": "/1/a", "value": 3}]),
        ({"a": []}, {"a": {}}, [{"op": "replace", "path": "/a", "value": {}}]),
        (1, 2, [{"op": "replace", "path": "", "value": 2}]),
    ],
)
def test_json_patches_are_small(before: Any, after: Any, operations: list[dict[str, Any]]) -> None:
    assert operations == make_json_patch(before, after)
    assert json_equal(after, apply_json_patch(before, operations))
