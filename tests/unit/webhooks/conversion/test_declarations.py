"""Converting between versions: chains of converters, metadata, whole reviews."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

import pytest
from tests.unit.webhooks.reviews import request, response

from kubewright import Resource, Spec, Status, convert, deny
from kubewright.api import enum_of
from kubewright.errors import ConfigError
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.webhooks.conversion.declarations import (
    ConversionDeclaration,
    ConversionError,
    Converters,
    converters_from,
)
from kubewright.webhooks.serving.router import WebhookRouter

GROUP = "convert.example.io"


class OneSpec(Spec):
    size: str = ""


class TwoSpec(Spec):
    size: int = 0


class One(Resource[OneSpec, Status], group=GROUP, version="v1alpha1", kind="Thing"):
    """The first version."""


class Two(Resource[TwoSpec, Status], group=GROUP, version="v1", kind="Thing"):
    """The hub."""


class Three(Resource[TwoSpec, Status], group=GROUP, version="v2", kind="Thing"):
    """The newest version."""


@convert(One, Two)
def one_to_two(one: One) -> Two:
    if one.spec.size == "none":
        deny("spec.size: none is no number")
    return Two(spec=TwoSpec(size=int(one.spec.size or "0")))


@convert(Two, One)
def two_to_one(two: Two) -> One:
    return One(spec=OneSpec(size=str(two.spec.size)))


@convert(Two, Three)
def two_to_three(two: Two) -> Three:
    three = Three(metadata=two.metadata, spec=two.spec)
    three.metadata.labels.pop("old", None)
    return three


@convert(Three, Two)
def three_to_two(three: Three) -> Two:
    two = Two(spec=three.spec)
    two.metadata.annotations["from"] = "v2"
    return two


ALL = (one_to_two, two_to_one, two_to_three, three_to_two)


def thing(version: str, size: object, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Thing",
        "metadata": {"name": "a", "namespace": "shop", "uid": "u-1", **metadata},
        "spec": {"size": size},
    }


def review(*objects: Any, wanted: str = "v1") -> dict[str, Any]:
    request = {"uid": "c1", "desiredAPIVersion": f"{GROUP}/{wanted}", "objects": list(objects)}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


async def converted(*objects: Any, wanted: str = "v1") -> dict[str, Any]:
    webhooks = WebhookRouter(ALL)
    answered = response(await webhooks.handle(request("/convert", review(*objects, wanted=wanted))))
    webhooks.close()
    return answered


def test_a_chain_over_the_hub_is_found() -> None:
    converters = Converters(ALL)

    assert converters.chain(f"{GROUP}/v1alpha1", f"{GROUP}/v2") == (one_to_two, two_to_three)
    assert converters.chain(f"{GROUP}/v2", f"{GROUP}/v1alpha1") == (three_to_two, two_to_one)
    result = converters.convert(One.named("a", spec=OneSpec(size="7")), f"{GROUP}/v2")
    assert isinstance(result, Three)
    assert (result.spec.size, result.metadata.name) == (7, "a")


def test_a_missing_chain_of_converters_is_reported() -> None:
    converters = Converters([one_to_two])

    with pytest.raises(
        ConversionError, match=r"no chain of converters from convert.example.io/v1 to convert.example.io/v1alpha1"
    ):
        converters.chain(f"{GROUP}/v1", f"{GROUP}/v1alpha1")


def test_the_classes_know_their_converters() -> None:
    assert set(converters_from(One)) == set(ALL)


async def test_a_list_is_converted_in_its_order() -> None:
    answered = await converted(thing("v1alpha1", "1"), thing("v2", 2), thing("v1", 3))

    assert (answered["uid"], answered["result"]) == ("c1", {"status": "Success"})
    assert [item["spec"] for item in answered["convertedObjects"]] == [{"size": 1}, {"size": 2}, {"size": 3}]
    assert {item["apiVersion"] for item in answered["convertedObjects"]} == {f"{GROUP}/v1"}


async def test_metadata_is_kept_as_it_came() -> None:
    marks = {
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        "labels": {"a": "b"},
        "creationTimestamp": None,
        "unheard": {"of": 1},
    }
    answered = await converted(thing("v1alpha1", "1", **marks))

    assert answered["convertedObjects"][0]["metadata"] == {"name": "a", "namespace": "shop", "uid": "u-1", **marks}


async def test_labels_and_annotations_of_a_converter_are_taken_over() -> None:
    added = await converted(thing("v2", 1, annotations={"mine": "yes"}))
    removed = await converted(thing("v1", 1, labels={"old": "x"}), wanted="v2")

    assert added["convertedObjects"][0]["metadata"]["annotations"] == {"mine": "yes", "from": "v2"}
    assert "labels" not in removed["convertedObjects"][0]["metadata"]


async def test_one_object_that_fails_fails_the_review_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    answered = await converted(thing("v1alpha1", "1"), thing("v1alpha1", "a secret"))

    assert "convertedObjects" not in answered
    assert answered["result"]["status"] == "Failure"
    assert answered["result"]["message"].startswith(
        "Thing shop/a could not be converted from convert.example.io/v1alpha1 to convert.example.io/v1;"
    )
    assert "a secret" in caplog.text


async def test_what_a_converter_itself_refuses_is_said_in_its_words(caplog: pytest.LogCaptureFixture) -> None:
    answered = await converted(thing("v1alpha1", "none"))

    assert answered["result"]["message"] == "Thing shop/a: spec.size: none is no number"
    assert not caplog.records


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        ({"apiVersion": "other.io/v1", "kind": "Thing"}, "there is no converter for other.io/v1 Thing"),
        ({"apiVersion": f"{GROUP}/v9", "kind": "Thing"}, "no chain of converters from convert.example.io/v9"),
        ({"apiVersion": "a/b/c", "kind": "Thing"}, "is not an apiVersion"),
        ({"apiVersion": f"{GROUP}/v2", "kind": "Thing", "metadata": {"uid": 3}}, "metadata.uid: expected"),
    ],
)
async def test_an_object_without_converter_is_reported(tree: dict[str, Any], sentence: str) -> None:
    answered = await converted(tree)

    assert sentence in answered["result"]["message"]


@pytest.mark.parametrize("body", [b"{", b"{}", json.dumps({"kind": "Pod"}).encode(), b'{"request": {"uid": 3}}'])
async def test_what_is_no_review_is_refused(body: bytes) -> None:
    webhooks = WebhookRouter(ALL)

    assert (await webhooks.handle(request("/convert", body))).code == 400
    webhooks.close()


def test_converters_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="give two versions of one kind"):

        @convert(One, ConfigMap)
        def strange(one: One) -> ConfigMap:
            return ConfigMap()

    again = ConversionDeclaration(One, Two, one_to_two.handler)
    with pytest.raises(ConfigError, match="two converters from"):
        Converters([one_to_two, again])


class Old(StrEnum):
    RED = "red"


class New(StrEnum):
    RED = "red"
    BLUE = "blue"


class OldSpec(Spec):
    color: Old = Old.RED


class NewSpec(Spec):
    color: New
    count: int = 0


class OldPaint(Resource[OldSpec, Status], group=GROUP, version="v1", kind="Paint"):
    """The stored version."""


class NewPaint(Resource[NewSpec, Status], group=GROUP, version="v2", kind="Paint"):
    """The other version."""


@convert(OldPaint, NewPaint)
def newer(old: OldPaint) -> NewPaint:
    if old.spec.color == "careless":
        return NewPaint(spec=NewSpec(color=New(old.spec.color)))
    return NewPaint(spec=NewSpec(color=enum_of(New, old.spec.color)))


@convert(NewPaint, OldPaint)
def older(new: NewPaint) -> OldPaint:
    return OldPaint(spec=OldSpec(color=enum_of(Old, new.spec.color)))


def paint(version: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Paint", "metadata": {"name": "p"}, "spec": spec}


async def repainted(*objects: Any, wanted: str) -> dict[str, Any]:
    webhooks = WebhookRouter((newer, older))
    answered = response(await webhooks.handle(request("/convert", review(*objects, wanted=wanted))))
    webhooks.close()
    return answered


async def test_a_value_that_the_class_lost_is_converted_with_the_others() -> None:
    up = await repainted(paint("v1", color="red"), paint("v1", color="mauve"), wanted="v2")

    assert up["result"] == {"status": "Success"}
    assert [each["spec"]["color"] for each in up["convertedObjects"]] == ["red", "mauve"]
    down = await repainted(*up["convertedObjects"], wanted="v1")
    assert [each["spec"] for each in down["convertedObjects"]] == [{"color": "red"}, {"color": "mauve"}]


async def test_a_value_of_another_type_is_converted_with_the_others() -> None:
    down = await repainted(paint("v2", color="red", count="many"), paint("v2", color="blue"), wanted="v1")

    assert [each["spec"] for each in down["convertedObjects"]] == [{"color": "red"}, {"color": "blue"}]


async def test_a_converter_that_fails_on_an_unknown_value_is_told_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    answered = await repainted(paint("v1", color="careless"), wanted="v2")

    assert answered["result"]["status"] == "Failure"
    message = answered["result"]["message"]
    assert 'it holds spec.color: Unsupported value: "careless": supported values: "red"' in message
    assert "kubewright.api.enum_of" in message
