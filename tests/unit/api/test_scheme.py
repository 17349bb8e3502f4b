"""From a kind's name to its class and back."""

from __future__ import annotations

import pytest

from kubewright import Resource, Spec, Status
from kubewright.api import GroupVersionKind, Scheme
from kubewright.api.dynamic import DynamicObject
from kubewright.api.resource import KubeObject
from kubewright.errors import ConfigError, DecodeError


class ThingSpec(Spec):
    size: int = 1


class Thing(Resource[ThingSpec, Status], group="example.io", version="v1"):
    """For these tests."""


GVK = GroupVersionKind("example.io", "v1", "Thing")


def test_added_class_is_found_by_its_kind() -> None:
    scheme = Scheme([Thing])

    assert scheme.find(GVK) is Thing
    assert scheme.kind_of(Thing) == scheme.kind_of(Thing.named("a")) == GVK
    assert GVK in scheme
    assert list(scheme) == [Thing]


def test_finder_is_asked_once() -> None:
    asked: list[GroupVersionKind] = []

    def finder(gvk: GroupVersionKind) -> type[KubeObject] | None:
        asked.append(gvk)
        return Thing if gvk == GVK else None

    scheme = Scheme(finders=[finder])

    assert scheme.find(GVK) is scheme.find(GVK) is Thing
    assert asked == [GVK]


def test_second_class_for_a_kind_is_refused() -> None:
    class Other(Resource[ThingSpec, Status], group="example.io", version="v1", kind="Thing"):
        pass

    scheme = Scheme([Thing])

    with pytest.raises(ConfigError, match="registered as Thing already"):
        scheme.add(Other)


def test_object_says_itself_what_it_is() -> None:
    scheme = Scheme([Thing])

    thing = scheme.decode(b'{"apiVersion":"example.io/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":4}}')

    assert isinstance(thing, Thing)
    assert thing.spec.size == 4


def test_unknown_kind_becomes_dynamic() -> None:
    thing = Scheme().decode(b'{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"v"}}')

    assert isinstance(thing, DynamicObject)
    assert (thing.api_version, thing.kind, thing["data"]) == ("v1", "ConfigMap", {"k": "v"})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[]", "expected an object"),
        (b'{"kind":"A"}', "apiVersion is missing"),
        (b'{"apiVersion":"v1"}', "kind is missing"),
    ],
)
def test_object_that_does_not_say_what_it_is_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        Scheme().decode(data)
