"""Unset, zero, empty and null are four different things."""

from __future__ import annotations

from typing import ClassVar

import pytest

from kubewright import Field, Model
from kubewright.api import UNSET, Unset, field
from kubewright.api.codec import decode, encode
from kubewright.errors import SchemaError


class Inner(Model):
    deep: int = 7


class Everything(Model):
    plain: int = 1
    optional: int | None = None
    nullable: int | Unset | None = UNSET
    items: list[str] = []
    maybe_items: list[str] | None = None
    inner: Inner = Inner()
    cluster_ip: str = field(default="none", name="clusterIP")


def test_names_are_camel_case_on_the_wire() -> None:
    assert encode(Everything(maybe_items=["a"])).startswith(b'{"plain":1,"items":[],"maybeItems":["a"],')


def test_default_values_are_sent_and_unset_ones_are_not() -> None:
    assert encode(Everything()) == b'{"plain":1,"items":[],"inner":{"deep":7},"clusterIP":"none"}'


def test_zero_empty_and_null_are_sent() -> None:
    data = encode(Everything(optional=0, nullable=None, maybe_items=[]))

    assert b'"optional":0' in data
    assert b'"nullable":null' in data
    assert b'"maybeItems":[]' in data


def test_missing_fields_get_their_defaults_when_read() -> None:
    assert decode(Everything, b"{}") == Everything()


def test_explicit_null_is_kept_where_it_is_declared() -> None:
    assert decode(Everything, b'{"nullable":null}').nullable is None
    assert decode(Everything, b"{}").nullable is UNSET


def test_mutable_defaults_are_not_shared() -> None:
    first, second = Everything(), Everything()
    first.items.append("x")
    first.inner.deep = 0

    assert second.items == []
    assert second.inner.deep == 7
    assert Everything().inner.deep == 7


def test_required_attribute_may_follow_one_with_a_default() -> None:
    class Mixed(Model):
        size: int = 1
        name: str

    assert encode(Mixed(name="a")) == b'{"size":1,"name":"a"}'


def test_an_attribute_without_a_type_is_refused_since_it_would_be_none() -> None:
    with pytest.raises(SchemaError, match=r"Plain.size has no type; write size: int = 1, or ClassVar"):

        class Plain(Model):
            size = 1

    with pytest.raises(SchemaError, match=r"Sized\.plain has no type"):

        class Sized(Everything):
            plain = 2  # meant as another default

    class Fine(Model):
        LIMIT = 3
        shared: ClassVar[int] = 4
        size: int = 1

        def double(self) -> int:
            return self.size * 2

    assert (Fine().double(), encode(Fine())) == (2, b'{"size":1}')


def test_a_marker_as_a_default_is_refused_since_it_belongs_to_the_type() -> None:
    with pytest.raises(SchemaError, match=r"Page\.title: Field\(\.\.\.\) goes beside the type"):

        class Page(Model):
            title: str = Field(min_length=1)  # type: ignore[assignment]  # what is to be refused


def test_an_option_that_is_mistyped_is_named() -> None:
    with pytest.raises(SchemaError, match="Odd: a class statement has no option markr; did you mean marker"):

        class Odd(Model, markr=None):
            size: int = 1
