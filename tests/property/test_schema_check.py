"""Random structural schemas and objects: the quick verdict never contradicts the causes, and passes are idempotent.

tests/differential/components/test_schema_validation.py compares verdicts and causes with those of the real server.

Covers: kubewright.schema.check
"""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright.schema.check.defaulting import compile_defaults
from kubewright.schema.check.equality import deep_equal
from kubewright.schema.check.error_finder import ErrorFinder
from kubewright.schema.check.list_types import list_errors
from kubewright.schema.check.pruning import compile_pruning
from kubewright.schema.check.quick_tests import compile_test
from kubewright.schema.check.validation import compile_schema

JSON = dict[str, Any]

NAMES = st.sampled_from("abcd")
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from((2**53, 2**63, -(2**64), 0.5, 1.0, 1e7, -2.25))
    | st.sampled_from(("", "a", "ab", "abc", "2020-01-01", "1.2.3.4", "é"))
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "minimum": st.sampled_from((0, 1.5, -3)),
        "maximum": st.sampled_from((3, 4.0, 2**53)),
        "exclusiveMinimum": st.booleans(),
        "multipleOf": st.sampled_from((2, 0.5)),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 3),
        "pattern": st.sampled_from(("^a", "b$", r"\d", "[[:alpha:]]")),
        "enum": st.lists(st.sampled_from(("a", "ab", 1, 1.0, True)), min_size=1, max_size=3),
    },
)
SCALARS = st.builds(
    lambda kind, limits, extra: kind | limits | extra,
    st.sampled_from(
        (
            {"type": "string"},
            {"type": "integer"},
            {"type": "number"},
            {"type": "boolean"},
            {"type": "string", "format": "date"},
            {"x-kubernetes-int-or-string": True},
            {"x-kubernetes-preserve-unknown-fields": True},
        )
    ),
    LIMITS,
    st.fixed_dictionaries(
        {},
        optional={
            "nullable": st.booleans(),
            "default": LEAVES.filter(lambda value: value is not None),
            "anyOf": st.lists(LIMITS, min_size=1, max_size=2),
            "oneOf": st.lists(LIMITS, min_size=1, max_size=2),
            "allOf": st.lists(LIMITS, min_size=1, max_size=2),
            "not": LIMITS,
        },
    ),
)


def _around(inner: st.SearchStrategy[JSON]) -> st.SearchStrategy[JSON]:
    lists = st.builds(
        lambda items, extra: {"type": "array", "items": items, **extra},
        inner,
        st.sampled_from(
            (
                {},
                {"maxItems": 2},
                {"x-kubernetes-list-type": "set"},
                {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
                {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]},
            )
        ),
    )
    maps = st.builds(lambda child: {"type": "object", "additionalProperties": child}, inner)
    objects = st.builds(
        lambda properties, extra: {"type": "object", "properties": properties, **extra},
        st.dictionaries(NAMES, inner, max_size=3),
        st.sampled_from(({}, {"required": ["a"]}, {"x-kubernetes-preserve-unknown-fields": True}, {"nullable": True})),
    )
    return lists | maps | objects


SCHEMAS = st.recursive(SCALARS, _around, max_leaves=6)


@settings(deadline=None, max_examples=300)
@given(SCHEMAS, VALUES)
def test_what_the_quick_test_passes_has_no_causes(schema: JSON, value: Any) -> None:
    if compile_test(schema)(value):
        assert ErrorFinder(schema).find(value, prefix="") == []
        assert list_errors(value, schema) == []


@settings(deadline=None, max_examples=100)
@given(SCHEMAS, VALUES)
def test_a_value_passes_when_it_is_what_was_stored(schema: JSON, value: Any) -> None:
    fields = {"type": "object", "properties": {"a": schema}}
    validator = compile_schema(fields)
    known = compile_pruning(fields)
    tree = {"a": value}
    known.prune(tree, root=False)

    assert validator.check_lists(tree, old=tree) == []
    for error in validator.check_schema(tree, old=tree):
        # Free-form parts, and items without their keys, cannot be correlated: their mistakes are told again.
        assert "preserve-unknown" in str(schema) or "list-map-keys" in str(schema), error


@settings(deadline=None, max_examples=100)
@given(SCHEMAS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_pruning_and_defaulting_twice_changes_nothing_more(schema: JSON, value: JSON) -> None:
    root = {"type": "object", "properties": {"a": schema, "b": schema}}
    pruner, defaulter = compile_pruning(root), compile_defaults(root)
    first = copy.deepcopy(value)
    pruner.prune(first)
    once = copy.deepcopy(first)

    assert pruner.prune(first) == []
    assert deep_equal(first, once)

    defaulter.apply(first)
    once = copy.deepcopy(first)
    defaulter.apply(first)
    assert deep_equal(first, once)
