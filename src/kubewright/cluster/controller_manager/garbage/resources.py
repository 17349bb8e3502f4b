"""The resources that the garbage collector and the namespace controller process, from discovery.

Each becomes a class for the metadata of its objects, because both controllers read only metadata. Called by `collector`
and `namespaces`.
"""

from __future__ import annotations

from kubewright.api.dynamic import Dynamic, PartialObjectMetadata, metadata_of
from kubewright.client.discovery import ApiResource, ApiResourceList

__all__ = ("deletable_namespaced_resources", "deletable_resources", "metadata_class")

_IGNORED_RESOURCES = {("", "events"), ("events.k8s.io", "events")}
"""DefaultIgnoredResources of upstream: events expire by themselves and have no owners."""


def metadata_class(resource: ApiResource) -> type[PartialObjectMetadata]:
    """The class of the metadata of a resource's objects."""
    return metadata_of(
        Dynamic(
            resource.gvk.api_version,
            resource.gvk.kind,
            plural=resource.gvr.resource,
            namespaced=resource.namespaced,
        )
    )


def deletable_resources(api_resources: ApiResourceList) -> tuple[ApiResource, ...]:
    """The preferred version of every resource that can be listed, watched and deleted."""
    return tuple(
        resource
        for resource in _preferred_versions(api_resources)
        if {"list", "watch", "delete"} <= set(resource.verbs)
        and (resource.gvr.group, resource.gvr.resource) not in _IGNORED_RESOURCES
    )


def deletable_namespaced_resources(api_resources: ApiResourceList) -> tuple[ApiResource, ...]:
    """The preferred version of every namespaced resource that can be listed and deleted."""
    return tuple(
        resource
        for resource in _preferred_versions(api_resources)
        if resource.namespaced and {"list", "delete"} <= set(resource.verbs)
    )


def _preferred_versions(api_resources: ApiResourceList) -> tuple[ApiResource, ...]:
    """Each resource once, in the version that the server prefers."""
    found: dict[tuple[str, str], ApiResource] = {}
    for resource in api_resources.items:
        found.setdefault((resource.gvr.group, resource.gvr.resource), resource)
    return tuple(found.values())
