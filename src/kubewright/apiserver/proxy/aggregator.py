"""Extension servers: groups that are served elsewhere, as APIService objects say.

A request for such a group and version goes on to the service with who asks in its headers; the extension server trusts
them because of the client certificate of the front proxy. If it changes the protocol, the two connections are joined
(`tunnels`). Whether a service answers (`availability`) is looked at when its APIService, its Service or the endpoints
behind it change and every half minute after that, sooner if it did not answer, and written into the status. What the
groups hold is fetched from them for discovery.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, final
from urllib.parse import parse_qsl, quote_plus

from kubewright._base.clock import Clock
from kubewright._base.tasks import cancel_and_wait
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.times import Duration, format_time
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.outbound.http_client import HttpClient, HttpClientError, IncomingResponse
from kubewright.apiserver.outbound.service_resolver import ServiceResolver
from kubewright.apiserver.proxy.api_services import ExtensionServer, identity_headers
from kubewright.apiserver.proxy.availability import Availability, Finding
from kubewright.apiserver.proxy.reverse_proxy import kept_headers, protocol_headers, proxied
from kubewright.apiserver.proxy.upgrade import tunnel
from kubewright.apiserver.storage.store import Change, Store
from kubewright.apiserver.verbs.registry import Registry
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.requests import Request, request_info
from kubewright.apiserver.wire.responses import Reply, Response
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.apiserver.wire.users import User
from kubewright.errors import DecodeError

__all__ = ("Aggregator",)

_KIND: Final = GroupVersionKind("apiregistration.k8s.io", "v1", "APIService")
_TEXT: Final = "text/plain; charset=utf-8"
_NO_SNIFFING: Final = {"X-Content-Type-Options": "nosniff"}
_IDENTITY: Final = frozenset({"audit-id", "authorization", "host"})
_OURS: Final = ("x-remote-", "impersonate-", "x-forwarded-")
_EVERY: Final = 30.0
_FIRST_AGAIN: Final = 0.005
_DISCOVERY_SECONDS: Final = 5.0
_LONGEST: Final = 60.0
_LONG: Final = ("attach", "exec", "log", "portforward", "proxy")
"""Subresources whose requests have no deadline."""
_LATE: Final = (
    b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
    b'"reason":"Timeout","details":{},"code":504}\n'
)
_REDIRECT: Final = b"the backend attempted to redirect this request, which is not permitted"
_LOG: Final = logging.getLogger(__name__)


@final
class Aggregator:
    """Keeps the extension servers and passes requests on to them."""

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
        """`client_certificate` are the files of the front proxy's client certificate and its key."""
        resource = catalog.of_kind(_KIND)
        assert resource is not None
        self._resource = resource
        self._table = store.table(resource.table)
        self._registry = registry
        self._clock = clock
        self._addresses = addresses
        self._availability = Availability(store, outbound)
        self._servers: dict[tuple[str, str], ExtensionServer] = {}
        self._priorities: dict[tuple[str, str], tuple[int, int]] = {}
        self._stale = True
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._busy: dict[str, asyncio.Task[None]] = {}
        """Servers that are being looked at, by name: one that does not answer keeps no other waiting."""
        self.outbound = outbound
        self._client_certificate = client_certificate
        self._listeners: list[Callable[[], None]] = []
        self._table.watch(self)
        for name in ("/services", "discovery.k8s.io/endpointslices"):
            store.table(name).watch(_Neighbour(self.look_around))

    # following APIServices

    def start(self) -> None:
        """Look after the extension servers."""
        if self._task is None:
            self._wake.set()
            self._task = asyncio.get_running_loop().create_task(self._work(), name="extension servers")

    @property
    def running(self) -> bool:
        """Whether extension servers are looked after."""
        return self._task is not None and not self._task.done()

    async def stop(self) -> None:
        """Look after them no more."""
        if self._task is not None:
            await cancel_and_wait(self._task, *self._busy.values())
            self._task = None

    def deliver(self, change: Change) -> None:
        """An APIService came, changed or went."""
        self._stale = True
        self._wake.set()

    def table_gone(self) -> None:
        """Never: the table stays."""

    def look_around(self, namespace: str) -> None:
        """Something by which the servers of a namespace are reached has changed."""
        for server in self._servers.values():
            if server.service[0] == namespace:
                server.due = 0.0
                self._wake.set()

    def servers(self) -> Iterator[ExtensionServer]:
        """All of them, the more important ones first."""
        if self._stale:
            self._read()
        groups: dict[str, int] = {}
        for group, version in self._servers:
            groups[group] = max(groups.get(group, 0), self._priorities[group, version][0])
        # As documents are merged: of one group the names count, not the priorities.
        return iter(sorted(self._servers.values(), key=lambda one: (-groups[one.group], one.name)))

    def claims(self, group: str, version: str) -> bool:
        """Whether requests for a group and version go elsewhere."""
        if self._stale:
            self._read()
        return (group, version) in self._servers

    def claimed(self, path: str) -> bool:
        """As `claims`, for the path of a request."""
        if not self._servers and not self._stale:
            return False
        parts = path.split("/", 4)
        return len(parts) > 3 and parts[1] == "apis" and self.claims(parts[2], parts[3])

    def _read(self) -> None:
        self._stale = False
        known = {server.name: server for server in self._servers.values()}
        found: dict[tuple[str, str], ExtensionServer] = {}
        priorities: dict[tuple[str, str], tuple[int, int]] = {}
        for entry in self._table.entries():
            tree = decode_json(entry.value)
            spec = tree["spec"]
            place = (str(spec.get("group") or ""), str(spec.get("version") or ""))
            priorities[place] = (int(spec.get("groupPriorityMinimum") or 0), int(spec.get("versionPriority") or 0))
            if not spec.get("service"):
                continue
            server = known.get(entry.key) or ExtensionServer(entry.key)
            if server.revision != entry.version:
                server.read(entry, tree, self._addresses, self._client_certificate)
            found[place] = server
        changed = bool(found or self._servers or priorities != self._priorities)
        self._servers, self._priorities = found, priorities
        if changed:
            self._tell()

    def priorities(self) -> Mapping[tuple[str, str], tuple[int, int]]:
        """Of each group and version that has an APIService, that of the group and that of the version."""
        if self._stale:
            self._read()
        return self._priorities

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call the listener when there are other servers, or one serves something else, or answers no more."""
        self._listeners.append(listener)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    # passing requests on

    async def proxy(self, request: Request, user: User) -> Reply:
        """The answer of the extension server whose group and version a request is for."""
        _, _, group, version = request.path.split("/", 4)[:4]
        return await self.pass_on(self._servers[group, version], request, user)

    async def pass_on(self, server: ExtensionServer, request: Request, user: User) -> Reply:
        """The answer of an extension server to a request."""
        if not server.available:
            return _said(503, "service unavailable")
        if server.problem:
            return _said(500, server.problem)
        forwarded = server.forwarded(request.path)
        if not forwarded:
            return _said(503, "service unavailable")
        upgrade = protocol_headers(request)
        headers = kept_headers(request.headers.items(), without=_IDENTITY)
        headers = [(name, value) for name, value in headers if not name.startswith(_OURS)]
        headers += [*upgrade, *forwarded, *identity_headers(user), ("Audit-Id", request.audit_id)]
        headers.append(("X-Forwarded-For", _chain(request)))
        seconds, if_late = _patience(request)
        try:
            incoming = await self.outbound.request(
                server.destination,
                request.method,
                _target(request),
                headers=headers,
                body=request.body,
                timeout=seconds,
            )
        except HttpClientError as error:
            if error.timed_out and if_late is not None:
                return if_late
            return _said(503, f"{'error dialing backend' if upgrade else 'error trying to reach service'}: {error}")
        return await _answered(incoming, upgrade=bool(upgrade))

    # availability and discovery

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = min((one.due for one in self._servers.values() if one.name not in self._busy), default=None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._wake.wait()
            self._wake.clear()
            if self._stale:
                self._read()
            for server in self._servers.values():
                if server.due <= loop.time() and server.name not in self._busy:
                    task = loop.create_task(self._attend(server), name=f"extension server {server.name}")
                    self._busy[server.name] = task
                    task.add_done_callback(partial(self._attended, server.name))

    def _attended(self, name: str, task: asyncio.Task[None]) -> None:
        self._busy.pop(name, None)
        self._wake.set()  # its next turn may be due

    async def _attend(self, server: ExtensionServer) -> None:
        now = asyncio.get_running_loop().time()
        server.due = planned = now + _EVERY
        try:
            finding = await self._availability.look(server)
            server.failures = server.failures + 1 if finding.passes_by_itself else 0
            if server.failures and server.due == planned:  # nothing has changed meanwhile
                server.due = now + min(_EVERY, _FIRST_AGAIN * 2 ** min(server.failures, 20))
            was, server.available = server.available, finding.available
            server.turn += server.available and not was
            changed = await server.discover(self.outbound, now) if server.available else was
            if changed or was != server.available:
                self._tell()
            await self._report(server, finding)
        except StatusError as refusal:  # somebody wrote meanwhile, which brings us back
            _LOG.debug("an APIService changed", extra={"apiservice": server.name, "error": str(refusal)})
        except Exception:
            _LOG.exception("an extension server could not be looked at", extra={"apiservice": server.name})

    async def _report(self, server: ExtensionServer, finding: Finding) -> None:
        entry = self._table.get(server.name)
        if entry is None:
            return
        tree = decode_json(entry.value)
        if finding.write(tree, format_time(self._clock.now())):
            await self._registry.put_if_unchanged(self._resource, entry, tree)
            written = self._table.get(server.name)
            if written is not None and server.revision == entry.version:
                server.revision = written.version  # this one says nothing new

    def groups(self) -> list[Tree]:
        """Aggregated discovery of the groups that are served elsewhere."""
        found: dict[str, Tree] = {}
        for server in self.servers():
            group = found.setdefault(server.group, {"metadata": {"name": server.group}, "versions": []})
            group["versions"].append(server.described())
        return list(found.values())


@final
class _Neighbour:
    """Tells of changes of a table by the namespace they are in."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def deliver(self, change: Change) -> None:
        self._tell(change.key.partition("/")[0])

    def table_gone(self) -> None:
        """Never: the table stays."""


async def _answered(incoming: IncomingResponse, *, upgrade: bool) -> Reply:
    code = incoming.code
    if code == 101:
        return tunnel(incoming)
    if upgrade and code < 400:
        incoming.close()
        return _said(503, f"invalid upgrade response: status code {code}")
    if 300 <= code <= 399 and incoming.header("location"):
        incoming.close()
        return Response(502, _REDIRECT, _TEXT)
    return await proxied(incoming)


def _patience(request: Request) -> tuple[float | None, Response | None]:
    """How long to wait for the head of an answer, and what is said if that was in vain and nobody else was late."""
    target = request_info(request.method, request.path, request.query)
    if target.verb == "watch" or target.subresource in _LONG:
        return None, None
    allowed = _LONGEST
    with contextlib.suppress(DecodeError):
        allowed = min(Duration(request.query.get("timeout") or "0").nanoseconds / 1e9 or _LONGEST, _LONGEST)
    if request.path.startswith("/apis/") and request.path.strip("/").count("/") == 2 and allowed > _DISCOVERY_SECONDS:
        return _DISCOVERY_SECONDS, None
    return allowed, Response(504, _LATE, _TEXT)


def _target(request: Request) -> str:
    """Path and query, the query in the order of its names."""
    path, mark, query = (request.uri or request.path).partition("?")
    if not mark:
        return path
    whole = "&".join(part for part in query.split("&") if ";" not in part)
    pairs = sorted(parse_qsl(whole, keep_blank_values=True), key=lambda pair: pair[0])
    text = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs)
    return f"{path}?{text}" if text else path


def _chain(request: Request) -> str:
    """Through whom the request came: a proxy before this server may have said."""
    here = request.peer.address or "127.0.0.1"
    before = request.header("x-forwarded-for")
    return f"{before}, {here}" if before else here


def _said(code: int, text: str) -> Response:
    return Response(code, f"{text}\n".encode(), _TEXT, _NO_SNIFFING)
