"""An HTTP request, and what it means to Kubernetes.

`Request` is what came over the wire; `http` makes it. `RequestInfo` is its verb, resource, namespace and name.
`request_info` derives it from method, path and query alone, before the router looks the resource up: authorization
must not depend on whether a resource exists. It follows kube-apiserver's
k8s.io/apiserver/pkg/endpoints/request/requestinfo.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote

from msgspec import Struct

from kubewright.api.kinds import GroupResource, GroupVersion
from kubewright.api.selectors import FieldSelector
from kubewright.apiserver.wire.users import User
from kubewright.errors import DecodeError

__all__ = ("Peer", "Request", "RequestInfo", "parse_query", "request_info")

_VERBS: Final = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_NAMESPACE: Final = ("status", "finalize")
"""Subresources of a namespace: after its name they are not resources inside it."""
_LONG_RUNNING: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})


class Peer(Struct, frozen=True):
    """The other end of a connection: its address, whether it uses TLS, and the subject of its client certificate."""

    address: str = ""
    secure: bool = False
    common_name: str = ""
    organizations: tuple[str, ...] = ()
    issuer: str = ""
    """The common name of the issuer."""
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
    uri: str = ""
    """Path and query, not decoded."""
    audit_id: str = ""
    authenticated: User | None = None
    """The authenticated user, before impersonation."""
    annotations: dict[str, str] = {}
    """Audit annotations."""

    def __repr__(self) -> str:
        # Without what holds credentials: the query, the headers, the body.
        return f"Request(method={self.method!r}, path={self.path!r}, audit_id={self.audit_id!r})"

    def header(self, name: str) -> str:
        """The value of a header; empty without one."""
        return self.headers.get(name, "")


class RequestInfo(Struct, frozen=True):
    """Verb, resource, namespace and name of a request; a non-resource request has a path, such as `/healthz`, alone."""

    verb: str
    path: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    rest: str = ""
    """The path behind the subresource, which the proxy subresources pass on."""

    @property
    def is_resource(self) -> bool:
        """Whether it is a resource request, not a non-resource one."""
        return bool(self.resource)

    @property
    def has_long_running_subresource(self) -> bool:
        """Whether it is exec, attach, port-forward, log or proxy."""
        return self.subresource in _LONG_RUNNING

    @property
    def is_long_running(self) -> bool:
        """Whether the request may take as long as it likes: it has no deadline, and its audit event has two stages.

        kube-apiserver: k8s.io/apiserver/pkg/server/filters/longrunning.go, with the sets of the generic server.
        """
        return self.verb in ("watch", "proxy") or self.subresource in _LONG_RUNNING

    @property
    def group_resource(self) -> GroupResource:
        """The resource without its version."""
        return GroupResource(self.group, self.resource)

    @property
    def group_version(self) -> GroupVersion:
        """The group and version in the path."""
        return GroupVersion(self.group, self.version)

    @property
    def full_resource(self) -> str:
        """Resource and subresource as in an RBAC rule, such as `pods/log`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def parse_query(text: str) -> dict[str, str]:
    """The parameters of a query; the first value of a name counts, as of url.Values.Get in Go."""
    found: dict[str, str] = {}
    if text:
        for name, value in parse_qsl(text, keep_blank_values=True):
            found.setdefault(name, value)
    return found


def request_info(method: str, path: str, query: Mapping[str, str]) -> RequestInfo:
    """The meaning of a method, a path and a query."""
    parts = [unquote(part) if "%" in part else part for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 3:
        group, version, parts = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, parts = parts[1], parts[2], parts[3:]
    else:
        return RequestInfo(method.lower(), path)
    verb = _VERBS.get(method, method.lower())
    if parts[0] == "watch" and len(parts) > 1:  # the deprecated /watch/ prefix
        verb, parts = "watch", parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _OF_NAMESPACE:
            parts = parts[2:]
    resource, name, subresource = (*parts, "", "")[:3] if len(parts) < 3 else parts[:3]
    return RequestInfo(
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
    """The name in a field selector on metadata.name, so that a role with resourceNames allows list and watch."""
    selector = query.get("fieldSelector", "")
    if verb not in ("get", "watch") or "metadata.name" not in selector:
        return ""
    try:
        return FieldSelector.parse(selector).required_value("metadata.name") or ""
    except DecodeError:
        return ""
