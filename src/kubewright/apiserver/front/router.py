"""The front of the embedded API server: from a request to the part that answers it.

Who asks and whether they may is settled first, then what the path means. Every refusal becomes a Status in the form
the client reads; nothing a client sends gets past this module as an exception. What is written to the audit log and
counted is written and counted here, once.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, final

from kubewright.api.kinds import GroupVersion
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.front.routes import Handler, Routes
from kubewright.apiserver.kinds.access import Access, forbidden_to
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.kinds.system_metadata import new_uid
from kubewright.apiserver.wire.negotiation import MediaType, is_pretty_print, negotiate
from kubewright.apiserver.wire.requests import Request, RequestInfo, request_info
from kubewright.apiserver.wire.responses import Reply, Response, Stream, error_response, indent
from kubewright.apiserver.wire.status_errors import (
    StatusError,
    bad_request,
    internal_error,
    method_not_allowed,
    no_such_resource,
    not_found,
)
from kubewright.apiserver.wire.users import User

__all__ = ("AggregatedServers", "RequestObserver", "Router")

_TEXT: Final = "text/plain; charset=utf-8"
_DURATION: Final = re.compile(r"[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?(?:ns|us|µs|ms|s|m|h))+|0)")
_LONG: Final = ("attach", "exec", "log", "portforward", "proxy")
"""Subresources whose requests have no deadline."""
_ONLY_ANSWERED: Final = ("binding", "eviction", "token")
"""Subresources that are nothing one could look at."""
_NUMBER: Final = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?")
_ONLY_READ: Final = ("version", "api", ".well-known", "openid")
"""Pages that do not answer whatever the method is, as others do."""
_LOG: Final = logging.getLogger(__name__)


class RequestObserver(Protocol):
    """Hears of every request once it is answered, or once its stream has begun."""

    def answered(
        self, request: Request, target: RequestInfo, user: User | None, reply: Reply, *, seconds: float
    ) -> None:
        """One request and how it went."""
        ...


class Classifier(Protocol):
    """Knows which priority a request has."""

    def heads(self, user: User, target: RequestInfo) -> Mapping[str, str]:
        """What the head of the answer says of it."""
        ...


class AggregatedServers(Protocol):
    """Other servers, to which some requests are passed on."""

    def claimed(self, path: str) -> bool:
        """Whether a path is theirs; asked for every request."""
        ...

    async def proxy(self, request: Request, user: User) -> Reply:
        """Their answer."""
        ...


@final
class Router:
    """Takes every request."""

    def __init__(
        self,
        catalog: Catalog,
        access: Access,
        *,
        routes: Routes,
        aggregator: AggregatedServers,
        flow_control: Classifier,
        observers: Sequence[RequestObserver],
        verbs: Mapping[str, Handler],
    ) -> None:
        """`verbs` are the handlers of objects in tables, by verb; `routes` has those of everything else."""
        self._catalog = catalog
        self._access = access
        self._routes = routes
        self._aggregator = aggregator
        self._flow_control = flow_control
        self._observers = tuple(observers)
        self._verbs = verbs
        self._subresource_verbs = {verb: verbs[verb] for verb in ("get", "update", "patch")}

    async def handle(self, request: Request) -> Reply:
        """The reply to a request."""
        started = time.perf_counter()
        target = request_info(request.method, request.path, request.query)
        user: User | None = None
        heads: Mapping[str, str] = {}
        request.audit_id = request.header("audit-id") or new_uid()
        try:
            if "timeout" in request.query:
                _check_timeout(request.query["timeout"], target)
            user = self._access.user_of(request)
            if target.subresource not in _LONG:
                heads = self._flow_control.heads(user, target)
            self._authorize(request, user, target)
            reply = await self._reply(request, target, user)
        except StatusError as exc:
            reply = error_response(exc, _error_form(request))
        except RecursionError:
            reply = error_response(bad_request("what is asked for is nested too deeply"), _error_form(request))
        except Exception as exc:
            _LOG.exception("a request failed", extra={"method": request.method, "path": request.path})
            reply = error_response(internal_error(f"{type(exc).__name__}: {exc}"), _error_form(request))
        if isinstance(reply, Response) and self._is_for_eyes(request, target):
            indent(reply)
        if isinstance(reply, (Response, Stream)):
            reply.headers = {"Audit-Id": request.audit_id, **heads, **reply.headers}
        seconds = time.perf_counter() - started
        for observer in self._observers:
            observer.answered(request, target, user, reply, seconds=seconds)
        return reply

    def _is_for_eyes(self, request: Request, target: RequestInfo) -> bool:
        """Whether the answer is indented; what others answered is passed on as it is."""
        if not is_pretty_print(request.header("accept"), request.header("user-agent"), request.query.get("pretty", "")):
            return False
        return target.subresource not in _LONG and not self._aggregator.claimed(request.path)

    def _authorize(self, request: Request, user: User, target: RequestInfo) -> None:
        decision = self._access.decide(user, target)
        request.annotations["authorization.k8s.io/decision"] = "allow" if decision.allowed else "forbid"
        request.annotations["authorization.k8s.io/reason"] = decision.reason
        if not decision.allowed:
            raise forbidden_to(user, target, decision.reason)

    async def _reply(self, request: Request, target: RequestInfo, user: User) -> Reply:
        if request.path.startswith("//"):
            return _page_not_found()
        if self._aggregator.claimed(request.path):
            return await self._aggregator.proxy(request, user)
        if not target.is_resource:
            if self._is_misplaced(request.path):
                raise no_such_resource()
            return await self._page(request, user)
        resource = self._catalog.find(target.group, target.version, target.resource)
        if resource is None:
            return self._unknown(target)
        if "//" in request.path or not _placed(resource, target):
            if resource.custom:
                return _page_not_found()
            raise no_such_resource()
        if request.method == "HEAD" and target.subresource != "proxy":
            raise method_not_allowed()
        verb = self._verb(resource, target)
        rows = "list" in resource.verbs and target.subresource not in _ONLY_ANSWERED
        output = negotiate(request.header("accept"), tables=rows, custom=resource.custom)
        call = Call(request, target, resource, user, output)
        if resource.deprecation:
            call.warn(resource.deprecation)
        try:
            return await verb(call)
        except StatusError as refusal:
            if call.warnings:
                raise StatusError(refusal.status, headers={**refusal.headers, **call.headers()}) from None
            raise

    def _is_misplaced(self, path: str) -> bool:
        """Whether a path that leads nowhere lies below one of the server's own groups, which then say so."""
        root, *parts = path.strip("/").split("/")
        if root not in ("api", "apis"):
            return False
        group, *rest = parts if root == "apis" and parts else ("", *parts)
        if "" in rest:
            return True
        return bool(rest) and not self._catalog.has(GroupVersion(group, rest[0])) and self._catalog.has_built_in(group)

    async def _page(self, request: Request, user: User) -> Reply:
        name, slash, rest = request.path[1:].partition("/")
        page = self._routes.path(name)
        if page is None or (slash and _ends_there(name, rest)):
            return _page_not_found()
        if request.method != "GET" and (name in _ONLY_READ or (name == "apis" and "/" in rest.strip("/"))):
            raise method_not_allowed()
        reply = page(request, user)
        return reply if isinstance(reply, (Response, Stream)) else await reply  # type: ignore[misc] # a page replies or promises

    def _unknown(self, target: RequestInfo) -> Response:
        if not self._catalog.has_built_in(target.group):
            return _page_not_found()
        raise no_such_resource()

    def _verb(self, resource: Resource, target: RequestInfo) -> Handler:
        sub = resource.subresources.get(target.subresource)
        if target.subresource and sub is None:
            raise not_found(resource.group_resource, target.name) if resource.custom else no_such_resource()
        handler = self._routes.resource(target)
        if handler is not None:
            return handler
        if sub is not None:
            verb = self._subresource_verbs.get(target.verb)
            if verb is None or target.verb not in sub.verbs:
                raise method_not_allowed()
            return verb
        verb = self._verbs.get(target.verb)
        if verb is None or target.verb not in resource.verbs or not _fits(resource, target):
            raise method_not_allowed()
        return verb


def _ends_there(name: str, rest: str) -> bool:
    """Whether there is nothing behind the slash that follows the name of a page."""
    if name in ("healthz", "livez", "readyz"):
        return rest.endswith("/") or not rest
    return (name == "metrics" and rest != "slis") or (name == "version" and bool(rest))


def _check_timeout(timeout: str, target: RequestInfo) -> None:
    """Of whatever is asked for, but for what may take as long as it likes."""
    if not timeout or target.verb == "watch" or target.subresource in _LONG or _DURATION.fullmatch(timeout):
        return
    why = "missing unit in" if _NUMBER.fullmatch(timeout) else "invalid"
    raise bad_request(f'invalid timeout specified in the request URL - time: {why} duration "{timeout}"')


def _page_not_found() -> Response:
    return Response(404, b"404 page not found\n", _TEXT, {"X-Content-Type-Options": "nosniff"})


def _placed(resource: Resource, target: RequestInfo) -> bool:
    """Whether there are such paths at all: an object in a namespace has one, an object of the cluster has none."""
    if resource.namespaced:
        return bool(target.namespace) or not _is_named(target)
    return not target.namespace or target.resource == "namespaces"


def _is_named(target: RequestInfo) -> bool:
    return bool(target.name) and target.path.rstrip("/").rpartition("/")[2] == target.name


def _fits(resource: Resource, target: RequestInfo) -> bool:
    """Whether the path has what the verb needs: a collection takes a create, an object an update."""
    named = _is_named(target)
    if target.verb == "create":
        # A custom resource does not mind a name in the path of a create; it goes by the body.
        return (not named or resource.custom) and (not resource.namespaced or bool(target.namespace))
    if target.verb in ("update", "patch") and not named:
        return False
    if target.verb in ("get", "update", "patch", "delete", "deletecollection"):
        return not resource.namespaced or bool(target.namespace)
    return True


def _error_form(request: Request) -> MediaType:
    try:
        return negotiate(request.header("accept"), transforms=False)
    except StatusError:
        return MediaType()
