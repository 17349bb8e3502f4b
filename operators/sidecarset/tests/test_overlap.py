"""Whether two selectors can select one object, against trying out every object there is."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubewright import Selector
from made import a_set

from sidecarset.overlap import can_share_a_pod, overlap
from sidecarset.selection import Selection

KEYS, VALUES = ("a", "b"), ("x", "y", "z")
STATES = (None, *VALUES, "some-other-value")
"""All that selectors about these values can tell apart: the label is absent, has one of them, or any other."""

values = st.lists(st.sampled_from(VALUES), min_size=1, max_size=3, unique=True)
expressions = st.one_of(
    st.builds(lambda key, words: {"key": key, "operator": "In", "values": words}, st.sampled_from(KEYS), values),
    st.builds(lambda key, words: {"key": key, "operator": "NotIn", "values": words}, st.sampled_from(KEYS), values),
    st.builds(lambda key: {"key": key, "operator": "Exists"}, st.sampled_from(KEYS)),
    st.builds(lambda key: {"key": key, "operator": "DoesNotExist"}, st.sampled_from(KEYS)),
)
selectors = st.builds(
    lambda labels, items: Selector.from_structured({"matchLabels": labels, "matchExpressions": items}),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=2),
    st.lists(expressions, max_size=4),
)


@given(selectors, selectors)
def test_selectors_overlap_exactly_when_some_object_meets_both(one: Selector, other: Selector) -> None:
    objects = [
        {key: state for key, state in zip(KEYS, states, strict=True) if state is not None}
        for states in product(STATES, repeat=len(KEYS))
    ]
    found = any(one.matches(labels) and other.matches(labels) for labels in objects)

    assert overlap(one, other) is found
    assert overlap(other, one) is found


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("a=1", "a=2", False),
        ("a=1", "a=1", True),
        ("a=b", "c", True),  # K10: one pod can have both labels
        ("a", "!a", False),
        ("a in (x,y)", "a notin (x)", True),
        ("a in (x)", "a notin (x)", False),
        ("a notin (x)", "!a", True),
        ("a!=x", "a", True),
    ],
)
def test_terms_about_one_label_are_taken_together(one: str, other: str, shared: bool) -> None:
    assert overlap(Selector.parse(one), Selector.parse(other)) is shared


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (None, {"matchLabels": {"team": "a"}}, True),
        ({"matchLabels": {"team": "a"}}, {"matchLabels": {"team": "b"}}, False),
        ({"matchLabels": {"team": "a"}}, {"matchExpressions": [{"key": "team", "operator": "Exists"}]}, True),
    ],
)
def test_sets_for_different_namespaces_share_no_pod(one: Any, other: Any, shared: bool) -> None:
    first = a_set("first", namespaceSelector=one) if one else a_set("first")
    second = a_set("second", namespaceSelector=other)

    assert can_share_a_pod(Selection.of(first.spec), Selection.of(second.spec)) is shared


def test_a_selector_of_nothing_overlaps_with_nothing() -> None:
    assert not overlap(Selector.nothing(), Selector.everything())
