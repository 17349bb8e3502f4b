"""Discovery: the resources a server has, by kind or by any name that kubectl accepts.

Aggregated discovery returns everything in two requests; older servers are asked for each group version. The list is
read when first needed, cached, and read once more when a lookup misses, because a CRD may have been installed since
(client-go: restmapper.DeferredDiscoveryRESTMapper). Names resolve as in kubectl: plural, singular, kind or short name,
alone or as `plural.group` or `plural.version.group`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, final

import msgspec

from kubewright.api.codec import decode_tree
from kubewright.api.kinds import GroupVersion, GroupVersionKind, GroupVersionResource
from kubewright.client.transport.responses import check
from kubewright.client.transport.transport import HttpRequest, Transport
from kubewright.errors import ApiError, NotFound, ServiceUnavailable, api_error

__all__ = ("ApiResource", "ApiResourceList", "Discovery")

_AGGREGATED = ",".join(
    (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        "application/json",
    )
)


@final
class ApiResource(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of the server, in one version (metav1.APIResource)."""

    gvr: GroupVersionResource
    gvk: GroupVersionKind
    singular: str = ""
    namespaced: bool = True
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    """Names of the subresources, such as `status`."""


@final
class ApiResourceList:
    """All resources of a server, in its own order: core first, then groups, preferred version first in each."""

    def __init__(self, resources: Iterable[ApiResource], *, stale: Iterable[GroupVersion] = ()) -> None:
        self.items = tuple(resources)
        self.stale = tuple(stale)
        """Group versions whose resources are unknown: an aggregated API server serves them, and it does not answer."""
        self._by_kind = {resource.gvk: resource for resource in reversed(self.items)}

    def by_kind(self, gvk: GroupVersionKind) -> ApiResource | None:
        """The resource that serves exactly this kind in this version."""
        return self._by_kind.get(gvk)

    def by_name(self, name: str) -> ApiResource | None:
        """The resource of a name, as kubectl resolves it."""
        wanted = name.lower()
        for matches in (self._matches_plural, self._matches_singular, self._matches_short):
            for resource in self.items:
                if matches(resource, wanted):
                    return resource
        return None

    def by_category(self, category: str) -> tuple[ApiResource, ...]:
        """The resources of a category such as `all`, one version of each."""
        found: dict[tuple[str, str], ApiResource] = {}
        for resource in self.items:
            if category in resource.categories:
                found.setdefault((resource.gvr.group, resource.gvr.resource), resource)
        return tuple(found.values())

    @staticmethod
    def _matches_plural(resource: ApiResource, wanted: str) -> bool:
        return _matches_name(resource, resource.gvr.resource, wanted)

    @staticmethod
    def _matches_singular(resource: ApiResource, wanted: str) -> bool:
        return _matches_name(resource, resource.singular or resource.gvk.kind.lower(), wanted) or _matches_name(
            resource, resource.gvk.kind.lower(), wanted
        )

    @staticmethod
    def _matches_short(resource: ApiResource, wanted: str) -> bool:
        return any(_matches_name(resource, short, wanted) for short in resource.short_names)


@final
class Discovery:
    """The server's resources, read lazily and refreshed once on a miss."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._resources: ApiResourceList | None = None
        self._lock = asyncio.Lock()
        self._generation = 0

    async def resources(self, *, refresh: bool = False) -> ApiResourceList:
        """All resources of the server; `refresh=True` reads them again."""
        seen = self._generation
        if self._resources is not None and not refresh:
            return self._resources
        async with self._lock:
            # Several callers that miss at once share one refresh.
            if self._resources is None or (refresh and seen == self._generation):
                self._resources = await self._read()
                self._generation += 1
            return self._resources

    async def find(self, gvk: GroupVersionKind) -> ApiResource:
        """The resource of a kind; NotFound, naming it, if the server has no such kind."""
        found = (await self.resources()).by_kind(gvk)
        if found is None:
            found = (await self.resources(refresh=True)).by_kind(gvk)
        if found is None:
            raise _no_such_kind(f"the server has no kind {gvk.kind} in {gvk.api_version}")
        return found

    async def resolve(self, name: str) -> ApiResource:
        """The resource of a name such as `deploy`, `deployments`, `Deployment` or `deployments.apps`."""
        found = (await self.resources()).by_name(name)
        if found is None:
            found = (await self.resources(refresh=True)).by_name(name)
        if found is None:
            raise _no_such_kind(f'the server has no resource type "{name}"')
        return found

    async def _read(self) -> ApiResourceList:
        core = await self._get("/api")
        if core.get("kind") == "APIGroupDiscoveryList":
            groups = await self._get("/apis")
            return ApiResourceList([*_aggregated(core), *_aggregated(groups)], stale=_stale(groups))
        groups = await self._get("/apis")
        versions = [("", str(version)) for version in core.get("versions") or ()]
        versions += [pair for group in groups.get("groups") or () for pair in _versions_in_order(group)]
        wanted = [GroupVersion(group, version) for group, version in versions]
        lists = await asyncio.gather(*(self._legacy_resources(version) for version in wanted))
        stale = [version for version, resources in zip(wanted, lists, strict=True) if resources is None]
        return ApiResourceList([resource for resources in lists for resource in resources or ()], stale=stale)

    async def _legacy_resources(self, version: GroupVersion) -> list[ApiResource] | None:
        path = f"/apis/{version.group}/{version.version}" if version.group else f"/api/{version.version}"
        try:
            return _resource_list(version, await self._get(path))
        except NotFound:
            return []
        except ServiceUnavailable:
            return None  # one unavailable aggregated API server must not fail discovery of all others

    async def _get(self, path: str) -> dict[str, Any]:
        request = HttpRequest(method="GET", path=path, headers=(("Accept", _AGGREGATED),))
        response = await self._transport.send(request)
        check(response, request)
        tree = decode_tree(response.body)
        return tree if isinstance(tree, dict) else {}


def _matches_name(resource: ApiResource, name: str, wanted: str) -> bool:
    """Whether `wanted` is the name alone, `name.group` or `name.version.group`."""
    if wanted == name:
        return True
    if not wanted.startswith(f"{name}."):
        return False
    rest = wanted[len(name) + 1 :]
    group, version = resource.gvr.group, resource.gvr.version
    return rest in (group, f"{version}.{group}") or (not group and rest in (version, f"{version}."))


def _aggregated(document: dict[str, Any]) -> list[ApiResource]:
    found = []
    for group in document.get("items") or ():
        group_name = group.get("metadata", {}).get("name", "")
        for version in group.get("versions") or ():
            for entry in version.get("resources") or ():
                kind = entry.get("responseKind") or {}
                found.append(
                    ApiResource(
                        gvr=GroupVersionResource(group_name, version["version"], entry["resource"]),
                        gvk=GroupVersionKind(
                            # Empty if they equal the group and version of the list.
                            kind.get("group") or group_name,
                            kind.get("version") or version["version"],
                            kind.get("kind", ""),
                        ),
                        singular=entry.get("singularResource", ""),
                        namespaced=entry.get("scope") == "Namespaced",
                        verbs=tuple(entry.get("verbs") or ()),
                        short_names=tuple(entry.get("shortNames") or ()),
                        categories=tuple(entry.get("categories") or ()),
                        subresources=tuple(sub["subresource"] for sub in entry.get("subresources") or ()),
                    )
                )
    return found


def _stale(document: dict[str, Any]) -> list[GroupVersion]:
    return [
        GroupVersion(group.get("metadata", {}).get("name", ""), version["version"])
        for group in document.get("items") or ()
        for version in group.get("versions") or ()
        if version.get("freshness") == "Stale"
    ]


def _versions_in_order(group: dict[str, Any]) -> Sequence[tuple[str, str]]:
    preferred = (group.get("preferredVersion") or {}).get("version")
    versions = [version["version"] for version in group.get("versions") or ()]
    versions.sort(key=lambda version: version != preferred)  # stable: the rest stays in the server's order
    return [(group["name"], version) for version in versions]


def _resource_list(version: GroupVersion, document: dict[str, Any]) -> list[ApiResource]:
    entries = document.get("resources") or ()
    subresources: dict[str, list[str]] = {}
    for entry in entries:
        name, slash, sub = entry["name"].partition("/")
        if slash:
            subresources.setdefault(name, []).append(sub)
    return [
        ApiResource(
            gvr=GroupVersionResource(version.group, version.version, entry["name"]),
            gvk=GroupVersionKind(
                entry.get("group") or version.group, entry.get("version") or version.version, entry["kind"]
            ),
            singular=entry.get("singularName", ""),
            namespaced=bool(entry.get("namespaced")),
            verbs=tuple(entry.get("verbs") or ()),
            short_names=tuple(entry.get("shortNames") or ()),
            categories=tuple(entry.get("categories") or ()),
            subresources=tuple(subresources.get(entry["name"], ())),
        )
        for entry in entries
        if "/" not in entry["name"]
    ]


def _no_such_kind(message: str) -> ApiError:
    return api_error(f"{message}; install its CRD or check the spelling", code=404, reason="NotFound")
