"""The v3 documents of built-in paths: of group-versions such as `apis/apps/v1`, and of `api`, `apis/apps`, `version`.

Those of group-versions are package data (`k8s.documents`), recorded from a kube-apiserver with all features enabled;
what only such a server has is left out. The small ones, of discovery and the like, are made here; their components are
in `discovery.json.gz`. The results are shared: callers must not change them.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from kubewright.api.codec import decode_tree
from kubewright.apiserver.catalog import builtin_groups
from kubewright.apiserver.openapi.names import operation_name
from kubewright.apiserver.openapi.references import references
from kubewright.k8s.documents import component, openapi_document
from kubewright.k8s.release import KUBERNETES_MINOR_VERSION

__all__ = ("builtin_document", "builtin_paths", "referenced")

Tree = dict[str, Any]

_REFERENCE: Final = "#/components/schemas/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_DISCOVERY_MEDIA: Final = ("application/json", "application/vnd.kubernetes.protobuf", "application/yaml")
_SECURITY: Final = {
    "BearerToken": {
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "name": "authorization",
        "in": "header",
    }
}
_TEXT: Final = {"type": "string"}
_VERSION: Final = "io.k8s.apimachinery.pkg.version.Info"


def builtin_paths() -> Iterator[str]:
    """The built-in paths of the v3 index."""
    yield from (".well-known/openid-configuration", "api", "apis", "openid/v1/jwks", "version")
    for group in builtin_groups():
        name = group["metadata"].get("name", "")
        if name:
            yield f"apis/{name}"
        yield from (f"apis/{name}/{one['version']}" if name else f"api/{one['version']}" for one in group["versions"])


def builtin_document(path: str) -> Mapping[str, Any] | None:
    """The document of a built-in path; None for any other path."""
    if path not in set(builtin_paths()):
        return None
    if path.startswith("api/") or (path.count("/") == 2 and path.startswith("apis/")):
        return _group_version(path.partition("/")[2])
    match path:
        case "api":
            found = _operation("getCoreAPIVersions", "get available API versions", "core", f"{_META}APIVersions")
        case "apis":
            found = _operation("getAPIVersions", "get available API versions", "apis", f"{_META}APIGroupList")
        case "version":
            text = "get the version information for this server"
            found = _operation("getCodeVersion", text, "version", _VERSION, media=("application/json",))
        case ".well-known/openid-configuration":
            text = "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'"
            found = _operation(
                "getServiceAccountIssuerOpenIDConfiguration", text, "WellKnown", media=_DISCOVERY_MEDIA[:1]
            )
        case "openid/v1/jwks":
            text = "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)"
            found = _operation(
                "getServiceAccountIssuerOpenIDKeyset", text, "openid", media=("application/jwk-set+json",)
            )
        case _:
            group = path.removeprefix("apis/").removesuffix(".k8s.io")
            name = f"get{operation_name(group, capital=True)}APIGroup"
            found = _operation(name, "get information of a group", operation_name(group), f"{_META}APIGroup")
    return _document(path, found)


def referenced(*names: str) -> Mapping[str, Any]:
    """Components by name, with all they refer to."""
    found: Tree = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = component(name) or _discovery()[name]
            waiting.extend(reference.removeprefix(_REFERENCE) for reference in references(found[name]))
    return dict(sorted(found.items()))


@cache
def _discovery() -> Mapping[str, Any]:
    """The components of discovery, which no kind refers to."""
    file = resources.files(__package__) / "discovery.json.gz"
    found: Mapping[str, Any] = decode_tree(gzip.decompress(file.read_bytes()))
    return found


def _group_version(group_version: str) -> Mapping[str, Any]:
    document = openapi_document(group_version)
    return {**document, "paths": {path: _without_cbor(item) for path, item in document["paths"].items()}}


def _without_cbor(node: Any) -> Any:
    if isinstance(node, dict):
        return {name: _without_cbor(value) for name, value in node.items() if "cbor" not in name}
    return [_without_cbor(value) for value in node] if isinstance(node, list) else node


def _operation(
    name: str, text: str, tag: str, response: str = "", *, media: tuple[str, ...] = _DISCOVERY_MEDIA
) -> tuple[Tree, str]:
    schema = {"$ref": f"{_REFERENCE}{response}"} if response else _TEXT
    content = {kind: {"schema": schema} for kind in media}
    responses = {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}}
    return {"tags": [tag], "description": text, "operationId": name, "responses": responses}, response


def _document(path: str, operation: tuple[Tree, str]) -> Mapping[str, Any]:
    get, response = operation
    components: Tree = {"schemas": referenced(response)} if response else {}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": KUBERNETES_MINOR_VERSION},
        "paths": {f"/{path}/": {"get": get}},
        "components": {**components, "securitySchemes": _SECURITY},
    }
