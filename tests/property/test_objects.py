"""Any object, of any kind: encode, decode, equal; patch, apply, equal.

Covers: kubewright.api
"""

from __future__ import annotations

import types
import typing
from datetime import UTC, datetime
from functools import cache
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kubewright import Duration, Quantity
from kubewright.api import KubeObject, MicroTime, copy_of
from kubewright.api.changes import merge_patch_between, merge_patch_since_read, status_patch_since_read, whole_tree
from kubewright.api.codec import decode, decode_tree, encode, read, to_tree
from kubewright.api.diff import merge_patch
from kubewright.api.patches import apply_json_patch, apply_merge_patch, make_json_patch
from kubewright.k8s.apiextensions.v1 import CustomResourceDefinition
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.batch.v1 import CronJob
from kubewright.k8s.coordination.v1 import Lease
from kubewright.k8s.core.v1 import ConfigMap, Pod, Secret, Service
from kubewright.k8s.discovery.v1 import EndpointSlice
from kubewright.k8s.networking.v1 import NetworkPolicy
from kubewright.k8s.rbac.v1 import ClusterRole

KINDS: list[type[KubeObject]] = [
    ClusterRole,
    ConfigMap,
    CronJob,
    CustomResourceDefinition,
    Deployment,
    EndpointSlice,
    Lease,
    NetworkPolicy,
    Pod,
    Secret,
    Service,
]

_DEPTH = 5
_TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
_TIMES = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2100, 1, 1)).map(
    lambda moment: moment.replace(microsecond=0, tzinfo=UTC)
)
_SCALARS: dict[Any, SearchStrategy[Any]] = {
    str: _TEXT,
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False, width=32),
    bool: st.booleans(),
    bytes: st.binary(max_size=6),
    datetime: _TIMES,
    Quantity: st.sampled_from(["0", "1", "500m", "1.5Gi", "2e3", "-3", "100Ki"]).map(Quantity),
    Duration: st.integers(-(10**12), 10**12).map(lambda number: Duration(nanoseconds=number)),
    MicroTime: _TIMES.map(MicroTime.of),
    msgspec.Raw: st.just(msgspec.Raw(b'{"f:a":{}}')),
    Any: st.one_of(_TEXT, st.integers(-5, 5), st.booleans(), st.dictionaries(_TEXT, st.integers(), max_size=2)),
}


@cache
def values(annotation: Any, depth: int = _DEPTH) -> SearchStrategy[Any]:
    """A strategy for an annotation; below a depth, optional things are left out."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        return values(arguments[0], depth)
    if origin in (Union, types.UnionType):
        known = [item for item in arguments if item not in (type(None), msgspec.UnsetType)]
        return st.one_of(*(values(item, depth) for item in known))
    if origin is list:
        return st.lists(values(arguments[0], depth - 1), max_size=2 if depth > 0 else 0)
    if origin is dict:
        return st.dictionaries(_TEXT, values(arguments[1], depth - 1), max_size=2 if depth > 0 else 0)
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return models(annotation, depth)
    raise AssertionError(f"no strategy for {annotation!r}")


@cache
def models(cls: type[msgspec.Struct], depth: int = _DEPTH) -> SearchStrategy[Any]:
    hints = typing.get_type_hints(cls, include_extras=True)
    attributes = msgspec.structs.fields(cls)

    @st.composite
    def build(draw: st.DrawFn) -> Any:
        given_values = {}
        names = [attribute.name for attribute in attributes]
        wanted = draw(st.sets(st.sampled_from(names), max_size=4)) if names and depth > 0 else set()
        for attribute in attributes:
            if attribute.required or attribute.name in wanted:
                given_values[attribute.name] = draw(values(hints[attribute.name], depth - 1))
        return cls(**given_values)

    return build()


def same(left: KubeObject, right: KubeObject) -> bool:
    return left == right and encode(left) == encode(right)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_encoded_and_decoded_object_is_equal(kind: type[KubeObject]) -> None:
    @settings(max_examples=40, deadline=None)
    @given(models(kind))
    def check(obj: KubeObject) -> None:
        assert same(decode(kind, encode(obj)), obj)
        assert same(copy_of(obj), obj)

    check()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_merge_patch_between_two_objects_leads_from_one_to_the_other(kind: type[KubeObject]) -> None:
    @settings(max_examples=40, deadline=None)
    @given(models(kind), models(kind))
    def check(before: KubeObject, after: KubeObject) -> None:
        patch = merge_patch_between(before, after)
        assert apply_merge_patch(to_tree(before), patch) == to_tree(after)
        assert (patch == {}) == (to_tree(before) == to_tree(after))
        operations = make_json_patch(to_tree(before), to_tree(after))
        assert apply_json_patch(to_tree(before), operations) == to_tree(after)

    check()


@settings(max_examples=100, deadline=None)
@given(models(Pod), models(Pod), st.dictionaries(_TEXT.map(lambda text: f"x-{text}"), st.integers(), min_size=1))
def test_changes_of_a_read_object_keep_every_unknown_field(before: Pod, after: Pod, unknown: dict[str, int]) -> None:
    wire = {**to_tree(before), **unknown}
    wire["spec"] = {**wire["spec"], **unknown}
    changed = read(Pod, msgspec.json.encode(wire))
    assert merge_patch_since_read(changed) == {}

    changed.metadata, changed.spec, changed.status = after.metadata, after.spec, after.status

    result = whole_tree(changed)
    assert {name: result[name] for name in unknown} == unknown
    assert {name: result["spec"][name] for name in unknown} == unknown
    assert same(decode(Pod, msgspec.json.encode(result)), after)
    assert apply_merge_patch(wire, merge_patch_since_read(changed)) == result
    assert merge_patch(wire, decode_tree(msgspec.json.encode(result))) == merge_patch_since_read(changed)


@settings(max_examples=150, deadline=None)
@given(models(Deployment), models(Deployment), st.dictionaries(_TEXT.map(lambda text: f"x-{text}"), st.integers()))
def test_a_patch_of_the_status_is_that_part_of_the_whole_patch(
    before: Deployment, after: Deployment, unknown: dict[str, int]
) -> None:
    wire = to_tree(before)
    if "status" in wire:
        wire["status"] = {**wire["status"], **unknown}
    changed = read(Deployment, msgspec.json.encode(wire))
    changed.spec, changed.status = after.spec, after.status

    patch = status_patch_since_read(changed)

    whole = merge_patch_since_read(changed).get("status", {})
    filled_in = {name: value for name, value in to_tree(after).get("status", {}).items() if name not in whole}
    assert ("status" in patch) == bool(whole)
    assert {name: value for name, value in patch.get("status", {}).items() if name in whole} == whole
    for name, value in patch.get("status", {}).items():
        if name not in whole:
            assert name not in wire.get("status", {})
            assert value == filled_in[name]
