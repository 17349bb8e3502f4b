"""Paths, queries and headers of requests, from a verb, a kind and a name.

No I/O, so that every request can be tested without a server. `client`, `pods` and the cache call this; it knows the
layout of the Kubernetes API and no HTTP library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, final
from urllib.parse import quote

import msgspec

from kubewright.api.kinds import GroupVersionResource
from kubewright.api.resource import Definition
from kubewright.api.selectors import FieldSelector, Selector
from kubewright.errors import ConfigError

__all__ = (
    "ALL_NAMESPACES",
    "FieldValidation",
    "PatchType",
    "Propagation",
    "Query",
    "Route",
    "VersionMatch",
    "accept_header",
    "delete_options",
    "list_query",
    "patch_content_type",
    "pods_route",
    "write_query",
)

PatchType = Literal["json", "merge", "strategic", "apply"]
FieldValidation = Literal["Strict", "Warn", "Ignore"]
Propagation = Literal["Background", "Foreground", "Orphan"]
VersionMatch = Literal["Exact", "NotOlderThan"]
Query = tuple[tuple[str, str], ...]

ALL_NAMESPACES: Final = "*"
"""As the namespace of a list or a watch: every one. No namespace is called so."""
_DOTS = (".", "..")
_PLAIN = re.compile(r"[A-Za-z0-9._~-]+")

_PATCH_TYPES: dict[PatchType, str] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",  # JSON is YAML
}


@final
class Route(msgspec.Struct, frozen=True):
    """The paths of one resource."""

    gvr: GroupVersionResource
    namespaced: bool

    @classmethod
    def of(cls, definition: Definition) -> Route:
        """From the definition of a class."""
        return cls(definition.gvr, definition.namespaced)

    def collection(self, namespace: str | None) -> str:
        """The path of the collection; of all namespaces if none is named."""
        group, version = self.gvr.group, self.gvr.version
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        if self.namespaced and namespace:
            return f"{root}/namespaces/{_segment(namespace, 'namespace')}/{self.gvr.resource}"
        return f"{root}/{self.gvr.resource}"

    def listing(self, namespace: str | None) -> str:
        """The path of a list or a watch; of all namespaces if none is named, or `*` is."""
        return self.collection(None if namespace == ALL_NAMESPACES else namespace)

    def object(self, namespace: str | None, name: str, subresource: str | None = None) -> str:
        """The path of one object, or of a subresource of it."""
        if not name:
            raise ConfigError(f"{self.gvr.resource}: the name is empty; give the name of an object")
        if self.namespaced and not namespace:
            raise ConfigError(f"{self.gvr.resource} {name}: this kind is namespaced; give a namespace")
        path = f"{self.collection(namespace)}/{_segment(name, 'name')}"
        if not subresource:
            return path
        for part in subresource.split("/"):  # a proxy has a path behind it
            if part in _DOTS:
                raise ConfigError(f"{self.gvr.resource} {name}: a subresource may not be `{part}`; give its name")
        return f"{path}/{subresource}"


def _segment(text: str, what: str) -> str:
    """A name in a path. As in client-go (`IsValidPathSegmentName`), one that would change the path is refused."""
    # Nearly every name needs no quoting, and quoting costs more than the rest of the path.
    if _PLAIN.fullmatch(text) and text not in _DOTS:
        return text
    if text in _DOTS or "/" in text or "%" in text:
        raise ConfigError(
            f"{text!r} is no {what}: a {what} may not be `.` or `..` nor contain `/` or `%`; check where it comes from"
        )
    return quote(text, safe="")


def pods_route() -> Route:
    """The route of pods."""
    return Route(GroupVersionResource("", "v1", "pods"), True)


def accept_header(definition: Definition | None, *, listing: bool = False) -> str:
    """The media type to ask for: JSON, or PartialObjectMetadata as JSON."""
    if definition is None or not definition.metadata_only:
        return "application/json"
    kind = "PartialObjectMetadataList" if listing else "PartialObjectMetadata"
    # Plain JSON is the fallback for servers that cannot return metadata alone; the codec skips the rest.
    return f"application/json;as={kind};g=meta.k8s.io;v=v1,application/json;q=0.9"


def patch_content_type(patch_type: PatchType) -> str:
    """The content type of a patch."""
    return _PATCH_TYPES[patch_type]


def list_query(
    *,
    labels: str | Mapping[str, str] | Selector | None = None,
    fields: str | Mapping[str, str] | FieldSelector | None = None,
    limit: int | None = None,
    continue_token: str | None = None,
    resource_version: str | None = None,
    version_match: VersionMatch | None = None,
) -> Query:
    """The query of a list, a watch or a deletecollection."""
    pairs: list[tuple[str, str]] = []
    if labels is not None and (text := selector_text(labels)):
        pairs.append(("labelSelector", text))
    if fields is not None and (text := selector_text(fields)):
        pairs.append(("fieldSelector", text))
    if limit is not None:
        pairs.append(("limit", str(limit)))
    if continue_token:
        pairs.append(("continue", continue_token))
    if resource_version is not None and not continue_token:  # a token carries its own version
        pairs.append(("resourceVersion", resource_version))
        if version_match is not None:
            pairs.append(("resourceVersionMatch", version_match))
    return tuple(pairs)


def selector_text(selector: str | Mapping[str, str] | Selector | FieldSelector) -> str:
    """A selector as the server wants it: text as it is, a mapping as equalities."""
    if isinstance(selector, Mapping):
        return ",".join(f"{name}={value}" for name, value in selector.items())
    return str(selector)


def write_query(
    *,
    dry_run: bool = False,
    field_manager: str | None = None,
    field_validation: FieldValidation | None = None,
    force: bool = False,
) -> Query:
    """The query of a create, an update, a patch or an apply."""
    pairs: list[tuple[str, str]] = []
    if dry_run:
        pairs.append(("dryRun", "All"))
    if field_manager:
        pairs.append(("fieldManager", field_manager))
    if field_validation:
        pairs.append(("fieldValidation", field_validation))
    if force:
        pairs.append(("force", "true"))
    return tuple(pairs)


def delete_options(
    propagation: Propagation | None,
    grace_period: int | None,
    uid: str | None,
    resource_version: str | None,
    *,
    dry_run: bool,
) -> dict[str, Any]:
    """The DeleteOptions of a delete; empty values are left out, so that the server's defaults apply."""
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if propagation is not None:
        options["propagationPolicy"] = propagation
    if grace_period is not None:
        options["gracePeriodSeconds"] = grace_period
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    if present := {name: value for name, value in preconditions.items() if value}:
        options["preconditions"] = present
    if dry_run:
        options["dryRun"] = ["All"]
    return options
