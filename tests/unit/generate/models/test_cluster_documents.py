"""Documents asked from a cluster, here a scripted one."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from kubewright.client.client import Client
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import ConfigError
from kubewright.generate.models.cluster_documents import cluster_documents
from kubewright.generate.models.modules import generate_models
from kubewright.k8s.documents import openapi_document


class StubTransport:
    """Answers from a table, and remembers what was asked."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[HttpRequest] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.asked.append(request)
        found = self.answers.get(request.path)
        # As the server does: the index is JSON by another name.
        kind = "text/plain" if request.path == "/openapi/v3" else "application/json"
        body = {"kind": "Status", "code": 404, "reason": "NotFound"} if found is None else found
        said = b"" if found == "" else json.dumps(body).encode()
        return HttpResponse(status=404 if found is None else 200, headers={"content-type": kind}, body=said)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        raise AssertionError(f"nothing is streamed: {request}")

    async def close(self) -> None:
        pass


def _entry(path: str) -> dict[str, str]:
    return {"serverRelativeURL": f"/openapi/v3/{path}?hash=ABC%3D"}


BOX = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        "metadata": {"type": "object"},
    },
    "x-kubernetes-group-version-kind": [{"group": "shop.example.io", "version": "v1", "kind": "Box"}],
}
ANSWERS: dict[str, Any] = {
    "/version": {"gitVersion": "v1.35.4"},
    "/api": {"kind": "APIGroupDiscoveryList", "items": []},
    "/apis": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {"name": "shop.example.io"},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            {
                                "resource": "boxes",
                                "responseKind": {"kind": "Box"},
                                "scope": "Cluster",
                                "shortNames": ["bx"],
                            }
                        ],
                    }
                ],
            }
        ],
    },
    "/openapi/v3": {
        "paths": {path: _entry(path) for path in ("api/v1", "apis", "apis/apps", "apis/shop.example.io/v1")}
    },
    "/openapi/v3/apis/shop.example.io/v1": {
        "openapi": "3.0.0",
        "paths": {"/apis/shop.example.io/v1/boxes": {}},
        "components": {"schemas": {"io.example.shop.v1.Box": BOX}},
    },
}


async def test_only_kinds_without_a_class_are_asked_for() -> None:
    transport = StubTransport(ANSWERS)

    documents = await cluster_documents(Client(transport))

    assert list(documents.documents) == ["shop.example.io/v1"]
    assert documents.version == "v1.35.4"
    assert "/openapi/v3/api/v1" not in [request.path for request in transport.asked]
    assert transport.asked[-1].query == (("hash", "ABC="),)


async def test_a_class_is_made_with_what_discovery_says() -> None:
    documents = await cluster_documents(Client(StubTransport(ANSWERS)))

    source = generate_models(documents, package="models")["shop/v1.py"].decode()

    assert 'version="v1",\n    plural="boxes",\n    scope="Cluster",\n    short_names=("bx",),' in source
    assert "from Kubernetes v1.35.4; do not edit." in source


async def test_all_documents_are_asked_for_when_wanted() -> None:
    core = openapi_document("v1")
    transport = StubTransport(ANSWERS | {"/openapi/v3/api/v1": core})

    documents = await cluster_documents(Client(transport), builtin=True)

    assert documents.documents["v1"] == core


async def test_a_cluster_with_nothing_new_is_told_so() -> None:
    answers = ANSWERS | {"/openapi/v3": {"paths": {"api/v1": _entry("api/v1")}}}

    with pytest.raises(ConfigError, match="only kinds Kubewright has classes for"):
        await cluster_documents(Client(StubTransport(answers)))


async def test_a_server_that_is_too_old_is_told_so() -> None:
    with pytest.raises(ConfigError, match=r"Kubernetes 1\.24 or newer"):
        await cluster_documents(Client(StubTransport({})))


@pytest.mark.parametrize("answer", [None, ""], ids=["not found", "nothing"])
async def test_group_that_goes_while_it_is_asked_for_is_left_out(answer: str | None) -> None:
    index = {
        "paths": {**ANSWERS["/openapi/v3"]["paths"], "apis/going.example.io/v1": _entry("apis/going.example.io/v1")}
    }
    answers = {**ANSWERS, "/openapi/v3": index}
    if answer is not None:
        answers["/openapi/v3/apis/going.example.io/v1"] = answer

    found = await cluster_documents(Client(StubTransport(answers)))

    assert "shop.example.io/v1" in found.documents
    assert "going.example.io/v1" not in found.documents
