"""CustomResourceDefinitions from classes."""

import json
from datetime import datetime
from typing import Any

import pytest

from kubewright.api.dynamic import metadata_of
from kubewright.api.fields import Field
from kubewright.api.model import Model
from kubewright.api.resource import Column, KubeObject, Resource, Scale, Spec, Status
from kubewright.errors import SchemaError
from kubewright.generate.crds.manifests import crd_file_name, crd_for
from kubewright.schema.builder.builder import schema_for_kind

JSON = dict[str, Any]


class Limits(Model):
    high: int = 1


class CacheSpec(Spec):
    size: int = 1
    image: str = "memcached:1.6"
    limits: Limits = Limits()
    tags: list[str] = []
    since: datetime | None = None


class CacheStatus(Status):
    ready: int = 0
    selector: str | None = None


class Cache(
    Resource[CacheSpec, CacheStatus],
    group="cache.example.io",
    version="v1alpha1",
    short_names=("mc",),
    categories=("all",),
    scale=("spec.size", "status.ready"),
    columns={
        "Ready": ".status.ready",
        "Image": Column(path="spec.image", description="What runs", format="byte", priority=1),
        "Tags": ".spec.tags",
        "Since": ".spec.since",
        "Age": ".metadata.creationTimestamp",
    },
    selectable_fields=("spec.image", ".spec.limits.high"),
):
    """A memcached cluster."""


class NewerCache(
    Resource[CacheSpec, CacheStatus],
    group="cache.example.io",
    version="v1",
    kind="Cache",
    short_names=("mc",),
    categories=("all",),
):
    """A memcached cluster."""


def version_of(kind: type[KubeObject]) -> JSON:
    found: JSON = crd_for(kind)["spec"]["versions"][0]
    return found


def declared(**facts: Any) -> type[KubeObject]:
    """A kind Cache like the one above, but for these facts."""
    base: Any = Resource[CacheSpec, CacheStatus]
    facts = {"group": "cache.example.io", "version": "v1", "kind": "Cache", **facts}

    class Made(base, **facts):  # type: ignore[misc]  # a class made at run time
        pass

    found: type[KubeObject] = Made
    return found


def test_the_definition_of_a_kind_has_everything_the_class_says() -> None:
    assert crd_for(Cache) == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "caches.cache.example.io"},
        "spec": {
            "group": "cache.example.io",
            "names": {
                "kind": "Cache",
                "listKind": "CacheList",
                "plural": "caches",
                "singular": "cache",
                "shortNames": ["mc"],
                "categories": ["all"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema_for_kind(Cache)},
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready"},
                    },
                    "additionalPrinterColumns": [
                        {"name": "Ready", "type": "integer", "jsonPath": ".status.ready"},
                        {
                            "name": "Image",
                            "type": "string",
                            "jsonPath": ".spec.image",
                            "description": "What runs",
                            "format": "byte",
                            "priority": 1,
                        },
                        {"name": "Tags", "type": "string", "jsonPath": ".spec.tags"},
                        {"name": "Since", "type": "date", "jsonPath": ".spec.since"},
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    ],
                    "selectableFields": [{"jsonPath": ".spec.image"}, {"jsonPath": ".spec.limits.high"}],
                }
            ],
        },
    }


def test_a_plain_kind_says_no_more_than_it_must() -> None:
    class Plain(Resource[CacheSpec, None], group="example.io", version="v1", scope="Cluster"):
        pass

    crd = crd_for(Plain)

    assert crd["spec"]["scope"] == "Cluster"
    assert crd["spec"]["versions"][0].keys() == {"name", "served", "storage", "schema"}
    assert crd["spec"]["names"].keys() == {"kind", "listKind", "plural", "singular"}


def test_versions_are_ordered_by_name_whatever_the_order_given() -> None:
    old = declared(
        version="v1alpha1", storage=False, served=False, deprecated=True, short_names=("mc",), categories=("all",)
    )

    crd = crd_for(old, NewerCache)

    assert json.dumps(crd) == json.dumps(crd_for(NewerCache, old))
    assert [(v["name"], v["served"], v["storage"]) for v in crd["spec"]["versions"]] == [
        ("v1", True, True),
        ("v1alpha1", False, False),
    ]
    assert crd["spec"]["versions"][1]["deprecated"] is True
    assert "deprecationWarning" not in crd["spec"]["versions"][1]


def test_a_deprecated_version_may_carry_its_own_warning() -> None:
    version = version_of(declared(deprecated="use v2"))

    assert (version["deprecated"], version["deprecationWarning"]) == (True, "use v2")


def test_a_scale_may_name_its_selector() -> None:
    kind = declared(scale=Scale(spec_path=".spec.size", status_path=".status.ready", selector_path="status.selector"))

    assert version_of(kind)["subresources"]["scale"] == {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.ready",
        "labelSelectorPath": ".status.selector",
    }


def test_a_given_column_type_wins_over_the_one_found() -> None:
    kind = declared(columns={"Image": Column(path=".spec.size", type="string")})

    assert version_of(kind)["additionalPrinterColumns"] == [
        {"name": "Image", "type": "string", "jsonPath": ".spec.size"}
    ]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"group": ""}, "Made: the group '' is no domain; give a custom resource one of your own"),
        ({"group": "example"}, "Made: the group 'example' is no domain"),
        ({"group": "Cache.Example.io"}, "Made: the group 'Cache.Example.io' is no domain"),
        (
            {"group": "cache.k8s.io"},
            "Made: the group cache.k8s.io is reserved for the Kubernetes project; use a domain",
        ),
        ({"version": "1.0"}, "Made: the version '1.0' cannot be used; write it like v1 or v1alpha1"),
        (
            {"partial": True},
            "Made: the class knows only a part of its kind, and a CRD made from it would drop the rest",
        ),
        ({"storage": False}, "Cache: exactly one version is stored, not none; say storage=False on the others"),
        ({"served": False}, "Cache: no version is served; drop served=False from one"),
        ({"scale": ("spec.sizes", "status.ready")}, "Made: scale: .spec.sizes does not exist: .spec has size, image"),
        ({"scale": ("spec.image", "status.ready")}, "Made: scale: .spec.image is no integer; name the field"),
        ({"scale": ("status.ready", "status.ready")}, "Made: scale: .status.ready must be below .spec"),
        (
            {"scale": ("spec.size", "status.ready", "status.ready")},
            "Made: scale: .status.ready is no string below .spec or .status",
        ),
        ({"columns": {"Ready": ".status.redy"}}, "Made: column Ready: .status.redy does not exist"),
        (
            {"columns": {"Ready": Column(path=".status.ready", type="int")}},
            "Made: column Ready: int is no column type; use one of string, integer",
        ),
        (
            {"selectable_fields": ("spec.tags",)},
            "Made: selectable field spec.tags: it is no string, boolean or integer",
        ),
        ({"selectable_fields": ("metadata.name",)}, "Made: selectable field metadata.name: it is no string"),
        ({"selectable_fields": ("spec.size",) * 9}, "Made: a kind has at most 8 selectable fields, not 9; drop some"),
    ],
)
def test_a_kind_the_server_would_refuse_is_refused(facts: JSON, message: str) -> None:
    with pytest.raises(SchemaError) as error:
        crd_for(declared(**facts))

    assert str(error.value)[: len(message)] == message


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({}, "Cache: two classes say version v1; give each its own"),
        ({"version": "v2"}, "Cache: exactly one version is stored, not v1, v2; say storage=False on the others"),
        (
            {"version": "v2", "kind": "Cash"},
            "Cache: cache.example.io/v1 Cache and cache.example.io/v2 Cash are different",
        ),
        ({"version": "v2", "group": "b.io"}, "Cache: cache.example.io/v1 Cache and b.io/v2 Cache are different kinds"),
        ({"version": "v2", "scope": "Cluster"}, "Cache: versions v1 and v2 differ in namespaced; a kind has one"),
        ({"version": "v2", "plural": "cachen"}, "Cache: versions v1 and v2 differ in plural; a kind has one"),
        (
            {"version": "v2", "short_names": ("other",)},
            "Cache: versions v1 and v2 differ in short_names; declare it in one",
        ),
    ],
)
def test_versions_that_do_not_belong_together_are_refused(facts: JSON, message: str) -> None:
    with pytest.raises(SchemaError) as error:
        crd_for(declared(short_names=("mc",)), declared(**facts))

    assert str(error.value)[: len(message)] == message


def test_short_names_and_categories_are_said_in_any_one_of_the_versions() -> None:
    first = declared(short_names=("mc",))
    second = declared(version="v2", storage=False, categories=("all",))

    for versions in ((first, second), (second, first)):
        names = crd_for(*versions)["spec"]["names"]
        assert (names["shortNames"], names["categories"]) == (["mc"], ["all"])


def test_a_class_for_metadata_alone_makes_no_definition() -> None:
    with pytest.raises(SchemaError, match="CacheMetadata: the class knows only a part of its kind"):
        crd_for(metadata_of(Cache))


def test_no_class_at_all_is_refused() -> None:
    with pytest.raises(SchemaError, match="crd_for needs at least one class"):
        crd_for()


def test_what_is_true_of_names_stands_in_the_metadata() -> None:
    kind = declared(object_names=Field(max_length=40, pattern="^[a-z]"))

    assert version_of(kind)["schema"]["openAPIV3Schema"]["properties"]["metadata"] == {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 40, "pattern": "^[a-z]"}},
    }


def test_of_names_nothing_else_can_be_said() -> None:
    with pytest.raises(SchemaError, match="object_names says nullable; a name has only description, enum"):
        crd_for(declared(object_names=Field(nullable=True)))


def test_the_definition_has_the_labels_and_annotations_of_any_version() -> None:
    old = declared(version="v1alpha1", storage=False, crd_labels={"team": "a"})
    new = declared(crd_annotations={"b": "2", "a": "1"})

    assert crd_for(old, new)["metadata"] == {
        "annotations": {"a": "1", "b": "2"},
        "labels": {"team": "a"},
        "name": "caches.cache.example.io",
    }


def test_the_conversion_is_taken_as_it_is_given() -> None:
    conversion = {"strategy": "Webhook", "webhook": {}}

    assert crd_for(declared(), conversion=conversion)["spec"]["conversion"] == conversion
    assert "conversion" not in crd_for(declared())["spec"]


def test_the_file_is_called_by_group_and_plural() -> None:
    assert crd_file_name(crd_for(declared())) == "cache.example.io_caches.yaml"


SENTENCE = "How it is described, in a sentence that goes on for quite a while."


class NoteSpec(Spec):
    description: str = ""
    """How it is described, in a sentence that goes on for quite a while."""


class Note(Resource[NoteSpec, None], group="notes.example.io", version="v1"):
    """A note."""


@pytest.mark.parametrize(
    ("most", "shown"),
    [(None, SENTENCE), (len(SENTENCE), SENTENCE), (30, "How it is described, in a..."), (3, None), (0, None)],
)
def test_descriptions_are_cut_at_a_word_and_attributes_of_that_name_stay(most: int | None, shown: str | None) -> None:
    (version,) = crd_for(Note, max_description=most)["spec"]["versions"]

    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    described = spec["properties"]["description"]
    assert described["type"] == "string"
    assert described.get("description") == shown
