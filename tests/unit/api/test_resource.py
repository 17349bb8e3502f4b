"""A class statement is the whole declaration of a kind."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright import Column, Resource, Spec, Status
from kubewright.api import KubeObject, definition_of
from kubewright.api.codec import decode, encode
from kubewright.errors import SchemaError


class CacheSpec(Spec):
    size: int = 1


class CacheStatus(Status):
    ready: int = 0


class Cache(
    Resource[CacheSpec, CacheStatus],
    group="cache.example.io",
    version="v1alpha1",
    short_names=("mc",),
    scale=("spec.size", "status.ready"),
    columns={"Ready": ".status.ready", "Age": Column(path=".metadata.creationTimestamp", type="date")},
):
    """A memcached cluster."""


class Policy(Resource[CacheSpec, None], group="example.io", version="v1", scope="Cluster"):
    """A kind without a status."""


def test_definition_has_what_the_class_statement_says() -> None:
    definition = definition_of(Cache)

    assert definition.api_version == Cache.api_version == "cache.example.io/v1alpha1"
    assert definition.kind == Cache.kind == "Cache"
    assert (definition.plural, definition.singular, definition.list_kind) == ("caches", "cache", "CacheList")
    assert definition.namespaced
    assert definition.status
    assert definition.columns["Ready"] == Column(path=".status.ready")


def test_kind_without_status_has_no_status_subresource() -> None:
    definition = definition_of(Policy)

    assert not definition.status
    assert not definition.namespaced
    assert definition.plural == "policies"
    assert encode(Policy()) == b'{"apiVersion":"example.io/v1","kind":"Policy","metadata":{},"spec":{"size":1}}'


def test_status_is_there_before_the_server_has_one() -> None:
    cache = decode(Cache, b'{"metadata":{"name":"a"},"spec":{"size":3}}')

    cache.status.ready = 2

    assert cache.status.conditions == []
    assert cache.spec.size == 3


def test_required_spec_attributes_stay_required() -> None:
    class Strict(Spec):
        image: str

    class App(Resource[Strict, CacheStatus], group="example.io", version="v1"):
        pass

    with pytest.raises(TypeError, match="spec"):
        App()
    assert App(spec=Strict(image="i")).spec.image == "i"


def test_status_with_a_required_attribute_is_refused() -> None:
    class Bad(Status):
        ready: int

    with pytest.raises(SchemaError, match="every attribute of Bad needs a default"):

        class App(Resource[CacheSpec, Bad], group="example.io", version="v1"):
            pass


def test_abstract_class_has_no_definition() -> None:
    with pytest.raises(SchemaError, match="give it a version"):
        definition_of(KubeObject)


def test_scale_takes_two_or_three_paths() -> None:
    with pytest.raises(SchemaError, match="two or three paths"):

        class App(Resource[CacheSpec, CacheStatus], group="example.io", version="v1", scale=("spec.size",)):
            pass


def test_subclass_of_a_kind_may_be_another_version_of_it() -> None:
    class CacheV1(Cache, group="cache.example.io", version="v1", kind="Cache"):
        """The next version."""

    assert definition_of(CacheV1).gvk.version == "v1"
    assert definition_of(Cache).gvk.version == "v1alpha1"
    assert CacheV1().spec == CacheSpec()


def test_named_makes_an_object_of_that_name() -> None:
    cache = Cache.named("a", "shop", spec=CacheSpec(size=2))

    assert str(cache.key) == "shop/a"
    assert cache.spec.size == 2


def test_a_new_object_has_a_name_and_perhaps_labels() -> None:
    labels = {"app": "web"}
    made = Cache.named("a", "shop", labels=labels, annotations={"note": "x"}, spec=CacheSpec(size=3))
    labels["app"] = "changed later"

    assert (str(made.key), made.metadata.labels, made.metadata.annotations) == ("shop/a", {"app": "web"}, {"note": "x"})
    assert made.spec.size == 3
    assert b"labels" not in encode(Cache.named("a"))


def test_what_is_mistyped_is_named_with_what_may_be_meant() -> None:
    with pytest.raises(TypeError, match=r"^Cache has no attribute spek; did you mean spec\?"):
        Cache.named("a", spek=CacheSpec())
    with pytest.raises(TypeError, match=r"^Cache has no attribute replicas; it has metadata, spec, status"):
        Cache.named("a", replicas=3)
    with pytest.raises(
        SchemaError, match=r"^Mistyped: a class statement has no option short_name; did you mean short_names\?"
    ):

        class Mistyped(Resource[CacheSpec, CacheStatus], group="a.example.io", version="v1", short_name="c"):
            """Cannot be."""


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"version": "1alpha"}, "Made: the version '1alpha' cannot be used; write it like v1 or v1alpha1"),
        ({"version": 1}, "Made: version is 1; write it like version='v1alpha1'"),
        ({"version": None}, "Made has a group and no version; write version='v1alpha1' beside it"),
        ({"group": "https://shop.io"}, "Made: the group 'https://shop.io' is no domain"),
        ({"group": "shop.io/v1"}, "Made: the group 'shop.io/v1' is no domain"),
        ({"plural": "Makings"}, "Made: the plural 'Makings' cannot be used; write it like caches"),
        ({"kind": "my kind"}, "Made: kind is 'my kind'; write it like a class, kind='Cache'"),
        ({"scope": "cluster"}, "Made: scope is 'cluster'; it is 'Namespaced' or 'Cluster'"),
        ({"short_names": "mc"}, r"Made: short_names takes several; write short_names=\('mc',\)"),
    ],
)
def test_a_class_statement_that_no_server_would_take_is_refused(facts: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):

        class Made(Resource[Spec, Status], **{"group": "shop.example.io", "version": "v1", **facts}):
            """A kind."""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("ConfigMap", "the class of a kind is needed, such as ConfigMap, and 'ConfigMap' is none; import the class"),
        (dict, "and dict is none"),
        (Spec, "and Spec is none"),
    ],
)
def test_what_is_no_kind_is_refused_in_a_sentence(given: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        definition_of(given)
