"""Objects that lack something their class requires can still be converted: a server asks for that during an apply."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any, Literal

import pytest

from kubewright import Model, Resource, Spec, Status, convert
from kubewright.webhooks.conversion.declarations import ConversionError, Converters
from kubewright.webhooks.conversion.partial_objects import with_zero_values


class Colour(Enum):
    RED = "red"


class Part(Model):
    name: str
    count: int


class OldSpec(Spec):
    image: str
    part: Part
    parts: list[Part] = []
    named: dict[str, Part] = {}
    mode: Literal["fast", "slow"]
    colour: Colour
    since: datetime
    maybe: Part | None = None
    note: str | None = None


class OldStatus(Status):
    ready: int = 0


class Old(Resource[OldSpec, OldStatus], group="partial.example.io", version="v1", kind="Thing"):
    """As it was."""


class NewSpec(Spec):
    picture: str


class New(Resource[NewSpec, OldStatus], group="partial.example.io", version="v2", kind="Thing"):
    """As it is."""


@convert(Old, New)
def up(old: Old) -> New:
    return New(spec=NewSpec(picture=old.spec.image), status=old.status)


@convert(New, Old)
def down(new: New) -> Old:
    part = Part(name="p", count=1)
    spec = OldSpec(image=new.spec.picture, part=part, mode="slow", colour=Colour.RED, since=datetime.min)
    return Old(spec=spec, status=new.status)


CONVERTERS = Converters([up, down])


def tree(**parts: Any) -> dict[str, Any]:
    return {"apiVersion": "partial.example.io/v1", "kind": "Thing", "metadata": {"name": "a"}, **parts}


def test_everything_required_that_is_missing_becomes_zero() -> None:
    given = {"parts": [{"name": "x"}], "named": {"a": {"count": 2}}, "maybe": {}, "note": None}

    assert with_zero_values(Old, tree(spec=given))["spec"] == {
        "image": "",
        "part": {"name": "", "count": 0},
        "parts": [{"name": "x", "count": 0}],
        "named": {"a": {"name": "", "count": 2}},
        "mode": "fast",
        "colour": "red",
        "since": "1970-01-01T00:00:00Z",
        "maybe": {"name": "", "count": 0},
        "note": None,
    }


def test_what_is_left_of_an_object_is_converted() -> None:
    rest = CONVERTERS.convert_tree(tree(spec={"note": "kept"}), "partial.example.io/v2")

    assert rest["spec"] == {"picture": ""}


def test_an_object_without_spec_and_status_gets_none() -> None:
    rest = CONVERTERS.convert_tree(tree(), "partial.example.io/v2")

    assert rest == {**tree(), "apiVersion": "partial.example.io/v2"}


def test_metadata_that_cannot_be_read_is_refused_in_the_words_about_the_object_itself() -> None:
    broken = {**tree(spec={"image": 7}), "metadata": {"name": "a", "finalizers": 3}}
    with pytest.raises(ConversionError, match=r"Thing a of partial\.example\.io/v1.*finalizers"):
        CONVERTERS.convert_tree(broken, "partial.example.io/v2")
