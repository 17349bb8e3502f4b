"""Reads the discovery documents of aggregated API servers: each field with its type, or not at all.

Aggregated discovery of all groups is one document, so what one extension server says about itself reaches every client.
One field of a wrong type would make it unreadable to all of them. kube-apiserver decodes these documents too, and takes
a server whose document it cannot read for stale. Pure; `api_services` fetches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kubewright.apiserver.kinds.resources import Tree

__all__ = ("aggregated_version", "unaggregated_version")


class _Kind(Struct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Subresource(Struct, frozen=True, rename="camel"):
    subresource: str = ""
    response_kind: _Kind | None = None
    accepted_types: list[_Kind] | None = None
    verbs: list[str] | None = None

    def tree(self) -> Tree:
        return {
            "subresource": self.subresource,
            **_given(responseKind=self.response_kind, acceptedTypes=self.accepted_types),
            "verbs": self.verbs,
        }


class _Resource(Struct, frozen=True, rename="camel"):
    resource: str = ""
    response_kind: _Kind | None = None
    scope: str = ""
    singular_resource: str = ""
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None
    subresources: list[_Subresource] | None = None

    def tree(self) -> Tree:
        return {
            "resource": self.resource,
            "responseKind": msgspec.to_builtins(self.response_kind or _Kind()),
            "scope": self.scope,
            "singularResource": self.singular_resource,
            "verbs": self.verbs,
            **_given(shortNames=self.short_names, categories=self.categories),
            **_given(subresources=[one.tree() for one in self.subresources or ()]),
        }


class _Version(Struct, frozen=True):
    version: str = ""
    resources: list[_Resource] | None = None


class _Meta(Struct, frozen=True):
    name: str = ""


class _Group(Struct, frozen=True):
    metadata: _Meta | None = None
    versions: list[_Version] | None = None


class _GroupDiscoveryList(Struct, frozen=True):
    items: list[_Group] | None = None


class _ApiResource(Struct, frozen=True, rename="camel"):
    name: str = ""
    singular_name: str = ""
    namespaced: bool = False
    group: str = ""
    version: str = ""
    kind: str = ""
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None


class _ApiResourceList(Struct, frozen=True):
    resources: list[_ApiResource] | None = None


_decode_aggregated: Final = msgspec.json.Decoder(_GroupDiscoveryList).decode
_decode_unaggregated: Final = msgspec.json.Decoder(_ApiResourceList).decode
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)


def _given(**fields: Any) -> Tree:
    """The fields that have a value, as JSON."""
    return {name: msgspec.to_builtins(value) for name, value in fields.items() if value}


def _version_tree(version: str, resources: Iterable[Tree]) -> Tree:
    return {"version": version, **_given(resources=list(resources))}


def aggregated_version(body: bytes, group: str, version: str) -> Tree | None:
    """A group's version in an APIGroupDiscoveryList, without resources if it is not there; None if it is none."""
    try:
        document = _decode_aggregated(body)
    except _UNREADABLE:
        return None
    for item in document.items or ():
        if item.metadata is not None and item.metadata.name == group:
            for one in item.versions or ():
                if one.version == version:
                    return _version_tree(version, (resource.tree() for resource in one.resources or ()))
    return _version_tree(version, ())


def unaggregated_version(body: bytes, version: str) -> Tree | None:
    """The version whose APIResourceList this is; None if it is none."""
    try:
        document = _decode_unaggregated(body)
    except _UNREADABLE:
        return None
    found: dict[str, _Resource] = {}
    subresources: dict[str, list[_Subresource]] = {}
    for item in document.resources or ():
        name, _, sub = item.name.partition("/")
        kind = _Kind(item.group, item.version, item.kind)
        if sub:
            found.setdefault(name, _Resource(resource=name))
            subresources.setdefault(name, []).append(_Subresource(sub, kind, None, item.verbs or []))
            continue
        found[name] = _Resource(
            resource=name,
            response_kind=kind,
            scope="Namespaced" if item.namespaced else "Cluster",
            singular_resource=item.singular_name,
            verbs=item.verbs or [],
            short_names=item.short_names,
            categories=item.categories,
        )
    whole = (replace(resource, subresources=subresources.get(name)) for name, resource in found.items())
    return _version_tree(version, (resource.tree() for resource in whole))
