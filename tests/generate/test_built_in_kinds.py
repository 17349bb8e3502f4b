"""The generated kinds against a server: whatever it has, their classes read and write back unchanged.

Covers: kubewright.k8s, kubewright.generate.models
"""

from __future__ import annotations

from typing import Any

import pytest

from kubewright import Client
from kubewright.api.codec import decode, decode_tree, encode, encode_tree
from kubewright.api.kinds import GroupVersionKind
from kubewright.generate.models.cluster_documents import cluster_documents
from kubewright.k8s import SERVER_VERSION, find, kinds
from kubewright.k8s.documents import openapi_document

_TYPE = ("apiVersion", "kind")


def _without_types(value: Any) -> Any:
    """Without what a kind inside another kind says it is (claim templates): the server fills it in by itself."""
    if isinstance(value, list):
        return [_without_types(item) for item in value]
    if isinstance(value, dict):
        embedded = "metadata" in value and all(name in value for name in _TYPE)
        return {k: _without_types(v) for k, v in value.items() if not (embedded and k in _TYPE)}
    return value


def _lost(wanted: Any, actual: Any, path: str = "") -> list[str]:
    if isinstance(wanted, dict) and isinstance(actual, dict):
        return [
            place
            for name, value in wanted.items()
            if value not in (None, {}, [], "", 0)  # metadata leaves out what is empty
            for place in _lost(value, actual.get(name), f"{path}.{name}")
        ]
    if isinstance(wanted, list) and isinstance(actual, list) and len(wanted) == len(actual):
        return [place for one, other in zip(wanted, actual, strict=True) for place in _lost(one, other, f"{path}[]")]
    return [] if wanted == actual else [path]


async def _listed(client: Client) -> list[tuple[GroupVersionKind, str]]:
    resource_list = await client.discovery.resources()
    built_in = set(kinds())
    served = [one for one in resource_list.items if one.gvk in built_in and "list" in one.verbs]
    prefix = {one.gvk: "/apis" if one.gvk.group else "/api" for one in served}
    return [(one.gvk, f"{prefix[one.gvk]}/{one.gvk.api_version}/{one.gvr.resource}") for one in served]


async def test_every_object_of_a_built_in_kind_is_read_and_written_back_unchanged(client: Client) -> None:
    seen = 0
    lost: list[str] = []

    for gvk, path in await _listed(client):
        cls = find(gvk)
        assert cls is not None
        for item in decode_tree((await client.request("GET", path)).body)["items"] or ():
            seen += 1
            tree = _without_types(item)
            written = _without_types(decode_tree(encode(decode(cls, encode_tree(item)))))
            lost += [f"{gvk} {item['metadata']['name']}: {place}" for place in _lost(tree, written)]

    assert lost == []
    assert seen > 100


async def test_the_packaged_documents_are_those_of_the_server(client: Client) -> None:
    documents = await cluster_documents(client, builtin=True)
    if documents.version.removeprefix("v") != SERVER_VERSION.removeprefix("v"):
        pytest.skip(f"the server is {documents.version}, the documents are of {SERVER_VERSION}")

    for group_version in ("v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1"):
        served = documents.documents[group_version]["components"]["schemas"]
        packaged = openapi_document(group_version)["components"]["schemas"]
        differing = [name for name in served if served[name] != packaged.get(name)]
        # Options of every group-version: the server lists the group-versions it was started with.
        assert {name.rpartition(".")[2] for name in differing} <= {"DeleteOptions", "WatchEvent"}
