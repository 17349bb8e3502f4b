"""The values of a JSON text are counted without decoding it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright._base.json_values import has_more_values

TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a,[]{}"\\'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='a,[{"\\'), inner),
)


def values(tree: Any) -> int:
    """Opening brackets, and commas: what the function says it counts."""
    if isinstance(tree, dict | list):
        inside = list(tree.values()) if isinstance(tree, dict) else tree
        return 1 + max(0, len(inside) - 1) + sum(map(values, inside))
    return 0


@given(TREES)
def test_what_is_inside_of_strings_does_not_count(tree: Any) -> None:
    text, count = json.dumps(tree).encode(), values(tree)

    assert not has_more_values(text, count)
    if count:
        assert has_more_values(text + b" " * 2 * len(text), count - 1)


@pytest.mark.parametrize("size", [65_000, 65_536, 200_000])
def test_a_string_may_be_longer_than_a_piece(size: int) -> None:
    text = b'["' + b"," * size + b'",' + b",".join([b"1"] * 99) + b"]"

    assert not has_more_values(text, 100)
    assert has_more_values(text, 99)
