"""A request as the embedded API server sees it: what came over the wire, and what it asks for.

`Request` is HTTP; `Target` is its meaning in Kubernetes' terms (verb, resource, namespace, name), worked out from the
method, the path and the query alone, as kube-apiserver does before it knows whether such a resource exists: the
answer to "who may do this" must not depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from msgspec import Struct

from kubewright.api.kinds import GroupResource, GroupVersion
from kubewright.api.selectors import FieldSelector
from kubewright.errors import DecodeError

__all__ = ("Peer", "Request", "Target", "parse_query", "target_of")

_VERBS: Final = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_NAMESPACE: Final = ("status", "finalize")
"""What can follow a namespace's name and is not a resource inside it."""


class Peer(Struct, frozen=True):
    """The other end of a connection: where it is, whether over TLS, and who its certificate says it is."""

    address: str = ""
    secure: bool = False
    common_name: str = ""
    organizations: tuple[str, ...] = ()
    issuer: str = ""
    """The common name of whoever signed the certificate."""
    fingerprint: str = ""
    """SHA-256 of the certificate, in hex."""


class Request(Struct):
    """One HTTP request. Names of headers are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    peer: Peer
    connection: Any = None
    """The open connection, for what is more than a request and an answer."""
    uri: str = ""
    """Path and query as they came."""
    audit_id: str = ""
    authenticated: Any = None
    """The user who was recognized, before any impersonation."""
    annotations: dict[str, str] = {}
    """What is found out on the way and belongs into the audit log."""

    def header(self, name: str) -> str:
        """The value of a header, or nothing."""
        return self.headers.get(name, "")


class Target(Struct, frozen=True):
    """What a request asks for. Without a resource it is a path such as `/healthz`."""

    verb: str
    path: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    rest: str = ""
    """What follows the subresource, as in a proxied path."""

    @property
    def is_resource(self) -> bool:
        """Whether this is about objects at all."""
        return bool(self.resource)

    @property
    def group_resource(self) -> GroupResource:
        """The resource, whatever version."""
        return GroupResource(self.group, self.resource)

    @property
    def group_version(self) -> GroupVersion:
        """The group and version asked for."""
        return GroupVersion(self.group, self.version)

    @property
    def full_resource(self) -> str:
        """`pods/log`, as roles name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def parse_query(text: str) -> dict[str, str]:
    """The parameters of a query; of several values of one name the first counts, as it does in Go."""
    found: dict[str, str] = {}
    if text:
        for name, value in parse_qsl(text, keep_blank_values=True):
            found.setdefault(name, value)
    return found


def target_of(method: str, path: str, query: Mapping[str, str]) -> Target:
    """What a method, a path and a query mean."""
    parts = [unquote(part) if "%" in part else part for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 3:
        group, version, parts = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, parts = parts[1], parts[2], parts[3:]
    else:
        return Target(method.lower(), path)
    verb = _VERBS.get(method, method.lower())
    if parts[0] == "watch" and len(parts) > 1:  # the old way to ask for a watch
        verb, parts = "watch", parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _OF_NAMESPACE:
            parts = parts[2:]
    resource, name, subresource = (*parts, "", "")[:3] if len(parts) < 3 else parts[:3]
    return Target(
        verb=_collection_verb(verb, method, name, query),
        path=path,
        group=group,
        version=version,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name or _only_name(verb, query),
        rest="/".join(parts[3:]),
    )


def _collection_verb(verb: str, method: str, name: str, query: Mapping[str, str]) -> str:
    if name:
        return verb
    if verb == "get":
        return "list" if query.get("watch", "false").lower() in ("0", "false") else "watch"
    return "deletecollection" if method == "DELETE" else verb


def _only_name(verb: str, query: Mapping[str, str]) -> str:
    """The one object a collection request is about: a role for that name alone allows it."""
    selector = query.get("fieldSelector", "")
    if verb not in ("get", "watch") or "metadata.name" not in selector:
        return ""
    try:
        return FieldSelector.parse(selector).required_value("metadata.name") or ""
    except DecodeError:
        return ""
