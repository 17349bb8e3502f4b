"""Discovery: which groups, versions and resources there are, in the old form and the aggregated one.

`/api` and `/apis` answer in the form the `Accept` header asks for; the rest is old form only. Everything is made from
the catalog and kept until the catalog changes, with an ETag so that clients need not read it again.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, final

from kubewright.api.kinds import version_key
from kubewright.apiserver.answers import Answer, encode_line
from kubewright.apiserver.catalog import Catalog, builtin_groups
from kubewright.apiserver.requests import Request
from kubewright.apiserver.resources import Resource

__all__ = ("Discovery",)

_GROUP: Final = "apidiscovery.k8s.io"


@final
class Discovery:
    """Answers of `/api` and `/apis`."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._made: dict[str, bytes] = {}
        self._generation = 0
        self.address = "127.0.0.1"
        self.elsewhere: Callable[[], list[dict[str, Any]]] = list
        """The groups other servers serve."""

    def forget(self) -> None:
        """What other servers serve has changed."""
        self._made = {}

    def answer(self, request: Request) -> Answer:
        """The answer to a discovery path, or 404."""
        if self._generation != self._catalog.generation:
            self._made, self._generation = {}, self._catalog.generation
        path = "/" + request.path.strip("/")
        if path in ("/api", "/apis"):
            version = _aggregated_version(request.header("accept"))
            if version:
                return self._aggregated(request, path, version)
        body = self._made.get(path)
        if body is None:
            tree = self._old_form(path)
            if tree is None:
                return Answer(404, b"404 page not found\n", "text/plain; charset=utf-8")
            body = self._made[path] = encode_line(tree)
        return Answer(200, body)

    # the aggregated form

    def _aggregated(self, request: Request, path: str, version: str) -> Answer:
        key = f"{path}|{version}"
        body = self._made.get(key)
        if body is None:
            items = [group for group in self._groups() if bool(group["metadata"].get("name")) == (path == "/apis")]
            tree = {
                "kind": "APIGroupDiscoveryList",
                "apiVersion": f"{_GROUP}/{version}",
                "metadata": {},
                "items": items,
            }
            body = self._made[key] = encode_line(tree)
        content_type = f"application/json;g={_GROUP};v={version};as=APIGroupDiscoveryList"
        tag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
        headers = {"ETag": tag, "Vary": "Accept"}
        if request.header("if-none-match") == tag:
            return Answer(304, b"", "", headers)
        return Answer(200, body, content_type, headers)

    def _groups(self) -> list[dict[str, Any]]:
        custom: dict[str, dict[str, list[Resource]]] = {}
        for resource in self._catalog.custom():
            custom.setdefault(resource.kind.group, {}).setdefault(resource.kind.version, []).append(resource)
        found = [dict(group) for group in builtin_groups()]
        known = {group["metadata"].get("name", ""): group for group in found}
        for name, versions in sorted(custom.items()):
            described = [
                {
                    "version": version,
                    "resources": [_described(resource) for resource in sorted(resources, key=lambda r: r.plural)],
                    "freshness": "Current",
                }
                for version, resources in sorted(versions.items(), key=lambda item: version_key(item[0]))
            ]
            if name in known:
                known[name]["versions"] = [*known[name]["versions"], *described]
            else:
                found.append({"metadata": {"name": name, "creationTimestamp": None}, "versions": described})
        for group in self.elsewhere():
            name = group["metadata"]["name"]
            if name in known:
                known[name]["versions"] = [*known[name]["versions"], *group["versions"]]
            else:
                found.append(group)
        return found

    # the old form

    def _old_form(self, path: str) -> dict[str, Any] | None:
        match path.strip("/").split("/"):
            case ["api"]:
                address = {"clientCIDR": "0.0.0.0/0", "serverAddress": self.address}
                return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}
            case ["apis"]:
                groups = [_group(group) for group in self._groups() if group["metadata"].get("name")]
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
        items = [entry for resource in sorted(found, key=lambda r: r.plural) for entry in _old_entries(resource)]
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


def _group(described: Mapping[str, Any]) -> dict[str, Any]:
    name = described["metadata"]["name"]
    versions = [
        {"groupVersion": f"{name}/{version['version']}", "version": version["version"]}
        for version in described["versions"]
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _described(resource: Resource) -> dict[str, Any]:
    """A custom resource in the aggregated form."""
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


def _old_entries(resource: Resource) -> Iterable[dict[str, Any]]:
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
