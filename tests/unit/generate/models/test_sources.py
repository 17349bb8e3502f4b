"""Documents from files and folders."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kubewright.errors import ConfigError
from kubewright.generate.models.sources import read_crds, read_openapi

DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.0",
    "paths": {"/apis/shop.example.io/v1/": {}, "/apis/shop.example.io/v1/boxes": {}},
    "components": {"schemas": {}},
}


def test_a_folder_is_sorted_out_by_what_its_files_hold(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "a.json").write_text(json.dumps(DOCUMENT))
    (tmp_path / "b.json.gz").write_bytes(
        gzip.compress(json.dumps({"openapi": "3.0.0", "paths": {"/apis/": {}}}).encode())
    )
    (tmp_path / "c.json").write_text(json.dumps({"gitVersion": "v1.35.4"}))
    (tmp_path / "d.json").write_text(
        json.dumps({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "z"}}]})
    )
    (tmp_path / "e.json").write_text(json.dumps({"kind": "APIGroupDiscoveryList", "items": [{"versions": []}]}))
    (tmp_path / "notes.txt").write_text("not read")

    found = read_openapi(tmp_path)

    assert list(found.documents) == ["shop.example.io/v1"]
    assert found.version == "v1.35.4"
    assert found.discovery == ({"versions": []}, {"metadata": {"name": "z"}})


def test_a_single_file_is_enough(tmp_path: Path) -> None:
    file = tmp_path / "shop.json"
    file.write_text(json.dumps(DOCUMENT))

    assert list(read_openapi(file).documents) == ["shop.example.io/v1"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "not valid JSON"),
        ("[]", "an OpenAPI document is expected"),
        ('{"swagger": "2.0"}', "this is OpenAPI v2"),
        ('{"openapi": "3.0.0", "paths": {}}', "no OpenAPI v3 document of a group-version"),
    ],
)
def test_a_file_that_is_no_document_is_refused_in_one_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    file = tmp_path / "shop.json"
    file.write_text(content)

    with pytest.raises(ConfigError, match=sentence) as caught:
        read_openapi(file)

    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_archive_is_refused_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "shop.json.gz"
    file.write_bytes(gzip.compress(b"{}")[:-6])

    with pytest.raises(ConfigError, match=r"shop\.json\.gz cannot be read"):
        read_openapi(file)


CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: x.io
  names: {kind: Box, plural: boxes}
  versions: [{name: v1, schema: {openAPIV3Schema: {type: object}}}]
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "line 2"),
        ("- a", "a CustomResourceDefinition is expected"),
        ("kind: Pod", "kind is 'Pod'"),
        (CRD.replace("/v1\n", "/v1beta1\n", 1), "apiVersion is 'apiextensions.k8s.io/v1beta1'"),
        (CRD.replace("  group: x.io\n", ""), "spec: object missing required field `group`"),
        (CRD.replace(", plural: boxes", ""), "spec.names: object missing required field `plural`"),
        (CRD.replace("openAPIV3Schema", "other"), "version v1 has no schema.openAPIV3Schema"),
        (
            CRD.replace("[{name: v1, schema: {openAPIV3Schema: {type: object}}}]", "1"),
            "spec.versions: expected `array`, got `int`",
        ),
        (CRD.replace("kind: Box", "kind: a box"), "spec.names.kind is 'a box'"),
        (f"{CRD}---\n{CRD}", "x.io/v1 Box is defined twice"),
        ("# nothing", "there is no CustomResourceDefinition"),
    ],
)
def test_a_manifest_that_is_no_crd_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "crd.yaml"
    file.write_text(text)

    with pytest.raises(ConfigError) as caught:
        read_crds([file])

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_list_of_crds_is_taken_apart(tmp_path: Path) -> None:
    lines = CRD.strip().splitlines()
    item = "\n".join(["- " + lines[0], *(f"  {line}" for line in lines[1:])])
    file = tmp_path / "list.yaml"
    file.write_text(f"kind: List\napiVersion: v1\nitems:\n{item}\n")

    assert [str(kind.gvk) for kind in read_crds([file]).kinds] == ["x.io/v1 Box"]


def test_a_path_without_manifests_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file and no folder with manifests"):
        read_crds([tmp_path / "nothing"])
