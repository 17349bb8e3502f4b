"""The router: authenticates, classifies and authorizes a request, then finds its handler.

It is the handler chain of kube-apiserver in one place (k8s.io/apiserver/pkg/server/config.go,
`DefaultBuildHandlerChain`). Authorization comes before the lookup of the resource, so that a client cannot learn what
exists. Every error becomes a Status in the negotiated media type; no exception gets past `handle`. Observers (audit
log, metrics) see each request once.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Protocol, final

from kubewright.api.kinds import GroupVersion
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.front.routes import Handler, Routes
from kubewright.apiserver.kinds.access import Access, forbidden_to
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.large_requests import off_loop
from kubewright.apiserver.kinds.object_meta import check_name_parameter
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.kinds.system_metadata import new_uid
from kubewright.apiserver.storage.store import SpaceExceeded
from kubewright.apiserver.wire.negotiation import MediaType, is_pretty_print, negotiate
from kubewright.apiserver.wire.requests import Request, RequestInfo, request_info
from kubewright.apiserver.wire.responses import (
    LongResponse,
    Reply,
    Response,
    Stream,
    error_response,
    indent,
    path_not_found,
)
from kubewright.apiserver.wire.status_errors import (
    StatusError,
    bad_request,
    internal_error,
    method_not_allowed,
    no_such_resource,
    not_found,
    status_error,
)
from kubewright.apiserver.wire.users import MASTERS, User

__all__ = ("MAX_IN_FLIGHT", "AggregatedServers", "RequestObserver", "Router")

_TEXT: Final = "text/plain; charset=utf-8"
_DURATION: Final = re.compile(r"[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?(?:ns|us|µs|ms|s|m|h))+|0)")
_WITHOUT_TABLES: Final = ("binding", "eviction", "token")
"""Subresources that cannot be read, so they have no Table."""
MAX_IN_FLIGHT: Final = 600
"""The seats of all levels: kube-apiserver's --max-requests-inflight and --max-mutating-requests-inflight together."""
_TOO_MANY: Final = b"Too many requests, please try again later.\n"
_NUMBER: Final = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?")
_GET_ONLY: Final = ("version", "api", ".well-known", "openid")
"""Non-resource paths that reject any method but GET; kube-apiserver's others ignore the method."""
_LOG: Final = logging.getLogger(__name__)


class RequestObserver(Protocol):
    """Sees every request once its reply is known; a stream has not been written then."""

    def observe(self, request: Request, info: RequestInfo, user: User | None, reply: Reply, *, seconds: float) -> None:
        """One request, its user and its reply."""
        ...


class Classifier(Protocol):
    """Classifies requests for API priority and fairness."""

    def response_headers(self, user: User, info: RequestInfo) -> Mapping[str, str]:
        """The response headers with the FlowSchema and the priority level of a request."""
        ...


class AggregatedServers(Protocol):
    """Aggregated API servers, to which some requests are proxied."""

    def serves_path(self, path: str) -> bool:
        """Whether an aggregated API server serves the path; called for every request."""
        ...

    async def proxy(self, request: Request, user: User) -> Reply:
        """The reply of the aggregated API server."""
        ...


@final
class Router:
    """Handles every request."""

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
        self._in_flight = 0
        self._subresource_verbs = {verb: verbs[verb] for verb in ("get", "update", "patch")}

    async def handle(self, request: Request) -> Reply:
        """The reply to a request."""
        started = time.perf_counter()
        info = request_info(request.method, request.path, request.query)
        user: User | None = None
        headers: Mapping[str, str] = {}
        reply: Reply
        request.audit_id = request.header("audit-id") or new_uid()
        try:
            if "timeout" in request.query:
                _check_timeout(request.query["timeout"], info)
            user = self._access.user_of(request)
            if not info.has_long_running_subresource:
                headers = self._flow_control.response_headers(user, info)
            self._authorize(request, user, info)
            if self._in_flight >= MAX_IN_FLIGHT and not _is_exempt(user, info):
                reply = Response(429, _TOO_MANY, _TEXT, {"Retry-After": "1", "X-Content-Type-Options": "nosniff"})
            else:
                self._in_flight += 1
                try:
                    reply = await self._reply(request, info, user)
                finally:
                    self._in_flight -= 1
        except StatusError as exc:
            reply = error_response(exc, _error_media_type(request))
        except SpaceExceeded as exc:
            reply = error_response(status_error(500, "", str(exc)), _error_media_type(request))
        except RecursionError:
            reply = error_response(bad_request("the request is nested too deeply"), _error_media_type(request))
        except Exception as exc:
            _LOG.exception("a request failed", extra={"method": request.method, "path": request.path})
            reply = error_response(internal_error(f"{type(exc).__name__}: {exc}"), _error_media_type(request))
        if isinstance(reply, Response) and self._is_pretty(request, info):
            await off_loop(len(reply.body), partial(indent, reply))
        if isinstance(reply, (Response, LongResponse, Stream)):
            reply.headers = {"Audit-Id": request.audit_id, **headers, **reply.headers}
        seconds = time.perf_counter() - started
        for observer in self._observers:
            observer.observe(request, info, user, reply, seconds=seconds)
        return reply

    def wants_body(self, request: Request) -> bool:
        """Whether the user may send this request; if not, `handle` answers it, whatever its body."""
        try:
            info = request_info(request.method, request.path, request.query)
            return self._access.decide(self._access.user_of(request), info).allowed
        except StatusError:
            return False

    def _is_pretty(self, request: Request, info: RequestInfo) -> bool:
        """Whether to indent the response; proxied responses are not touched."""
        if not is_pretty_print(request.header("accept"), request.header("user-agent"), request.query.get("pretty", "")):
            return False
        return not info.has_long_running_subresource and not self._aggregator.serves_path(request.path)

    def _authorize(self, request: Request, user: User, info: RequestInfo) -> None:
        decision = self._access.decide(user, info)
        request.annotations["authorization.k8s.io/decision"] = "allow" if decision.allowed else "forbid"
        request.annotations["authorization.k8s.io/reason"] = decision.reason
        if not decision.allowed:
            raise forbidden_to(user, info, decision.reason)

    async def _reply(self, request: Request, info: RequestInfo, user: User) -> Reply:
        if request.path.startswith("//"):
            return path_not_found()
        if self._aggregator.serves_path(request.path):
            return await self._aggregator.proxy(request, user)
        if not info.is_resource:
            if self._is_below_builtin_group(request.path):
                raise no_such_resource()
            return await self._non_resource(request, user)
        resource = self._catalog.find(info.group, info.version, info.resource)
        if resource is None:
            return self._unknown(info)
        if not _is_served(resource, info):
            if resource.custom or request.path.startswith("/apis//"):
                return path_not_found()
            raise no_such_resource()
        _check_segments(resource, info)
        if request.method == "HEAD" and info.subresource != "proxy":
            raise method_not_allowed()
        verb = self._verb(resource, info)
        tables = "list" in resource.verbs and info.subresource not in _WITHOUT_TABLES
        output = negotiate(request.header("accept"), tables=tables, custom=resource.custom)
        call = Call(request, info, resource, user, output)
        if resource.deprecation:
            call.warn(resource.deprecation)
        try:
            return await verb(call)
        except StatusError as error:
            if call.warnings:
                raise StatusError(error.status, headers={**error.headers, **call.headers()}) from None
            raise

    def _is_below_builtin_group(self, path: str) -> bool:
        """Whether an unknown path is below a built-in group, whose handler then responds with a Status."""
        root, *parts = path.strip("/").split("/")
        if root not in ("api", "apis"):
            return False
        group, *rest = parts if root == "apis" and parts else ("", *parts)
        if "" in rest:
            return True
        return bool(rest) and not self._catalog.has(GroupVersion(group, rest[0])) and self._catalog.has_built_in(group)

    async def _non_resource(self, request: Request, user: User) -> Reply:
        name, slash, rest = request.path[1:].partition("/")
        handler = self._routes.path(name)
        if handler is None or (slash and _is_unknown_below(name, rest)):
            return path_not_found()
        if request.method != "GET" and (name in _GET_ONLY or (name == "apis" and "/" in rest.strip("/"))):
            raise method_not_allowed()
        reply = handler(request, user)
        return reply if isinstance(reply, (Response, Stream)) else await reply  # type: ignore[misc] # a handler may be a coroutine

    def _unknown(self, info: RequestInfo) -> Response:
        if not self._catalog.has_built_in(info.group):
            return path_not_found()
        raise no_such_resource()

    def _verb(self, resource: Resource, info: RequestInfo) -> Handler:
        sub = resource.subresources.get(info.subresource)
        if info.subresource and sub is None:
            raise not_found(resource.group_resource, info.name) if resource.custom else no_such_resource()
        handler = self._routes.resource(info)
        if handler is not None:
            return handler
        if sub is not None:
            verb = self._subresource_verbs.get(info.verb)
            if verb is None or info.verb not in sub.verbs:
                raise method_not_allowed()
            return verb
        verb = self._verbs.get(info.verb)
        if verb is None or info.verb not in resource.verbs or not _has_name_and_namespace(resource, info):
            raise method_not_allowed()
        return verb


def _is_exempt(user: User, info: RequestInfo) -> bool:
    """Whether a request is served however many others are: the administrator's, probes, and those without an end."""
    return MASTERS in user.groups or info.is_long_running or info.path in ("/healthz", "/livez", "/readyz")


def _is_unknown_below(name: str, rest: str) -> bool:
    """Whether there is no such path below a non-resource path."""
    if name in ("healthz", "livez", "readyz"):
        return rest.endswith("/") or not rest
    if name == "apis":
        return rest.startswith("/")
    return (name == "metrics" and rest != "slis") or (name == "version" and bool(rest))


def _check_timeout(timeout: str, info: RequestInfo) -> None:
    """Reject a bad `timeout` parameter; long-running requests have no deadline."""
    if not timeout or info.is_long_running or _DURATION.fullmatch(timeout):
        return
    why = "missing unit in" if _NUMBER.fullmatch(timeout) else "invalid"
    raise bad_request(f'invalid timeout specified in the request URL - time: {why} duration "{timeout}"')


def _is_served(resource: Resource, info: RequestInfo) -> bool:
    """Whether there is such a path: it has the scope of the resource, and only a proxied one goes on as it likes."""
    if not _is_in_scope(resource, info) or "//" in info.path.rstrip("/").removesuffix(info.rest):
        return False
    return info.verb != "proxy" and (not info.rest or info.subresource == "proxy")


def _check_segments(resource: Resource, info: RequestInfo) -> None:
    """Refuse a name or a namespace that cannot be a segment of a path."""
    if not info.name.isalnum():
        check_name_parameter(info.name)
    if info.namespace in (".", ".."):
        raise bad_request(f'invalid key: "/{resource.plural}/{info.namespace}"')


def _is_in_scope(resource: Resource, info: RequestInfo) -> bool:
    """Whether the path has the scope of the resource: namespaced objects have a namespace, others have none."""
    if resource.namespaced:
        return bool(info.namespace) or not _is_named(info)
    return not info.namespace or info.resource == "namespaces"


def _is_named(info: RequestInfo) -> bool:
    return bool(info.name) and info.path.rstrip("/").rpartition("/")[2] == info.name


def _has_name_and_namespace(resource: Resource, info: RequestInfo) -> bool:
    """Whether the path has the name and namespace that the verb needs: a create has no name, an update has one."""
    named = _is_named(info)
    if info.verb == "create":
        # kube-apiserver ignores a name in the path of a custom resource's create.
        return (not named or resource.custom) and (not resource.namespaced or bool(info.namespace))
    if info.verb in ("update", "patch") and not named:
        return False
    if info.verb in ("get", "update", "patch", "delete", "deletecollection"):
        return not resource.namespaced or bool(info.namespace)
    return True


def _error_media_type(request: Request) -> MediaType:
    try:
        return negotiate(request.header("accept"), transforms=False)
    except StatusError:
        return MediaType()
