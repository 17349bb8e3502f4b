"""install_crds returns when discovery lists the kinds."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from kubewright import Client, Resource, Spec, Status
from kubewright.api.codec import decode_tree, encode_tree
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.cluster.install import install_crds
from kubewright.errors import ClusterError


class Late(Resource[Spec, Status], group="late.example.io", version="v1"):
    """Served at once, and listed later."""


class Server:
    """Takes every CRD as it is, and lists its kind from the given reading on."""

    def __init__(self, *, listed_from: int) -> None:
        self._listed_from = listed_from
        self.readings = 0

    async def send(self, request: HttpRequest) -> HttpResponse:
        if request.method == "PATCH":
            assert request.body is not None
            established = {"conditions": [{"type": "Established", "status": "True"}]}
            return _json({**decode_tree(request.body), "status": established})
        if request.path == "/api":
            return _json(_listing())
        assert request.path == "/apis"
        self.readings += 1
        return _json(_listing("late.example.io" if self.readings >= self._listed_from else "other.example.io"))

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        raise NotImplementedError

    async def close(self) -> None: ...


def _json(tree: dict[str, Any]) -> HttpResponse:
    return HttpResponse(status=200, headers={"content-type": "application/json"}, body=encode_tree(tree))


def _listing(*groups: str) -> dict[str, Any]:
    return {
        "apiVersion": "apidiscovery.k8s.io/v2",
        "kind": "APIGroupDiscoveryList",
        "items": [{"metadata": {"name": group}, "versions": [_version(group)]} for group in groups],
    }


def _version(group: str) -> dict[str, Any]:
    kind = {"group": group, "version": "v1", "kind": "Late"}
    resource = {"resource": "lates", "responseKind": kind, "scope": "Namespaced", "verbs": ["get"]}
    return {"version": "v1", "resources": [resource]}


async def test_install_waits_for_a_kind_that_discovery_does_not_list_yet() -> None:
    server = Server(listed_from=3)

    await install_crds(Client(server), Late)

    assert server.readings == 3


async def test_the_error_names_a_kind_that_discovery_never_lists() -> None:
    server = Server(listed_from=10_000)

    with pytest.raises(ClusterError, match=r"did not list the kinds of lates\.late\.example\.io within 0\.1 s"):
        await install_crds(Client(server), Late, timeout=0.1)
