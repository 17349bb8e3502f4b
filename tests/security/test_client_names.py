"""The client sends no name that would change the path of a request, and impersonates nobody silently.

Covers: kubewright.client
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubewright import Client, Config
from kubewright.client.config.config import Impersonation
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import ConfigError
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import ConfigMap, Node, Pod

NAMES = [".", "..", "a/b", "../secrets/x", "a%2fb", "/", ""]


class Refusing:
    """A transport that no request may reach."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        raise AssertionError(f"{request.method} {request.path} was sent")

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        raise AssertionError(f"{request.method} {request.path} was sent")
        yield

    async def close(self) -> None: ...


Attempt = Callable[[Client, str], Awaitable[Any]]

BY_NAME: dict[str, Attempt] = {
    "get": lambda client, name: client.get(ConfigMap, name, namespace="shop"),
    "get of no namespace": lambda client, name: client.get(Node, name),
    "update": lambda client, name: client.update(ConfigMap.named(name, "shop")),
    "apply": lambda client, name: client.apply(ConfigMap.named(name, "shop")),
    "patch": lambda client, name: client.patch_by_name(ConfigMap, name, {}, namespace="shop"),
    "delete": lambda client, name: client.delete(ConfigMap, name, namespace="shop"),
    "status": lambda client, name: client.patch_by_name(Pod, name, {}, namespace="shop", subresource="status"),
    "log": lambda client, name: client.pods.read_logs(name, namespace="shop"),
    "evict": lambda client, name: client.pods.evict(name, namespace="shop"),
    "scale": lambda client, name: client.scales.set(Deployment, name, 3, namespace="shop"),
    "path": lambda client, name: client.object_path(ConfigMap, name, namespace="shop"),
}
BY_NAMESPACE: dict[str, Attempt] = {
    "get": lambda client, space: client.get(ConfigMap, "a", namespace=space),
    "list": lambda client, space: client.list(ConfigMap, namespace=space),
    "create": lambda client, space: client.create(ConfigMap.named("a", space)),
    "apply": lambda client, space: client.apply(ConfigMap.named("a", space)),
    "delete": lambda client, space: client.delete(ConfigMap, "a", namespace=space),
    "delete all": lambda client, space: client.delete_collection(ConfigMap, namespace=space),
    "log": lambda client, space: client.pods.read_logs("a", namespace=space),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("verb", BY_NAME)
async def test_a_name_that_is_no_path_segment_is_refused(verb: str, name: str) -> None:
    with pytest.raises(ConfigError, match="name"):
        await BY_NAME[verb](Client(Refusing(), field_manager="me"), name)


@pytest.mark.parametrize("namespace", NAMES[:-1])
@pytest.mark.parametrize("verb", BY_NAMESPACE)
async def test_a_namespace_that_is_no_path_segment_is_refused(verb: str, namespace: str) -> None:
    with pytest.raises(ConfigError, match="is no namespace"):
        await BY_NAMESPACE[verb](Client(Refusing(), field_manager="me"), namespace)


@pytest.mark.parametrize("subresource", ["..", "proxy/../..", "./log"])
async def test_a_subresource_does_not_leave_its_object(subresource: str) -> None:
    with pytest.raises(ConfigError, match="a subresource may not be"):
        await Client(Refusing(), field_manager="me").object_path(Pod, "a", namespace="shop", subresource=subresource)


def test_nobody_is_impersonated_without_a_name() -> None:
    with pytest.raises(ConfigError, match="the user to impersonate has no name"):
        Config(server="https://10.0.0.1").impersonating("")


@pytest.mark.parametrize("facts", [{"groups": ("ops",)}, {"uid": "1"}, {"extra": {"team": ("x",)}}], ids=str)
def test_groups_are_not_impersonated_without_a_user(facts: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="none is named"):
        Impersonation(**facts)
