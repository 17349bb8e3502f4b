"""Bytes to objects and back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kubewright import Duration, Dynamic, Model, Quantity, Resource, Spec, Status
from kubewright.api import KubeObject, MicroTime, copy_of, metadata_of
from kubewright.api.codec import decode, decode_tree, encode, from_tree, is_partial, origin_of, read, to_tree
from kubewright.errors import DecodeError


class Times(Model):
    at: datetime | None = None
    exactly: MicroTime | None = None
    every: Duration | None = None
    amount: Quantity | None = None


class ListSpec(Spec):
    items: list[str] = []
    name: str = "x"


class Thing(Resource[ListSpec, Status], group="example.io", version="v1"):
    """For these tests."""


class Bare(KubeObject, version="v1"):
    """Metadata alone."""


def test_values_with_their_own_form_round_trip() -> None:
    times = Times(
        at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        exactly=MicroTime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        every=Duration.parse("90m"),
        amount=Quantity("500m"),
    )

    data = encode(times)

    assert data == (
        b'{"at":"2026-01-02T03:04:05Z","exactly":"2026-01-02T03:04:05.000000Z","every":"1h30m0s","amount":"500m"}'
    )
    assert decode(Times, data) == times


def test_quantity_may_come_as_a_number() -> None:
    assert decode(Times, b'{"amount":3}').amount == Quantity("3")
    assert decode(Times, b'{"amount":0.5}').amount == Quantity("500m")


def test_api_version_and_kind_are_written_first() -> None:
    assert encode(Bare()) == b'{"apiVersion":"v1","kind":"Bare","metadata":{}}'


def test_status_can_be_left_out() -> None:
    thing = Thing.named("a")

    assert b"status" not in encode(thing, with_status=False)
    assert thing.status == Status()
    dynamic = Dynamic("v1", "X").named("a", content={"spec": 1, "status": 2})
    assert b"status" not in encode(dynamic, with_status=False)


def test_null_means_absent() -> None:
    thing = decode(Thing, b'{"metadata":{"labels":null},"spec":{"items":null}}')

    assert thing.spec.items == []
    assert thing.metadata.labels == {}


def test_wrong_type_names_the_object_the_path_and_what_was_found() -> None:
    with pytest.raises(DecodeError, match=r"Thing a: spec\.name: expected `str`, got `int`"):
        decode(Thing, b'{"metadata":{"name":"a"},"spec":{"name":3}}')


def test_missing_required_field_is_named() -> None:
    class Strict(Model):
        name: str

    with pytest.raises(DecodeError, match="missing required field `name`"):
        decode(Strict, b"{}")


@pytest.mark.parametrize("data", [b"", b"{", b"<html>", b"\xff\xfe", b'{"metadata":{"name":"\xff"}}', b'{"a":1}}'])
def test_bytes_that_are_no_json_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="not valid JSON"):
        decode(Thing, data)
    with pytest.raises(DecodeError, match="not valid JSON"):
        decode_tree(data)
    with pytest.raises(DecodeError, match="not valid JSON"):
        decode(Dynamic("v1", "X"), data)


def test_json_that_is_no_object_is_refused() -> None:
    with pytest.raises(DecodeError, match="expected `object`"):
        decode(Thing, b"[]")
    with pytest.raises(DecodeError, match="object"):
        decode(Dynamic("v1", "X"), b"[]")


def test_private_copy_is_equal_and_independent_and_remembers_the_same_bytes() -> None:
    thing = read(Thing, b'{"metadata":{"name":"a"},"spec":{"items":["x"],"more":1}}')

    copied = copy_of(thing)
    copied.spec.items.append("y")

    assert thing.spec.items == ["x"]
    assert origin_of(copied) == origin_of(thing)


def test_tree_and_object_are_the_same_thing() -> None:
    thing = Thing.named("a", "b", spec=ListSpec(items=["x"]))

    tree = to_tree(thing)

    assert tree["metadata"] == {"name": "a", "namespace": "b"}
    assert from_tree(Thing, tree) == thing


def test_dynamic_object_keeps_everything_under_its_wire_name() -> None:
    kind = Dynamic("v1", "ConfigMap")
    data = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":null},"immutable":true}'

    thing = decode(kind, data)

    assert thing["data"] == {"k": None}
    assert list(thing) == ["data", "immutable"]
    assert encode(thing) == data
    assert Dynamic("v1", "ConfigMap") is kind


def test_dynamic_paths_are_forgiving() -> None:
    thing = Dynamic("v1", "X").named("a", content={"spec": {"a": {"b": 1}}})

    assert thing.get("spec.a.b") == 1
    assert thing.get("spec.x.b", 5) == 5
    assert "status" not in thing
    del thing["spec"]
    assert thing.content == {}


def test_partial_object_says_so_and_so_does_its_copy() -> None:
    part = read(Thing, b'{"metadata":{"name":"a"}}', partial=True)

    assert is_partial(part)
    assert is_partial(copy_of(part))
    assert not is_partial(read(Thing, b'{"metadata":{"name":"a"}}'))
    assert is_partial(metadata_of(Thing)())
