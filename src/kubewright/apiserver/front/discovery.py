"""Discovery: the groups, versions and resources of the server, aggregated and unaggregated.

`/api` and `/apis` serve aggregated discovery (APIGroupDiscoveryList, with an ETag) to clients that accept it; below
them there is unaggregated discovery only. Documents are made from the catalog and cached until it changes. Upstream:
k8s.io/apiserver/pkg/endpoints/discovery, and its aggregated/handler.go.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, final

from kubewright.api.kinds import version_key
from kubewright.apiserver.catalog import Catalog, builtin_groups
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.negotiation import PROTOBUF, negotiate
from kubewright.apiserver.wire.protobuf import encode
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.responses import Response, encode_line, path_not_found
from kubewright.apiserver.wire.users import User

__all__ = ("AggregatedGroups", "Discovery")

_GROUP: Final = "apidiscovery.k8s.io"
_FIRST_GROUP: Final = "apiregistration.k8s.io"
"""The group of APIServices, which has none itself and comes first."""
_BUILTIN_PRIORITY: Final = 18000
_CUSTOM_PRIORITY: Final = (1000, 100)
"""Priorities of a version that has no APIService yet."""


class AggregatedGroups(Protocol):
    """The groups that aggregated API servers serve."""

    def groups(self) -> list[dict[str, Any]]:
        """Their aggregated discovery."""
        ...

    def priorities(self) -> Mapping[tuple[str, str], tuple[int, int]]:
        """The priorities of each group and version that has an APIService: of the group, and of the version."""
        ...

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call the listener whenever either changes."""
        ...


@final
class Discovery:
    """Serves `/api` and `/apis`."""

    def __init__(self, catalog: Catalog, aggregator: AggregatedGroups, *, address: Callable[[], str]) -> None:
        """`address` is host and port of this server, for `/api`."""
        self._catalog = catalog
        self._aggregator = aggregator
        self._address = address
        self._cache: dict[str, bytes] = {}
        self._generation = 0
        aggregator.subscribe(self._forget)

    def _forget(self) -> None:
        self._cache = {}

    def handle(self, request: Request, user: User) -> Response:
        """The response to a discovery path, or 404."""
        if self._generation != self._catalog.generation:
            self._cache, self._generation = {}, self._catalog.generation
        path = "/" + request.path.strip("/")
        if path in ("/api", "/apis"):
            version = _aggregated_version(request.header("accept"))
            if version:
                return self._aggregated(request, path, version)
        body = self._cache.get(path)
        if body is None:
            tree = self._unaggregated(path)
            if tree is None:
                return path_not_found()
            body = self._cache[path] = encode_line(tree)
        accept = request.header("accept")
        if PROTOBUF in accept and negotiate(accept, transforms=False).media == PROTOBUF:
            tree = decode_json(body)
            return Response(200, encode(tree, tree.get("apiVersion", ""), tree["kind"]), PROTOBUF)
        return Response(200, body)

    # aggregated discovery

    def _aggregated(self, request: Request, path: str, version: str) -> Response:
        key = f"{path}|{version}"
        body = self._cache.get(key)
        if body is None:
            items = [group for group in self._groups() if bool(group["metadata"].get("name")) == (path == "/apis")]
            tree = {
                "kind": "APIGroupDiscoveryList",
                "apiVersion": f"{_GROUP}/{version}",
                "metadata": {},
                "items": items,
            }
            body = self._cache[key] = encode_line(tree)
        content_type = f"application/json;g={_GROUP};v={version};as=APIGroupDiscoveryList"
        etag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
        headers = {"ETag": etag, "Vary": "Accept"}
        if request.header("if-none-match") == etag:
            return Response(304, b"", "", headers)
        return Response(200, body, content_type, headers)

    def _groups(self, *, legacy: bool = False) -> list[dict[str, Any]]:
        """All groups with their versions, by priority. Unaggregated discovery (`legacy`) sorts groups of the same
        priority by the names of their APIServices, which begin with the version."""
        priorities = self._aggregator.priorities()
        found: dict[str, dict[str, tuple[int, int, dict[str, Any]]]] = {}
        for name, version, fallback in (*self._local_versions(), *self._aggregated_versions()):
            priority = priorities.get((name, version["version"]), fallback)
            found.setdefault(name, {})[version["version"]] = (*priority, version)
        ordered = []
        for name, versions in found.items():
            highest = max(priority for priority, _, _ in versions.values())
            tie = min(f"{one}.{name}" for one, item in versions.items() if item[0] == highest) if legacy else name
            inner = sorted(versions.items(), key=lambda item: (-item[1][1], version_key(item[0])))
            group = {"metadata": {"name": name} if name else {}, "versions": [item[2] for _, item in inner]}
            ordered.append((name != _FIRST_GROUP, -highest, tie, group))
        return [group for *_, group in sorted(ordered, key=lambda item: item[:3])]

    def _local_versions(self) -> Iterator[tuple[str, dict[str, Any], tuple[int, int]]]:
        """The versions of this server: group, version, and the priority unless an APIService has another."""
        for place, group in enumerate(builtin_groups()):
            for order, version in enumerate(group["versions"]):
                yield group["metadata"].get("name", ""), version, (_BUILTIN_PRIORITY - place, -order)
        custom: dict[tuple[str, str], list[Resource]] = {}
        for resource in self._catalog.custom():
            custom.setdefault((resource.kind.group, resource.kind.version), []).append(resource)
        for (name, number), resources in custom.items():
            listed = [_resource_discovery(resource) for resource in sorted(resources, key=lambda one: one.plural)]
            yield name, {"version": number, "resources": listed, "freshness": "Current"}, _CUSTOM_PRIORITY

    def _aggregated_versions(self) -> Iterator[tuple[str, dict[str, Any], tuple[int, int]]]:
        for group in self._aggregator.groups():
            for version in group["versions"]:
                yield group["metadata"]["name"], version, _CUSTOM_PRIORITY

    # unaggregated discovery

    def _unaggregated(self, path: str) -> dict[str, Any] | None:
        match path.strip("/").split("/"):
            case ["api"]:
                address = {"clientCIDR": "0.0.0.0/0", "serverAddress": self._address()}
                return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}
            case ["apis"]:
                groups = [_group(group) for group in self._groups(legacy=True) if group["metadata"].get("name")]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case ["apis", name]:
                for group in self._groups():
                    if group["metadata"].get("name") == name:
                        return {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}
            case ["api", version]:
                return self._resources("", version)
            case ["apis", name, version]:
                return self._resources(name, version)
        return None

    def _resources(self, group: str, version: str) -> dict[str, Any] | None:
        found = [item for item in self._catalog if (item.kind.group, item.kind.version) == (group, version)]
        if not found:
            return None
        items = [entry for resource in sorted(found, key=lambda r: r.plural) for entry in _api_resources(resource)]
        api_version = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": items}


def _aggregated_version(accept: str) -> str:
    for clause in accept.split(","):
        parameters = {part.strip() for part in clause.split(";")}
        if "as=APIGroupDiscoveryList" in parameters and f"g={_GROUP}" in parameters:
            for version in ("v2", "v2beta1"):
                if f"v={version}" in parameters and "application/json" in parameters:
                    return version
    return ""


def _group(group: Mapping[str, Any]) -> dict[str, Any]:
    name = group["metadata"]["name"]
    versions = [
        {"groupVersion": f"{name}/{version['version']}", "version": version["version"]} for version in group["versions"]
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource_discovery(resource: Resource) -> dict[str, Any]:
    """The APIResourceDiscovery of a custom resource."""
    kind = resource.kind
    found: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        found["shortNames"] = list(resource.short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    if resource.subresources:
        found["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": {"group": sub.kind.group, "version": sub.kind.version, "kind": sub.kind.kind},
                "verbs": list(sub.verbs),
            }
            for sub in resource.subresources.values()
        ]
    return found


def _api_resources(resource: Resource) -> Iterable[dict[str, Any]]:
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if not {"create", "get"}.isdisjoint(resource.verbs) and "list" in resource.verbs:
        text = f"{resource.storage_version}/{resource.kind.kind}".encode()
        entry["storageVersionHash"] = _hash(text)
    yield entry
    for sub in resource.subresources.values():
        found: dict[str, Any] = {
            "name": f"{resource.plural}/{sub.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": sub.kind.kind,
            "verbs": list(sub.verbs),
        }
        if (sub.kind.group, sub.kind.version) != (resource.kind.group, resource.kind.version):
            found["group"], found["version"] = sub.kind.group, sub.kind.version
        yield found


def _hash(text: bytes) -> str:
    return base64.b64encode(hashlib.sha256(text).digest()[:8]).decode()
