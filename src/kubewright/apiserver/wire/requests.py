"""An HTTP request, and what it means to Kubernetes.

`Request` is what came over the wire; `http` makes it. `RequestInfo` is its verb, resource, namespace and name.
`request_info` derives it from method, path and query alone, before the router looks the resource up: authorization
must not depend on whether a resource exists. It follows kube-apiserver's
k8s.io/apiserver/pkg/endpoints/request/requestinfo.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, quote, unquote_to_bytes

from msgspec import Struct

from kubewright.api.kinds import GroupResource, GroupVersion
from kubewright.api.selectors import FieldSelector
from kubewright.apiserver.wire.users import User
from kubewright.apiserver.wire.value_limits import MAX_SELECTOR
from kubewright.errors import DecodeError
from kubewright.schema.check.object_metadata import path_segment_errors

__all__ = ("Peer", "Request", "RequestInfo", "decode_path", "encode_path", "parse_query", "query_pairs", "request_info")

_VERBS: Final = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_NAMESPACE: Final = ("status", "finalize")
"""Subresources of a namespace: after its name they are not resources inside it."""
_VERBS_IN_PATHS: Final = ("proxy", "watch")
"""Deprecated prefixes of a path that are its verb."""
_WITH_SELECTORS: Final = ("list", "watch", "deletecollection")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_LONG_RUNNING: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})


class Peer(Struct, frozen=True):
    """The other end of a connection: its address, whether it uses TLS, and the subject of its client certificate."""

    address: str = ""
    secure: bool = False
    common_name: str = ""
    organizations: tuple[str, ...] = ()
    uids: tuple[str, ...] = ()
    fingerprint: str = ""
    """SHA-256 of the certificate, in hex; empty without one."""
    root_fingerprint: str = ""
    """SHA-256 of the authority's certificate that the verified chain ends with, in hex."""


class Request(Struct):
    """One HTTP request. Names of headers are in lower case."""

    method: str
    path: str
    """The path, decoded."""
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
    metadata: dict[str, str] = {}
    """Name, namespace, uid and resourceVersion of the object in the body, once it is decoded; for the audit log."""

    def __repr__(self) -> str:
        # Without what holds credentials: the query, the headers, the body.
        return f"Request(method={self.method!r}, path={self.path!r}, audit_id={self.audit_id!r})"

    def header(self, name: str) -> str:
        """The value of a header; empty without one."""
        return self.headers.get(name, "")


class RequestInfo(Struct, frozen=True):
    """Verb, resource, namespace and name of a request; a non-resource request has a path, such as `/healthz`, alone.

    `//` in a path can make any of them empty, the resource too.
    """

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
    field_selector: str = ""
    """Of a list, a watch or a deletecollection, as it was sent."""
    is_path: bool = False
    """Whether it is a non-resource request."""

    @property
    def is_resource(self) -> bool:
        """Whether it is a resource request, not a non-resource one."""
        return not self.is_path

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


def decode_path(path: str) -> str:
    """The path of a URL, unescaped as a whole: an escaped slash is a slash, as in `URL.Path` of Go.

    Everything that looks at a path looks at this one, so that nobody authorizes another path than is served.
    """
    if "%" not in path and path.isascii():
        return path
    return unquote_to_bytes(path.encode("latin-1", "replace")).decode(errors="replace")


def encode_path(path: str) -> str:
    """The opposite of `decode_path`, with what Go escapes in a path."""
    return quote(path, safe="/$&+,:;=@")


def parse_query(text: str) -> dict[str, str]:
    """The parameters of a query; the first value of a name counts, as of url.Values.Get in Go."""
    found: dict[str, str] = {}
    if text:
        for name, value in query_pairs(text):
            found.setdefault(name, value)
    return found


def query_pairs(text: str) -> list[tuple[str, str]]:
    """All parameters of a query; as in url.ParseQuery of Go, one with a semicolon or a broken escape is none."""
    if ";" in text or "%" in text:
        text = "&".join(part for part in text.split("&") if ";" not in part and not _BAD_ESCAPE.search(part))
    return parse_qsl(text, keep_blank_values=True)


def request_info(method: str, path: str, query: Mapping[str, str]) -> RequestInfo:
    """The meaning of a method, a decoded path and a query."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, parts = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, parts = parts[1], parts[2], parts[3:]
    else:
        return RequestInfo(method.lower(), path, is_path=True)
    verb, has_verb_in_path = _VERBS.get(method, ""), False
    if parts[0] in _VERBS_IN_PATHS and len(parts) > 1:
        verb, parts, has_verb_in_path = parts[0], parts[1:], True
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _OF_NAMESPACE:
            parts = parts[2:]
    resource, name, subresource = (*parts, "", "")[:3] if len(parts) < 3 else parts[:3]
    if verb == "proxy":
        subresource = ""
    only_name = ""
    if not name and verb == "get":
        verb = "list" if query.get("watch", "false").lower() in ("0", "false") else "watch"
        only_name = _only_name(query)
    elif not name and verb == "delete":
        verb = "deletecollection"
    has_selectors = not has_verb_in_path and verb in _WITH_SELECTORS
    return RequestInfo(
        verb=verb,
        path=path,
        group=group,
        version=version,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name or only_name,
        rest="/".join(parts[3:]),
        field_selector=query.get("fieldSelector", "") if has_selectors else "",
    )


def _only_name(query: Mapping[str, str]) -> str:
    """The name in a field selector on metadata.name, so that a role with resourceNames allows list and watch."""
    selector = query.get("fieldSelector", "")
    if "metadata.name" not in selector or len(selector) > MAX_SELECTOR:
        return ""
    try:
        name = FieldSelector.parse(selector).required_value("metadata.name") or ""
    except DecodeError:
        return ""
    return "" if path_segment_errors(name, False) else name
