"""Every resource the server serves: the built-in ones, and the custom ones of established CRDs.

The router looks up each request by group, version and plural. The built-in resources come from the discovery document
of the Kubernetes release the kinds were generated from, without the versions that kube-apiserver does not serve by
default. The CRD controller adds and withdraws custom resources; `generation` rises each time, so that discovery,
OpenAPI and webhooks know when what they have computed is stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, final

from kubewright.api.kinds import GroupVersion, GroupVersionKind
from kubewright.apiserver.apiextensions.definition_strategy import DefinitionStrategy
from kubewright.apiserver.builtin.conversion import storage_version
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.builtin.strategy import BuiltinStrategy
from kubewright.apiserver.builtin.warnings.kinds import deprecation
from kubewright.apiserver.kinds.resources import Resource, Subresource
from kubewright.k8s.documents import discovery

__all__ = ("Catalog", "builtin_groups")

_STABLE: Final = ("v1", "v2")


@cache
def builtin_groups() -> tuple[Mapping[str, Any], ...]:
    """Aggregated discovery of the built-in groups, with the versions served by default."""
    found = []
    for group in discovery():
        versions = [version for version in group["versions"] if version["version"] in _STABLE]
        if versions:
            found.append({**group, "versions": versions})
    return tuple(found)


@final
class Catalog:
    """The resources, by group, version and plural."""

    def __init__(self, services: ServiceAllocator) -> None:
        self.generation = 1
        """Rises with each change."""
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self._custom: dict[str, tuple[Resource, ...]] = {}
        for group in builtin_groups():
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                for described in version["resources"]:
                    self._add(_builtin(name, version["version"], described, services))

    def _add(self, resource: Resource) -> None:
        kind = resource.kind
        self._resources[kind.group, kind.version, resource.plural] = resource

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource of a group, version and plural; None if it is not served."""
        return self._resources.get((group, version, plural))

    def builtin(self, group: str, plural: str) -> Resource:
        """A built-in resource in its version v1, which is always served."""
        return self._resources[group, "v1", plural]

    def has(self, group_version: GroupVersion) -> bool:
        """Whether any resource of a group and version is served."""
        return any((key[0], key[1]) == (group_version.group, group_version.version) for key in self._resources)

    def has_built_in(self, group: str) -> bool:
        """Whether a group is built in, in any version."""
        return any(group == found["metadata"].get("name", "") for found in builtin_groups())

    def of_kind(self, kind: GroupVersionKind) -> Resource | None:
        """The resource of a kind."""
        for resource in self._resources.values():
            if resource.kind == kind:
                return resource
        return None

    def custom(self) -> Iterator[Resource]:
        """Every custom resource, in every served version."""
        for resources in self._custom.values():
            yield from resources

    def serve(self, definition: str, resources: Iterable[Resource]) -> None:
        """Serve these resources of a CRD, instead of those before.

        None is served in a built-in group: kube-apiserver looks for what is in those in itself alone, in any version. A
        definition may have the group and plural of roles, and has to have nothing of theirs.
        """
        self._remove(definition)
        self._custom[definition] = tuple(item for item in resources if not self.has_built_in(item.kind.group))
        for resource in self._custom[definition]:
            self._add(resource)
        self.generation += 1

    def withdraw(self, definition: str) -> None:
        """Serve the resources of a CRD no longer."""
        if definition in self._custom:
            self._remove(definition)
            self.generation += 1

    def _remove(self, definition: str) -> None:
        for resource in self._custom.pop(definition, ()):
            kind = resource.kind
            self._resources.pop((kind.group, kind.version, resource.plural), None)

    def __iter__(self) -> Iterator[Resource]:
        return iter(tuple(self._resources.values()))


def _builtin(group: str, version: str, described: Mapping[str, Any], services: ServiceAllocator) -> Resource:
    response = described["responseKind"]
    kind = GroupVersionKind(group, version, response["kind"])
    storage = GroupVersionKind.of(storage_version(kind.group_kind), kind.kind)
    strategy = BuiltinStrategy(kind, storage, services)
    return Resource(
        kind=kind,
        plural=described["resource"],
        singular=described.get("singularResource", ""),
        namespaced=described["scope"] == "Namespaced",
        verbs=tuple(described["verbs"]),
        strategy=DefinitionStrategy(strategy) if kind.kind == "CustomResourceDefinition" else strategy,
        short_names=tuple(described.get("shortNames", ())),
        categories=tuple(described.get("categories", ())),
        list_kind=f"{kind.kind}List",
        subresources={
            item["subresource"]: Subresource(
                item["subresource"],
                GroupVersionKind(
                    item["responseKind"].get("group") or group,
                    item["responseKind"].get("version") or version,
                    item["responseKind"]["kind"],
                ),
                tuple(item["verbs"]),
            )
            for item in described.get("subresources", ())
        },
        storage_version=storage.api_version,
        deprecation=deprecation(kind),
        schema_id=0 if storage == kind else 1,
    )
