"""Every kind of change that breaks stored objects or clients, and those that break nobody."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kubewright._base import yaml
from kubewright.errors import ConfigError
from kubewright.generate.crds.compatibility import breaking_changes, crds_in
from kubewright.generate.crds.schema_changes import breaking_schema_changes

JSON = dict[str, Any]
EITHER = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXTS = {"type": "array", "items": {"type": "string"}}
NAMED = {
    "type": "array",
    "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
    "x-kubernetes-list-type": "map",
}


def text(**more: Any) -> JSON:
    return {"type": "string", **more}


def number(**more: Any) -> JSON:
    return {"type": "integer", **more}


def fields(*, required: list[str] | None = None, **properties: JSON) -> JSON:
    found: JSON = {"type": "object", "properties": properties}
    return {**found, "required": required} if required else found


class Case(NamedTuple):
    """A field before and after, what that is called, and whom it breaks."""

    old: JSON
    new: JSON
    change: str
    affects: str = "stored objects"


BREAKING = [
    Case(fields(a=text(), b=text()), fields(a=text()), "field removed"),
    Case(text(), {"type": "boolean"}, "type changed"),
    Case(fields(a=text()), TEXTS, "type changed"),
    Case({"type": "number"}, number(), "type narrowed"),
    Case(EITHER, number(), "type narrowed"),
    Case(EITHER, text(), "type narrowed"),
    Case({"x-kubernetes-preserve-unknown-fields": True}, text(), "type narrowed"),
    Case(number(), EITHER, "type widened", "clients"),
    Case(number(), {"type": "number"}, "type widened", "clients"),
    Case(text(nullable=True), text(), "null refused"),
    Case(fields(a=text()), fields(a=text(), required=["a"]), "required now"),
    Case(fields(a=text()), fields(a=text(), b=text(), required=["b"]), "new required field"),
    Case(number(minimum=1), number(minimum=2), "minimum tightened"),
    Case(number(), number(minimum=0), "minimum added"),
    Case(number(maximum=9), number(maximum=8), "maximum tightened"),
    Case(number(), number(maximum=9), "maximum added"),
    Case(number(minimum=1), number(minimum=1, exclusiveMinimum=True), "exclusiveMinimum added"),
    Case(number(maximum=1), number(maximum=1, exclusiveMaximum=True), "exclusiveMaximum added"),
    Case(number(), number(multipleOf=2), "multipleOf tightened"),
    Case(number(multipleOf=3), number(multipleOf=2), "multipleOf tightened"),
    Case(text(), text(minLength=1), "minLength added"),
    Case(text(minLength=1), text(minLength=2), "minLength tightened"),
    Case(text(), text(maxLength=9), "maxLength added"),
    Case(text(maxLength=9), text(maxLength=8), "maxLength tightened"),
    Case(TEXTS, {**TEXTS, "minItems": 1}, "minItems added"),
    Case({**TEXTS, "maxItems": 9}, {**TEXTS, "maxItems": 1}, "maxItems tightened"),
    Case(TEXTS, {**TEXTS, "uniqueItems": True}, "uniqueItems added"),
    Case(fields(a=text()), {**fields(a=text()), "minProperties": 1}, "minProperties added"),
    Case(fields(a=text()), {**fields(a=text()), "maxProperties": 1}, "maxProperties added"),
    Case(text(), text(pattern="^a"), "pattern added"),
    Case(text(pattern="^a"), text(pattern="^b"), "pattern changed"),
    Case(text(), text(format="ipv4"), "format added"),
    Case(text(format="ipv4"), text(format="ipv6"), "format changed"),
    Case(number(format="int64"), number(format="int32"), "format changed"),
    Case(text(), text(enum=["a"]), "enum added"),
    Case(text(enum=["a", "b"]), text(enum=["a", "c"]), "enum value removed"),
    Case(text(default="a"), text(), "default removed", "clients"),
    Case(text(default="a"), text(default="b"), "default changed", "clients"),
    Case({"type": "object", "additionalProperties": text()}, fields(a=text()), "map closed"),
    Case(OPEN, fields(), "unknown fields dropped"),
    Case(OPEN, {"type": "object", "additionalProperties": text()}, "unknown fields typed"),
    Case(OPEN, {**OPEN, "properties": {"a": number()}}, "type narrowed"),
    Case(
        {"type": "object", "additionalProperties": text()},
        {"type": "object", "additionalProperties": text(), "properties": {"a": text(maxLength=1)}},
        "maxLength added",
    ),
    Case(OPEN, {**OPEN, "x-kubernetes-embedded-resource": True}, "embedded object required"),
    Case(text(), text(oneOf=[{"pattern": "^a"}]), "oneOf added"),
    Case(text(anyOf=[{"pattern": "^a"}]), text(anyOf=[{"pattern": "^b"}]), "anyOf changed"),
    Case(text(), text(**{"not": {"pattern": "^a"}}), "not added"),
    Case(text(), text(allOf=[{"pattern": "^a"}]), "allOf added"),
    Case(text(), text(**{"x-kubernetes-validations": [{"rule": "self != ''"}]}), "rule added"),
    Case(TEXTS, {**TEXTS, "x-kubernetes-list-type": "set"}, "list type changed"),
    Case({**TEXTS, "x-kubernetes-list-type": "set"}, TEXTS, "list type changed", "clients"),
    Case(
        {**NAMED, "x-kubernetes-list-map-keys": ["a"]}, {**NAMED, "x-kubernetes-list-map-keys": ["b"]},
        "list keys changed",
    ),
    Case(fields(a=text()), {**fields(a=text()), "x-kubernetes-map-type": "atomic"}, "map type changed", "clients"),
]  # fmt: skip

HARMLESS = [
    (fields(a=text()), fields(a=text(), b=text())),
    (fields(a=text()), fields(a=text(), b=text(default="x"), required=["b"])),
    (fields(a=text(), required=["a"]), fields(a=text())),
    (fields(a=text()), {**OPEN, "properties": {}}),
    (number(minimum=1, maximum=5), number(minimum=0, maximum=9)),
    (number(minimum=1, exclusiveMinimum=True), number(minimum=1)),
    (number(multipleOf=4), number(multipleOf=2)),
    (number(format="int32"), number(format="int64")),
    (text(maxLength=3, pattern="^a", format="ipv4"), text()),
    (text(enum=["a"]), text(enum=["b", "a"])),
    (text(enum=["a"]), text()),
    (text(), text(default="x")),
    (text(), text(minLength=0)),
    (TEXTS, {**TEXTS, "minItems": 0}),
    (text(), text(nullable=True)),
    (text(description="before"), text(description="after")),
    (text(**{"x-kubernetes-validations": [{"rule": "true"}]}), text()),
    (text(oneOf=[{"pattern": "^a"}]), text()),
    ({**fields(a=text(default="x")), "default": {}}, {**fields(a=text(default="x")), "default": {"a": "x"}}),
    ({**fields(a=text(default="x")), "default": {"a": "x"}}, {**fields(a=text(default="x")), "default": {}}),
    (fields(a=text()), {"type": "object", "additionalProperties": text()}),
]


@pytest.mark.parametrize("case", BREAKING, ids=lambda case: f"{case.change}, {case.affects}")
def test_a_change_that_breaks_something_is_named_with_its_path(case: Case) -> None:
    found = list(breaking_schema_changes(fields(spec=fields(part=case.old)), fields(spec=fields(part=case.new))))

    assert [(finding.change, finding.affects) for finding in found] == [(case.change, case.affects)]
    assert found[0].path.startswith(".spec.part")


@pytest.mark.parametrize(("old", "new"), HARMLESS)
def test_a_change_that_breaks_nobody_is_not_mentioned(old: JSON, new: JSON) -> None:
    assert list(breaking_schema_changes(fields(spec=old), fields(spec=new))) == []


def test_what_is_newly_said_about_names_may_break_those_there_are() -> None:
    old, new = fields(metadata={"type": "object"}), fields(metadata=fields(name=text(maxLength=9)))

    assert [(found.path, found.change) for found in breaking_schema_changes(old, new)] == [
        (".metadata.name", "maxLength added")
    ]
    assert list(breaking_schema_changes(new, old)) == []


def test_changes_are_found_inside_of_lists_and_maps() -> None:
    def nested(inner: JSON) -> JSON:
        return fields(rows={"type": "array", "items": {"type": "object", "additionalProperties": fields(cell=inner)}})

    (found,) = breaking_schema_changes(nested(text()), nested(text(maxLength=1)))

    assert str(found) == ".rows[].*.cell: maxLength added: 1; there was none (breaks stored objects)"


OLD: JSON = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "caches.example.io"},
    "spec": {
        "group": "example.io",
        "scope": "Namespaced",
        "names": {
            "kind": "Cache",
            "plural": "caches",
            "singular": "cache",
            "listKind": "CacheList",
            "shortNames": ["mc"],
            "categories": ["all"],
        },
        "conversion": {"strategy": "Webhook"},
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == "v1",
                "schema": {"openAPIV3Schema": fields(spec=fields(size=number()))},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready"},
                },
                "selectableFields": [{"jsonPath": ".spec.size"}],
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
            }
            for name in ("v1", "v1beta1")
        ],
    },
}


def version(crd: JSON, name: str = "v1") -> JSON:
    found: JSON = next(item for item in crd["spec"]["versions"] if item["name"] == name)
    return found


def without_version(name: str) -> Callable[[JSON], None]:
    def change(crd: JSON) -> None:
        crd["spec"]["versions"] = [item for item in crd["spec"]["versions"] if item["name"] != name]

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda crd: crd["spec"].update(group="other.io"), "spec.group: group changed"),
        (lambda crd: crd["spec"].update(scope="Cluster"), "spec.scope: scope changed"),
        (lambda crd: crd["spec"]["names"].update(kind="Store"), "spec.names.kind: kind changed"),
        (lambda crd: crd["spec"]["names"].update(plural="stores"), "spec.names.plural: plural changed"),
        (lambda crd: crd["spec"]["names"].update(singular="store"), "spec.names.singular: singular changed"),
        (lambda crd: crd["spec"]["names"].update(listKind="Caches"), "spec.names.listKind: listKind changed"),
        (lambda crd: crd["spec"]["names"].pop("shortNames"), "spec.names.shortNames: shortNames entry removed"),
        (lambda crd: crd["spec"]["names"].pop("categories"), "spec.names.categories: categories entry removed"),
        (lambda crd: crd["spec"].pop("conversion"), "spec.conversion: conversion removed"),
        (without_version("v1beta1"), "spec.versions[v1beta1]: version removed"),
        (
            lambda crd: version(crd, "v1beta1").update(served=False),
            "spec.versions[v1beta1]: version no longer served",
        ),
        (
            lambda crd: version(crd)["subresources"].pop("status"),
            "spec.versions[v1].subresources.status: status subresource removed",
        ),
        (
            lambda crd: version(crd)["subresources"].pop("scale"),
            "spec.versions[v1].subresources.scale: scale subresource removed",
        ),
        (
            lambda crd: version(crd)["subresources"]["scale"].update(specReplicasPath=".spec.other"),
            "spec.versions[v1].subresources.scale.specReplicasPath: scale path changed",
        ),
        (
            lambda crd: version(crd).pop("selectableFields"),
            "spec.versions[v1].selectableFields: selectable field removed",
        ),
        (
            lambda crd: version(crd).pop("additionalPrinterColumns"),
            "spec.versions[v1].additionalPrinterColumns: column removed",
        ),
        (
            lambda crd: version(crd)["schema"].update(openAPIV3Schema=fields(spec=fields())),
            "v1 .spec.size: field removed",
        ),
    ],
)
def test_a_change_of_the_definition_is_named(change: Callable[[JSON], None], expected: str) -> None:
    new = copy.deepcopy(OLD)
    change(new)

    found = breaking_changes(OLD, new)

    assert [f"{finding.path}: {finding.change}" for finding in found] == [expected]


def test_a_new_status_subresource_changes_what_writes_mean() -> None:
    old = copy.deepcopy(OLD)
    del version(old)["subresources"]["status"]

    assert [finding.change for finding in breaking_changes(old, OLD)] == ["status subresource added"]


def test_a_version_that_objects_are_stored_in_cannot_be_dropped() -> None:
    old, new = copy.deepcopy(OLD), copy.deepcopy(OLD)
    old["status"] = {"storedVersions": ["v1beta1", "v1"]}
    version(old, "v1beta1")["served"] = False
    without_version("v1beta1")(new)

    assert [finding.change for finding in breaking_changes(old, new)] == ["stored version removed"]


def test_another_stored_version_without_a_converter_must_be_able_to_say_the_same() -> None:
    old, new = copy.deepcopy(OLD), copy.deepcopy(OLD)
    version(old, "v1beta1")["schema"]["openAPIV3Schema"] = fields(spec=fields(count=number()))
    version(new, "v1beta1")["schema"]["openAPIV3Schema"] = fields(spec=fields(count=number()))
    for crd in (old, new):
        del crd["spec"]["conversion"]
    version(new)["storage"], version(new, "v1beta1")["storage"] = False, True

    (found,) = breaking_changes(old, new)

    assert (found.path, found.change) == ("v1 to v1beta1 .spec.size", "field removed")
    assert "@convert" in found.detail


def test_the_same_definition_breaks_nothing() -> None:
    assert breaking_changes(OLD, copy.deepcopy(OLD)) == []


def test_definitions_are_found_in_files_and_folders_among_other_manifests(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "all.yaml").write_text(yaml.dump_all([{"kind": "ConfigMap"}, OLD]))

    assert list(crds_in(tmp_path)) == ["caches.example.io"]
    assert crds_in(tmp_path / "below" / "all.yaml")["caches.example.io"] == OLD


@pytest.mark.parametrize(("content", "sentence"), [("a: [", "cannot be read"), ("kind: Pod", "there is no Custom")])
def test_a_file_without_definitions_is_refused(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "old.yaml").write_text(content)

    with pytest.raises(ConfigError, match=sentence):
        crds_in(tmp_path)
