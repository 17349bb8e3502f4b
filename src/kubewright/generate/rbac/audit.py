"""The least role: what an audit log proves that an operator did, and how far its declared role is from that.

Reads the JSON lines of kube-apiserver or of the embedded server, at any level. A request counts whether it was allowed
or refused: a refusal shows a permission that is missing. What every account may do anyhow (discovery, health, asking
about itself) is left out.

A log shows what happened, not what might. So when a role is called too wide, reading counts as one: who was seen to
list may be given get and watch too; and what the server asks only under some settings, such as update of finalizers,
is never called too much.
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
_FREE_URLS: Final = ("/api", "/apis", "/healthz", "/livez", "/openapi", "/readyz", "/version", "/.well-known")
_FREE: Final = frozenset(
    (
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
    )
)


@final
class AuditedRequest(msgspec.Struct, frozen=True, order=True):
    """Something a user asked for, and in which namespace; empty for the whole cluster."""

    grant: Grant
    namespace: str = ""


@final
class Deviation(msgspec.Struct, frozen=True, order=True):
    """One permission that a role lacks, or has without need."""

    what: Literal["missing", "unused"]
    grant: Grant

    def __str__(self) -> str:
        if self.what == "missing":
            return f"too narrow: {self.grant} was asked for and is not granted"
        return f"too wide: {self.grant} is granted and was never asked for"


def read_audit(lines: Iterable[str], *, user: str = "", source: str = "the audit log") -> frozenset[AuditedRequest]:
    """What a user asked for; the only user of the log if none is named."""
    asked: dict[str, set[AuditedRequest]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        event = _event(line, f"{source}, line {number}")
        name = str((event.get("impersonatedUser") or event.get("user") or {}).get("username") or "")
        if not name or event.get("stage") == "RequestReceived":
            continue
        asked.setdefault(name, set()).update(_asked(event))
    if user:
        if user not in asked:
            raise ConfigError(f"{source} has no request of {user}; it has {_listed(asked)}")
        return frozenset(asked[user])
    if len(asked) != 1:
        raise ConfigError(f"{source} has requests of {_listed(asked)}; say with --user whose role is meant")
    return frozenset(*asked.values())


def least_access(asked: Iterable[AuditedRequest], *, home: str = "") -> Access:
    """The least access with which all of it is allowed.

    What was asked only within the namespace `home` gets a Role there; everything else holds for the cluster.
    """
    every = frozenset(asked)
    wide = {item.grant for item in every if not home or item.namespace != home}
    own = frozenset(item.grant for item in every if item.grant not in wide)
    return Access(cluster=frozenset(wide), namespaces={HOME: own} if own else {})


def deviations(
    declared: Iterable[Grant], asked: Iterable[AuditedRequest], *, services: Iterable[Grant] = ()
) -> list[Deviation]:
    """Where a declared role and a log disagree. `services` are granted besides, and need not have been used."""
    given, extra = frozenset(declared), frozenset(services)
    used = {item.grant for item in asked}
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


def _asked(event: Mapping[str, Any]) -> Iterable[AuditedRequest]:
    verb = str(event["verb"])
    target = event.get("objectRef")
    if not isinstance(target, dict) or not target.get("resource"):
        path = str(event.get("requestURI") or "").partition("?")[0]
        if path and path != "/" and not path.startswith(_FREE_URLS):
            yield AuditedRequest(Grant("", "", verb, url=path))
        return
    group, resource = str(target.get("apiGroup") or ""), str(target["resource"])
    if (group, resource) in _FREE:
        return
    if target.get("subresource"):
        resource = f"{resource}/{target['subresource']}"
    namespace = str(target.get("namespace") or "")
    if (group, resource) == ("", "namespaces"):
        namespace = ""  # the log names a namespace as its own
    yield AuditedRequest(Grant(group, resource, verb), namespace)
    code = (event.get("responseStatus") or {}).get("code")
    if verb in ("patch", "update") and code == 201:
        yield AuditedRequest(Grant(group, resource, "create"), namespace)


def _listed(users: Mapping[str, Any]) -> str:
    return ", ".join(sorted(users)) or "no request of anybody"
