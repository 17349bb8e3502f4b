"""The documents of custom resources, against those of the real API server (documents.json, from tests/differential).

Covers: kubewright.apiserver.openapi
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kubewright._base.yaml import load_all
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.apiextensions.resource_strategy import CustomResourceStrategy, version_of
from kubewright.apiserver.apiextensions.versions import CustomVersion, versions_of
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.resources import Resource, Subresource
from kubewright.apiserver.openapi import OpenApi
from kubewright.apiserver.openapi.names import article, model_name, operation_name
from kubewright.apiserver.openapi.schemas import item_schema, list_schema
from kubewright.apiserver.wire.requests import Peer, Request
from kubewright.apiserver.wire.responses import Response
from kubewright.apiserver.wire.users import User

Tree = dict[str, Any]

FOLDER = Path(__file__).parent
CRDS: list[Tree] = list(load_all((FOLDER / "definitions.yaml").read_text()))
KNOWN: Tree = json.loads((FOLDER / "documents.json").read_text())
SCALE = GroupVersionKind("autoscaling", "v1", "Scale")


def served(crd: Tree) -> list[Resource]:
    return [resource(crd, version) for version in versions_of(crd) if version.served]


def resource(crd: Tree, version: CustomVersion) -> Resource:
    names, kind = crd["spec"]["names"], version.gvk
    subresources = {"status": Subresource("status", kind, ("get",))} if version.has_status else {}
    if version.scale is not None:
        subresources["scale"] = Subresource("scale", SCALE, ("get",))
    return Resource(
        kind=kind,
        plural=names["plural"],
        singular=names["singular"],
        namespaced=version.namespaced,
        verbs=("get", "list"),
        strategy=CustomResourceStrategy(version, kind=kind, storage_version=kind.api_version, converter=None),
        list_kind=f"{kind.kind}List",
        subresources=subresources,
        custom=True,
    )


class Documents:
    """A server's documents, without the server."""

    def __init__(self) -> None:
        self.catalog = Catalog(ServiceAllocator())
        self._openapi = OpenApi(self.catalog, version_of)

    def get(self, path: str, **headers: str) -> Response:
        path, _, query = path.partition("?")
        pairs = dict(one.split("=") for one in query.split("&") if one)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self._openapi.handle(Request("GET", path, pairs, sent, b"", Peer()), User("somebody", ()))
        assert isinstance(answer, Response)
        return answer

    def tree(self, path: str) -> Tree:
        answer = self.get(path)
        assert answer.code == 200
        found: Tree = json.loads(answer.body)
        return found


@pytest.fixture
def documents() -> Documents:
    return Documents()


@pytest.mark.parametrize("crd", CRDS, ids=lambda crd: crd["spec"]["names"]["kind"])
def test_schemas_are_published_as_by_kube_apiserver(crd: Tree) -> None:
    for one in served(crd):
        version, listed = version_of(one), GroupVersionKind(one.kind.group, one.kind.version, one.list_kind)
        for old, known in ((False, KNOWN["v3"][one.kind.version]), (True, KNOWN["v2"]["all"])):
            assert item_schema(one.kind, version, v2=old) == known[model_name(one.kind)]
            assert list_schema(one.kind, one.list_kind, one.plural, version, v2=old) == known[model_name(listed)]


class Bare:
    """A version from before schemas were demanded."""

    schema: Mapping[str, Any] = {}
    preserves_unknown = True
    selectable_fields: Sequence[str] = ()


def test_without_a_schema_no_fields_are_published() -> None:
    kind = GroupVersionKind("example.com", "v1", "Thing")
    marks = [{"group": "example.com", "kind": "Thing", "version": "v1"}]
    assert item_schema(kind, Bare()) == {"type": "object", "x-kubernetes-group-version-kind": marks}


def test_the_index_follows_the_catalog(documents: Documents) -> None:
    before = documents.tree("/openapi/v3")["paths"]
    assert {"api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "version"} <= set(before)
    documents.catalog.serve("gadgets", served(CRDS[0]))
    after = documents.tree("/openapi/v3")["paths"]
    assert set(after) - set(before) == {"apis/openapi.example.com/v1", "apis/openapi.example.com/v1alpha1"}
    assert {path: after[path] for path in before} == before
    documents.catalog.withdraw("gadgets")
    assert documents.tree("/openapi/v3")["paths"] == before


def test_a_hash_changes_with_the_document_alone(documents: Documents) -> None:
    def address() -> str:
        return str(documents.tree("/openapi/v3")["paths"]["apis/openapi.example.com/v1"]["serverRelativeURL"])

    documents.catalog.serve("gadgets", served(CRDS[0]))
    first = address()
    documents.catalog.serve("gadgets", served(CRDS[0]))
    assert address() == first
    documents.catalog.serve("engines", served(CRDS[1]))
    second = address()
    assert second != first
    moved = documents.get(first)
    assert (moved.code, moved.headers["Location"]) == (301, second)
    assert documents.get(second).headers["Cache-Control"] == "public, immutable"
    assert "Expires" in documents.get(second).headers
    assert "Cache-Control" not in documents.get(second.partition("?")[0]).headers


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3/apis/apps/v1", "/openapi/v3/version"])
def test_a_known_document_is_a_304(documents: Documents, path: str) -> None:
    answer = documents.get(path)
    again = documents.get(path, if_none_match=answer.headers["ETag"])
    assert (again.code, again.body) == (304, b"")
    assert documents.get(path, if_none_match='"other"').code == 200


@pytest.mark.parametrize(
    ("path", "accept", "code"),
    [
        ("/openapi/v2", "application/json", 200),
        ("/openapi/v2", "text/html, */*;q=0.5", 200),
        ("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", 200),
        ("/openapi/v3", "application/yaml", 200),
        ("/openapi/v3/api/v1", "application/yaml", 406),
        ("/openapi/v3/apis/none/v1", "", 404),
        ("/openapi/v3/", "", 404),
        ("/openapi/v4", "", 404),
        ("/openapi", "", 404),
    ],
)
def test_unknown_paths_and_media_types_are_rejected(documents: Documents, path: str, accept: str, code: int) -> None:
    assert documents.get(path, accept=accept).code == code


def test_documents_have_what_kubectl_needs(documents: Documents) -> None:
    documents.catalog.serve("gadgets", served(CRDS[0]))
    paths = documents.tree("/openapi/v3/apis/openapi.example.com/v1")["paths"]
    patch = paths["/apis/openapi.example.com/v1/namespaces/{namespace}/gadgets/{name}"]["patch"]
    kind = {"group": "openapi.example.com", "version": "v1", "kind": "Gadget"}
    assert patch["x-kubernetes-group-version-kind"] == kind
    assert [one["name"] for one in patch["parameters"]] == ["dryRun", "fieldManager", "fieldValidation", "force"]
    assert "/apis/openapi.example.com/v1/namespaces/{namespace}/gadgets/{name}/scale" in paths


def test_v2_has_everything_in_one_document(documents: Documents) -> None:
    documents.catalog.serve("gadgets", served(CRDS[0]))
    whole = documents.tree("/openapi/v2")
    assert {"com.example.openapi.v1.Gadget", "io.k8s.api.core.v1.Pod"} <= set(whole["definitions"])
    post = whole["paths"]["/apis/openapi.example.com/v1/namespaces/{namespace}/gadgets"]["post"]
    assert post["parameters"][0]["schema"] == {"$ref": "#/definitions/com.example.openapi.v1.Gadget"}
    assert post["consumes"] == ["application/json", "application/yaml"]
    # The name is that of kube-apiserver: a digest of what the parameter says.
    assert "allowWatchBookmarks-HC2hJt-J" in whole["parameters"]
    documents.catalog.withdraw("gadgets")
    assert "com.example.openapi.v1.Gadget" not in documents.tree("/openapi/v2")["definitions"]


def test_no_document_offers_a_media_type_the_server_lacks(documents: Documents) -> None:
    places = ["/openapi/v2", *(f"/openapi/v3/{path}" for path in documents.tree("/openapi/v3")["paths"])]

    assert len(places) > 30
    assert [place for place in places if b"application/cbor" in documents.get(place).body] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [("apps", "apps"), ("example.com", "exampleCom"), ("a-b.c", "aBC"), ("9lives", "Lives"), ("v1beta1", "v1beta1")],
)
def test_operations_are_named_in_camel_case(text: str, expected: str) -> None:
    assert operation_name(text) == expected


@pytest.mark.parametrize(
    ("noun", "expected"), [("Widget", " a "), ("Engine", " an "), ("Endpoints", " "), ("Class", " a ")]
)
def test_kinds_have_articles(noun: str, expected: str) -> None:
    assert article(noun) == expected
