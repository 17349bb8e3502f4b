"""What a method, a path and a query mean in Kubernetes' terms."""

from __future__ import annotations

import pytest

from kubewright.apiserver.wire.requests import parse_query, request_info

CASES = [
    ("GET", "/api/v1/pods", "", "list //v1 pods"),
    ("GET", "/api/v1/pods", "watch=1", "watch //v1 pods"),
    ("GET", "/api/v1/pods", "watch=true", "watch //v1 pods"),
    ("GET", "/api/v1/namespaces/shop/pods", "", "list /v1 shop pods"),
    ("GET", "/api/v1/namespaces/shop/pods/web", "watch=true", "get /v1 shop pods web"),
    ("GET", "/api/v1/namespaces/shop/pods/web/log", "", "get /v1 shop pods web log"),
    ("GET", "/api/v1/namespaces/shop/pods/web/proxy/a/b", "", "get /v1 shop pods web proxy a/b"),
    ("GET", "/api/v1/namespaces/shop", "", "get /v1 shop namespaces shop"),
    ("PUT", "/api/v1/namespaces/shop/finalize", "", "update /v1 shop namespaces shop finalize"),
    ("PATCH", "/api/v1/namespaces/shop/status", "", "patch /v1 shop namespaces shop status"),
    ("DELETE", "/apis/apps/v1/namespaces/shop/deployments", "", "deletecollection apps/v1 shop deployments"),
    ("DELETE", "/apis/apps/v1/namespaces/shop/deployments/web", "", "delete apps/v1 shop deployments web"),
    ("POST", "/apis/apps/v1/namespaces/shop/deployments", "", "create apps/v1 shop deployments"),
    ("HEAD", "/apis/apps/v1/namespaces/shop/deployments/web", "", "get apps/v1 shop deployments web"),
    ("GET", "/api/v1/watch/namespaces/shop/pods", "", "watch /v1 shop pods"),
    ("GET", "/api/v1/pods", "fieldSelector=metadata.name%3Dweb", "list /v1 pods web"),
    ("GET", "/apis/example.io/v1//names", "", "get example.io/v1 names"),
    ("OPTIONS", "/api/v1/pods", "", " /v1 pods"),
    ("GET", "/api/v1/watch/pods", "fieldSelector=metadata.name%3Dweb", "watch /v1 pods"),
]


@pytest.mark.parametrize(("method", "path", "query", "meaning"), CASES)
def test_a_path_has_a_request_info(method: str, path: str, query: str, meaning: str) -> None:
    target = request_info(method, path, parse_query(query))

    group_version = f"{target.group}/{target.version}"
    parts = (target.namespace, target.resource, target.name, target.subresource, target.rest)
    said = " ".join((target.verb, group_version, *(part for part in parts if part)))
    assert said == meaning.replace("//v1", "/v1")


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/openapi/v3"]
)
def test_other_paths_are_non_resource_paths(path: str) -> None:
    target = request_info("GET", path, {})

    assert not target.is_resource
    assert (target.verb, target.path) == ("get", path)


def test_the_first_value_of_a_parameter_counts() -> None:
    assert parse_query("a=1&a=2&b=") == {"a": "1", "b": ""}
