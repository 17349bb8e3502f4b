"""Printer columns of custom resources, against those of the real API server (columns.json, from tests/differential)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kubewright._base.yaml import load_all
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.apiextensions.resource_strategy import CustomResourceStrategy
from kubewright.apiserver.apiextensions.versions import versions_of
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.printers import cells, column_definitions, scale_columns
from kubewright.apiserver.printers.jsonpath import InvalidPathError, parse_path
from kubewright.apiserver.wire.responses import encode_json

FOLDER = Path(__file__).parent
(GIVEN,) = load_all((FOLDER / "columns.yaml").read_text())
FOUND: dict[str, dict[str, Any]] = json.loads((FOLDER / "columns.json").read_text())
NOW = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)
OBJECT = {
    "metadata": {
        "name": "x",
        "creationTimestamp": "2026-11-15T11:59:55Z",
        "labels": {"example.com/x": "label"},
    },
    "spec": GIVEN["spec"],
}


def resource(*columns: dict[str, Any]) -> Resource:
    """A custom resource with these printer columns."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    if columns:
        version["additionalPrinterColumns"] = columns
    crd = {"spec": {"group": "example.com", "names": {"kind": "Thing"}, "scope": "Namespaced", "versions": [version]}}
    (found,) = versions_of(crd)
    kind = GroupVersionKind("example.com", "v1", "Thing")
    return Resource(
        kind=kind,
        plural="things",
        singular="thing",
        namespaced=True,
        verbs=("get",),
        strategy=CustomResourceStrategy(found, kind=kind, storage_version="example.com/v1", converter=None),
        custom=True,
        columns=found.columns,
    )


@pytest.mark.parametrize("kind", sorted(FOUND))
@pytest.mark.parametrize("path", list(FOUND["string"]))
def test_a_column_shows_what_kube_apiserver_shows(path: str, kind: str) -> None:
    shown = cells(resource({"name": "c", "type": kind, "jsonPath": path}), OBJECT, now=lambda: NOW)
    # As bytes: five and five point zero are not the same to a reader.
    expected = FOUND[kind][path]
    if isinstance(expected, str) and path == ".spec.when" and kind == "date":
        assert shown[1].endswith("d")  # years ago; the day it was recorded does not matter
        return
    assert json.loads(encode_json(shown)) == ["x", expected]
    assert type(shown[1]) is type(expected)


def test_columns_are_those_of_the_definition() -> None:
    found = column_definitions(
        resource(
            {"name": "Spec", "type": "string", "jsonPath": ".spec.a"},
            {"name": "N", "type": "integer", "jsonPath": ".b", "format": "int32", "priority": 1, "description": "text"},
        )
    )
    assert found[0]["name"] == "Name"
    assert found[1:] == [
        {
            "name": "Spec",
            "type": "string",
            "format": "",
            "description": "Custom resource definition column (in JSONPath format): .spec.a",
            "priority": 0,
        },
        {"name": "N", "type": "integer", "format": "int32", "description": "text", "priority": 1},
    ]


def test_without_columns_the_age_is_shown() -> None:
    bare = resource()
    assert [(one["name"], one["type"]) for one in column_definitions(bare)] == [("Name", "string"), ("Age", "date")]
    assert cells(bare, OBJECT, now=lambda: NOW) == ["x", "5s"]


def test_an_invalid_path_ends_the_table() -> None:
    broken = resource(
        {"name": "a", "type": "string", "jsonPath": ".spec.text"},
        {"name": "b", "type": "string", "jsonPath": ".spec.list[x]"},
        {"name": "c", "type": "string", "jsonPath": ".spec.int"},
    )
    assert [one["name"] for one in column_definitions(broken)] == ["Name", "a"]
    assert cells(broken, OBJECT, now=lambda: NOW) == ["x", "hello"]


def test_the_scale_of_a_custom_resource_has_columns_of_its_own() -> None:
    assert [(one["name"], one["type"]) for one in scale_columns(resource())] == [
        ("Name", "string"),
        ("Desired", "integer"),
        ("Available", "integer"),
        ("Age", "date"),
    ]


@pytest.mark.parametrize(
    "path",
    [
        ".a[",
        ".a[x]",
        ".a[-]",
        ".a[?(@.b==1]",
        ".a[?(@.b",
        ".a '",
        "....a",
        ".a\n",
        ".a[?(@.b=='x)]",
        ".a + 1.2.3",
        ".a %",
    ],
)
def test_an_invalid_path_is_rejected(path: str) -> None:
    with pytest.raises(InvalidPathError):
        parse_path(path)
