"""The aggregator: proxies the groups of APIServices with a service to their aggregated API servers.

A request for such a group and version is sent to the service with the user in its X-Remote headers, which the server
trusts because of the front-proxy client certificate. If the server switches protocols, the connections are joined
(`upgrade`). Each server is synced (availability, then discovery) when its APIService, its Service or its endpoints
change, and every 30 seconds; a failed discovery check is retried with exponential backoff, since nothing that is
watched changes when the server comes up. Upstream: k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go and
k8s.io/kube-aggregator/pkg/controllers/status/remote/remote_available_controller.go.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, final
from urllib.parse import quote_plus

from kubewright._base.clock import Clock
from kubewright._base.tasks import cancel_and_wait
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.times import Duration, format_time
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.outbound.http_client import HttpClient, HttpClientError, IncomingResponse
from kubewright.apiserver.outbound.service_resolver import ServiceResolver
from kubewright.apiserver.proxy.api_services import AggregatedServer, identity_headers
from kubewright.apiserver.proxy.availability import AvailabilityChecker, AvailableCondition
from kubewright.apiserver.proxy.reverse_proxy import forwarded_for, proxy_response, request_headers, upgrade_headers
from kubewright.apiserver.proxy.upgrade import tunnel
from kubewright.apiserver.storage.store import Change, Store
from kubewright.apiserver.verbs.registry import Registry
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.requests import Request, encode_path, query_pairs, request_info
from kubewright.apiserver.wire.responses import Reply, Response
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.apiserver.wire.users import User
from kubewright.errors import DecodeError

__all__ = ("Aggregator",)

_KIND: Final = GroupVersionKind("apiregistration.k8s.io", "v1", "APIService")
_TEXT: Final = "text/plain; charset=utf-8"
_NO_SNIFFING: Final = {"X-Content-Type-Options": "nosniff"}
_HIDDEN: Final = frozenset({"audit-id", "host"})
_RESYNC_SECONDS: Final = 30.0
_FIRST_RETRY_SECONDS: Final = 0.005
_DISCOVERY_SECONDS: Final = 5.0
_MAX_SECONDS: Final = 60.0
_TIMEOUT_BODY: Final = (
    b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
    b'"reason":"Timeout","details":{},"code":504}\n'
)
_REDIRECT: Final = b"the backend attempted to redirect this request, which is not permitted"
_LOG: Final = logging.getLogger(__name__)


@final
class Aggregator:
    """Keeps the aggregated API servers and proxies requests to them."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        registry: Registry,
        clock: Clock,
        *,
        outbound: HttpClient,
        addresses: ServiceResolver,
        client_certificate: tuple[str, str] = ("", ""),
    ) -> None:
        """`client_certificate` are the files of the front-proxy client certificate and its key."""
        resource = catalog.of_kind(_KIND)
        assert resource is not None
        self._resource = resource
        self._table = store.table(resource.table)
        self._registry = registry
        self._clock = clock
        self._resolver = addresses
        self._availability = AvailabilityChecker(store, outbound)
        self._servers: dict[tuple[str, str], AggregatedServer] = {}
        self._priorities: dict[tuple[str, str], tuple[int, int]] = {}
        self._stale = True
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._syncing: dict[str, asyncio.Task[None]] = {}
        """Syncs under way, by the name of the APIService: a server that does not respond delays no other."""
        self.outbound = outbound
        self._client_certificate = client_certificate
        self._listeners: list[Callable[[], None]] = []
        self._table.watch(self)
        for name in ("/services", "discovery.k8s.io/endpointslices"):
            store.table(name).watch(_NamespaceWatcher(self.service_changed))

    # watching APIServices

    def start(self) -> None:
        """Start to sync the servers."""
        if self._task is None:
            self._wake.set()
            self._task = asyncio.get_running_loop().create_task(self._run(), name="aggregator")

    @property
    def running(self) -> bool:
        """Whether the aggregator syncs."""
        return self._task is not None and not self._task.done()

    async def stop(self) -> None:
        """Stop syncing."""
        if self._task is not None:
            await cancel_and_wait(self._task, *self._syncing.values())
            self._task = None

    def deliver(self, change: Change) -> None:
        """An APIService was added, changed or deleted."""
        self._stale = True
        self._wake.set()

    def table_gone(self) -> None:
        """Never: the table stays."""

    def service_changed(self, namespace: str) -> None:
        """A Service or an EndpointSlice of a namespace has changed: sync the servers there."""
        for server in self._servers.values():
            if server.service[0] == namespace:
                server.due = 0.0
                self._wake.set()

    def servers(self) -> Iterator[AggregatedServer]:
        """All servers, sorted by the priority of their group."""
        if self._stale:
            self._reload()
        groups: dict[str, int] = {}
        for group, version in self._servers:
            groups[group] = max(groups.get(group, 0), self._priorities[group, version][0])
        # Within a group by name, not by priority: this is the order in which kube-apiserver merges OpenAPI documents.
        return iter(sorted(self._servers.values(), key=lambda one: (-groups[one.group], one.name)))

    def serves(self, group: str, version: str) -> bool:
        """Whether an aggregated API server serves a group and version."""
        if self._stale:
            self._reload()
        return (group, version) in self._servers

    def serves_path(self, path: str) -> bool:
        """As `serves`, for the path of a request."""
        if not self._servers and not self._stale:
            return False
        parts = path.split("/", 4)
        return len(parts) > 3 and parts[1] == "apis" and self.serves(parts[2], parts[3])

    def _reload(self) -> None:
        self._stale = False
        known = {server.name: server for server in self._servers.values()}
        found: dict[tuple[str, str], AggregatedServer] = {}
        priorities: dict[tuple[str, str], tuple[int, int]] = {}
        for entry in self._table.entries():
            tree = decode_json(entry.value)
            spec = tree["spec"]
            key = (str(spec.get("group") or ""), str(spec.get("version") or ""))
            priorities[key] = (int(spec.get("groupPriorityMinimum") or 0), int(spec.get("versionPriority") or 0))
            if not spec.get("service"):
                continue
            server = known.get(entry.key) or AggregatedServer(entry.key)
            if server.revision != entry.version:
                server.read(entry, tree, self._resolver, self._client_certificate)
            found[key] = server
        changed = bool(found or self._servers or priorities != self._priorities)
        self._servers, self._priorities = found, priorities
        if changed:
            self._notify()

    def priorities(self) -> Mapping[tuple[str, str], tuple[int, int]]:
        """The priorities of the group and of the version, for each group and version with an APIService."""
        if self._stale:
            self._reload()
        return self._priorities

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call the listener when a server is added or removed, or its availability or discovery changes."""
        self._listeners.append(listener)

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()

    # proxying

    async def proxy(self, request: Request, user: User) -> Reply:
        """The reply of the server whose group and version a request is for."""
        _, _, group, version = request.path.split("/", 4)[:4]
        return await self.forward(self._servers[group, version], request, user)

    async def forward(self, server: AggregatedServer, request: Request, user: User) -> Reply:
        """The reply of a server to a request."""
        if not server.available:
            return _text_response(503, "service unavailable")
        if server.problem:
            return _text_response(500, server.problem)
        forwarded = server.forwarded_headers(encode_path(request.path))
        if not forwarded:
            return _text_response(503, "service unavailable")
        upgrade = upgrade_headers(request)
        headers = request_headers(request.headers, without=_HIDDEN)
        headers = [(name, value) for name, value in headers if not name.startswith("x-forwarded-")]
        headers += [*upgrade, *forwarded, *identity_headers(user), ("Audit-Id", request.audit_id)]
        headers.append(("X-Forwarded-For", forwarded_for(request)))
        seconds, timeout_response = _timeout(request)
        try:
            incoming = await self.outbound.request(
                server.destination,
                request.method,
                _request_target(request),
                headers=headers,
                body=request.body,
                timeout=seconds,
            )
        except HttpClientError as error:
            if error.timed_out and timeout_response is not None:
                return timeout_response
            if error.reached:
                return _text_response(503, str(error))
            return _text_response(
                503, f"{'error dialing backend' if upgrade else 'error trying to reach service'}: {error}"
            )
        return await _to_reply(incoming, upgrade=bool(upgrade))

    # availability and discovery

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = min((one.due for one in self._servers.values() if one.name not in self._syncing), default=None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._wake.wait()
            self._wake.clear()
            if self._stale:
                self._reload()
            for server in self._servers.values():
                if server.due <= loop.time() and server.name not in self._syncing:
                    task = loop.create_task(self._sync(server), name=f"sync of {server.name}")
                    self._syncing[server.name] = task
                    task.add_done_callback(partial(self._sync_done, server.name))

    def _sync_done(self, name: str, task: asyncio.Task[None]) -> None:
        self._syncing.pop(name, None)
        self._wake.set()  # its next sync may be due

    async def _sync(self, server: AggregatedServer) -> None:
        now = asyncio.get_running_loop().time()
        server.due = next_resync = now + _RESYNC_SECONDS
        try:
            condition = await self._availability.check(server)
            server.failures = server.failures + 1 if condition.retryable else 0
            if server.failures and server.due == next_resync:  # else a change has made it due already
                server.due = now + min(_RESYNC_SECONDS, _FIRST_RETRY_SECONDS * 2 ** min(server.failures, 20))
            was, server.available = server.available, condition.available
            server.generation += server.available and not was
            changed = await server.discover(self.outbound, now) if server.available else was
            if changed or was != server.available:
                self._notify()
            await self._update_status(server, condition)
        except StatusError as error:  # another write came first, and its event starts the next sync
            _LOG.debug("an APIService changed", extra={"apiservice": server.name, "error": str(error)})
        except Exception:
            _LOG.exception("an APIService was not synced", extra={"apiservice": server.name})

    async def _update_status(self, server: AggregatedServer, condition: AvailableCondition) -> None:
        entry = self._table.get(server.name)
        if entry is None:
            return
        tree = decode_json(entry.value)
        if condition.write(tree, format_time(self._clock.now())):
            await self._registry.put_if_unchanged(self._resource, entry, tree)
            written = self._table.get(server.name)
            if written is not None and server.revision == entry.version:
                server.revision = written.version  # the status alone has changed: no reload

    def groups(self) -> list[Tree]:
        """Aggregated discovery of the groups of all servers."""
        found: dict[str, Tree] = {}
        for server in self.servers():
            group = found.setdefault(server.group, {"metadata": {"name": server.group}, "versions": []})
            group["versions"].append(server.discovery())
        return list(found.values())


@final
class _NamespaceWatcher:
    """Reports changes of a table by their namespace."""

    def __init__(self, notify: Callable[[str], None]) -> None:
        self._notify = notify

    def deliver(self, change: Change) -> None:
        self._notify(change.key.partition("/")[0])

    def table_gone(self) -> None:
        """Never: the table stays."""


async def _to_reply(incoming: IncomingResponse, *, upgrade: bool) -> Reply:
    code = incoming.code
    if code == 101:
        return tunnel(incoming)
    if upgrade and code < 400:
        incoming.close()
        return _text_response(503, f"invalid upgrade response: status code {code}")
    if 300 <= code <= 399 and incoming.header("location"):
        incoming.close()
        return Response(502, _REDIRECT, _TEXT)
    return await proxy_response(incoming)


def _timeout(request: Request) -> tuple[float | None, Response | None]:
    """The timeout for the head of a response, and the response to the client if it is exceeded."""
    target = request_info(request.method, request.path, request.query)
    if target.is_long_running:
        return None, None
    allowed = _MAX_SECONDS
    with contextlib.suppress(DecodeError):
        allowed = min(Duration(request.query.get("timeout") or "0").nanoseconds / 1e9 or _MAX_SECONDS, _MAX_SECONDS)
    if request.path.startswith("/apis/") and request.path.strip("/").count("/") == 2 and allowed > _DISCOVERY_SECONDS:
        return _DISCOVERY_SECONDS, None
    return allowed, Response(504, _TIMEOUT_BODY, _TEXT)


def _request_target(request: Request) -> str:
    """Path and query as they were authorized, encoded again; the query sorted by name, as kube-apiserver sends it."""
    path = encode_path(request.path)
    pairs = sorted(query_pairs(request.uri.partition("?")[2]), key=lambda pair: pair[0])
    text = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs)
    return f"{path}?{text}" if text else path


def _text_response(code: int, text: str) -> Response:
    return Response(code, f"{text}\n".encode(), _TEXT, _NO_SNIFFING)
