"""The kinds a housekeeper has to care for: everything the server lists and deletes, custom resources included.

Found by discovery and turned into classes for metadata alone, which is all that garbage collection and namespace
deletion look at. Called by `garbage` and `namespaces`.
"""

from __future__ import annotations

from kubewright.api.dynamic import Dynamic, PartialObjectMetadata, metadata_of
from kubewright.client.discovery import ApiResource, ApiResourceList

__all__ = ("class_of", "collectable", "deletable_in_namespaces")

_NOT_COLLECTED = {("", "events"), ("events.k8s.io", "events")}
"""They end by themselves after an hour, there are many, and nobody owns them."""


def class_of(resource: ApiResource) -> type[PartialObjectMetadata]:
    """The class for the metadata of a resource's objects."""
    return metadata_of(
        Dynamic(
            resource.gvk.api_version,
            resource.gvk.kind,
            plural=resource.gvr.resource,
            namespaced=resource.namespaced,
        )
    )


def collectable(resource_list: ApiResourceList) -> tuple[ApiResource, ...]:
    """One version of every resource that can be listed, watched and deleted."""
    return tuple(
        resource
        for resource in _once(resource_list)
        if {"list", "watch", "delete"} <= set(resource.verbs)
        and (resource.gvr.group, resource.gvr.resource) not in _NOT_COLLECTED
    )


def deletable_in_namespaces(resource_list: ApiResourceList) -> tuple[ApiResource, ...]:
    """One version of every resource that has to go with its namespace."""
    return tuple(
        resource
        for resource in _once(resource_list)
        if resource.namespaced and {"list", "delete"} <= set(resource.verbs)
    )


def _once(resource_list: ApiResourceList) -> tuple[ApiResource, ...]:
    """Of each resource the version the server prefers."""
    found: dict[tuple[str, str], ApiResource] = {}
    for resource in resource_list.items:
        found.setdefault((resource.gvr.group, resource.gvr.resource), resource)
    return tuple(found.values())
