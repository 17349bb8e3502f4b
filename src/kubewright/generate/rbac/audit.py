"""The least role that an audit log proves, and how the declared role differs from it.

Reads the JSON lines of kube-apiserver or of the embedded server, at any level. A request counts whether it was allowed
or denied: a denial shows a permission that is missing. What every account may do (discovery, health, reviews of itself)
is left out.

A log shows what happened, not what might happen. So before a role is called too wide, reads count as one: who was seen
to list may have get and watch too; and permissions that the server requires only in some configurations, such as update
of finalizers, are never called too much.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, final

import msgspec

from kubewright.errors import ConfigError
from kubewright.generate.rbac.grants import Grant, covered_by
from kubewright.generate.rbac.permissions import HOME, Access

__all__ = ("AuditedRequest", "Deviation", "deviations", "least_access", "read_audit")

_READ: Final = frozenset(("get", "list", "watch"))
_ALWAYS_ALLOWED_URLS: Final = ("/api", "/apis", "/healthz", "/livez", "/openapi", "/readyz", "/version", "/.well-known")
_ALWAYS_ALLOWED: Final = frozenset(
    (
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
    )
)


@final
class AuditedRequest(msgspec.Struct, frozen=True, order=True):
    """A request of a user, and its namespace; empty for the whole cluster."""

    grant: Grant
    namespace: str = ""


@final
class Deviation(msgspec.Struct, frozen=True, order=True):
    """One permission that a role lacks, or has without need."""

    what: Literal["missing", "unused"]
    grant: Grant

    def __str__(self) -> str:
        if self.what == "missing":
            return f"too narrow: {self.grant} was requested and is not granted"
        return f"too wide: {self.grant} is granted and was never requested"


def read_audit(lines: Iterable[str], *, user: str = "", source: str = "the audit log") -> frozenset[AuditedRequest]:
    """The requests of a user; of the only user in the log if none is named."""
    requests: dict[str, set[AuditedRequest]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        event = _event(line, f"{source}, line {number}")
        name = str((event.get("impersonatedUser") or event.get("user") or {}).get("username") or "")
        if not name or event.get("stage") == "RequestReceived":
            continue
        requests.setdefault(name, set()).update(_requests_of(event))
    if user:
        if user not in requests:
            raise ConfigError(f"{source} has no request of {user}; it has {_join_users(requests)}")
        return frozenset(requests[user])
    if len(requests) != 1:
        raise ConfigError(f"{source} has requests of {_join_users(requests)}; name one with --user")
    return frozenset(*requests.values())


def least_access(requests: Iterable[AuditedRequest], *, home: str = "") -> Access:
    """The least access that allows all requests.

    Requests only within the namespace `home` get a Role there; everything else is granted in the cluster.
    """
    every = frozenset(requests)
    wide = {item.grant for item in every if not home or item.namespace != home}
    own = frozenset(item.grant for item in every if item.grant not in wide)
    return Access(cluster=frozenset(wide), namespaces={HOME: own} if own else {})


def deviations(
    declared: Iterable[Grant], requests: Iterable[AuditedRequest], *, services: Iterable[Grant] = ()
) -> list[Deviation]:
    """Where a declared role and a log differ. `services` are granted in addition, and need not have been used."""
    given, extra = frozenset(declared), frozenset(services)
    used = {item.grant for item in requests}
    missing = [Deviation("missing", grant) for grant in used if not covered_by(grant, given | extra)]
    unused = [Deviation("unused", grant) for grant in given if not _was_used(grant, used)]
    return sorted([*missing, *unused])


def _was_used(grant: Grant, used: set[Grant]) -> bool:
    if grant.resource.endswith("/finalizers"):
        return True
    verbs = _READ if grant.verb in _READ else (grant.verb,)
    return any(covered_by(item, [msgspec.structs.replace(grant, verb=verb)]) for item in used for verb in verbs)


def _event(line: str, where: str) -> Mapping[str, Any]:
    try:
        event = json.loads(line)
    except ValueError as exc:
        raise ConfigError(f"{where}: this is no JSON; pass the audit log as the server writes it") from exc
    if not isinstance(event, dict) or event.get("kind") != "Event" or "verb" not in event:
        raise ConfigError(f"{where}: this is no audit event; pass the audit log as the server writes it")
    return event


def _requests_of(event: Mapping[str, Any]) -> Iterable[AuditedRequest]:
    verb = str(event["verb"])
    target = event.get("objectRef")
    if not isinstance(target, dict) or not target.get("resource"):
        path = str(event.get("requestURI") or "").partition("?")[0]
        if path and path != "/" and not path.startswith(_ALWAYS_ALLOWED_URLS):
            yield AuditedRequest(Grant("", "", verb, url=path))
        return
    group, resource = str(target.get("apiGroup") or ""), str(target["resource"])
    if (group, resource) in _ALWAYS_ALLOWED:
        return
    if target.get("subresource"):
        resource = f"{resource}/{target['subresource']}"
    namespace = str(target.get("namespace") or "")
    if (group, resource) == ("", "namespaces"):
        namespace = ""  # the audit event of a Namespace has its own name as namespace
    yield AuditedRequest(Grant(group, resource, verb), namespace)
    code = (event.get("responseStatus") or {}).get("code")
    if verb in ("patch", "update") and code == 201:
        yield AuditedRequest(Grant(group, resource, "create"), namespace)


def _join_users(users: Mapping[str, Any]) -> str:
    return ", ".join(sorted(users)) or "no request of anybody"
