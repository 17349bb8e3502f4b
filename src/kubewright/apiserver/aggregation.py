"""Extension servers: groups that are served elsewhere, as APIService objects say.

A request for such a group and version goes on to the service with who asks in its headers; the extension server trusts
them because of the client certificate of the front proxy. Whether a service answers is looked at when its APIService
changes and every half minute after that, and written into its status. What the groups hold is fetched from them for
discovery.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, final

from kubewright._base.clock import Clock
from kubewright.api.kinds import GroupVersionKind, version_key
from kubewright.api.times import format_time
from kubewright.apiserver.answers import Answer, Reply
from kubewright.apiserver.bodies import decode_json
from kubewright.apiserver.calls import User
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.outbound import Destination, Outbound, OutboundError
from kubewright.apiserver.passing import kept_headers, passed_on
from kubewright.apiserver.refusals import Refused
from kubewright.apiserver.requests import Request
from kubewright.apiserver.resources import Tree
from kubewright.apiserver.service_addresses import ServiceAddresses
from kubewright.apiserver.store import Change, Store
from kubewright.apiserver.writing import Writing

__all__ = ("Aggregation",)

_KIND: Final = GroupVersionKind("apiregistration.k8s.io", "v1", "APIService")
_TEXT: Final = "text/plain; charset=utf-8"
_NO_SNIFFING: Final = {"X-Content-Type-Options": "nosniff"}
_IDENTITY: Final = frozenset({"audit-id", "authorization", "host"})
_EVERY: Final = 30.0
_CHECK_SECONDS: Final = 5.0
_LARGEST: Final = 16 * 1024 * 1024
_LOG: Final = logging.getLogger(__name__)


@final
class _Server:
    """One extension server: where it is and whether it answered last time."""

    def __init__(self, name: str, spec: Mapping[str, Any], destination: Destination, *, available: bool) -> None:
        self.name = name
        self.group = str(spec.get("group") or "")
        self.version = str(spec.get("version") or "")
        self.priority = (-int(spec.get("groupPriorityMinimum") or 0), -int(spec.get("versionPriority") or 0))
        self.destination = destination
        self.available = available
        self.resources: list[Tree] = []

    @property
    def path(self) -> str:
        return f"/apis/{self.group}/{self.version}"


@final
class Aggregation:
    """Passes requests on to extension servers."""

    def __init__(
        self, store: Store, catalog: Catalog, writing: Writing, clock: Clock, *, outbound: Outbound,
        addresses: ServiceAddresses,
    ) -> None:  # fmt: skip
        resource = catalog.of_kind(_KIND)
        assert resource is not None
        self._resource = resource
        self._table = store.table(resource.table)
        self._writing = writing
        self._clock = clock
        self._outbound = outbound
        self._addresses = addresses
        self._servers: dict[tuple[str, str], _Server] = {}
        self._stale = True
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.certificate = ("", "")
        """The files of the front proxy's client certificate and its key."""
        self.on_change: Callable[[], None] = lambda: None
        """Told when discovery has something else to say."""
        self._table.watch(self)

    # following APIServices

    def start(self) -> None:
        """Look after the extension servers."""
        if self._task is None:
            self._wake.set()
            self._task = asyncio.get_running_loop().create_task(self._work(), name="extension servers")

    async def stop(self) -> None:
        """Look after them no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def deliver(self, change: Change) -> None:
        """An APIService came, changed or went."""
        self._stale = True
        self._wake.set()

    def table_gone(self) -> None:
        """Never: the table stays."""

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
        found: dict[tuple[str, str], _Server] = {}
        for entry in self._table.entries():
            tree = decode_json(entry.value)
            spec = tree.get("spec") or {}
            if spec.get("service"):
                server = _Server(entry.key, spec, self._destination(spec), available=_is_available(tree))
                before = self._servers.get((server.group, server.version))
                if before is not None:
                    server.resources = before.resources
                found[server.group, server.version] = server
        self._servers = found
        self.on_change()

    def _destination(self, spec: Mapping[str, Any]) -> Destination:
        service = spec["service"]
        namespace, name, port = str(service["namespace"]), str(service["name"]), int(service.get("port") or 443)
        try:
            authorities = base64.b64decode(spec.get("caBundle") or "")
        except (binascii.Error, ValueError):
            authorities = b"unreadable"
        return Destination(
            f"{name}.{namespace}.svc:{port}",
            f"{name}.{namespace}.svc",
            authorities=authorities,
            verify=not spec.get("insecureSkipTLSVerify"),
            certificate=self.certificate,
            dial=lambda: self._addresses.resolve(namespace, name, port),
        )

    # passing requests on

    async def proxy(self, request: Request, user: User) -> Reply:
        """The answer of the extension server a request is for."""
        _, _, group, version = request.path.split("/", 4)[:4]
        server = self._servers[group, version]
        if not server.available:
            return _unavailable("service unavailable")
        headers = kept_headers(request.headers.items(), without=_IDENTITY)
        headers = [(name, value) for name, value in headers if not name.startswith(("x-remote-", "impersonate-"))]
        headers += [
            *_who(user),
            ("Audit-Id", request.audit_id),
            ("X-Forwarded-For", request.peer.address or "127.0.0.1"),
            ("X-Forwarded-Host", server.destination.host),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Uri", request.path),
        ]
        try:
            incoming = await self._outbound.ask(
                server.destination,
                request.method,
                request.uri or request.path,
                headers=headers,
                body=request.body,
            )
        except OutboundError as error:
            return _unavailable(f"error trying to reach service: {error}")
        if incoming.code == 101:
            incoming.close()
            return _unavailable("error trying to reach service: protocols other than HTTP are not passed on")
        return await passed_on(incoming)

    # availability and discovery

    async def _work(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_EVERY if self._servers else None):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            if self._stale:
                self._read()
            for server in tuple(self._servers.values()):
                try:
                    await self._look_at(server)
                except Refused as refusal:  # somebody wrote meanwhile, which brings us back
                    _LOG.debug("an APIService changed", extra={"name": server.name, "error": str(refusal)})
                except Exception:
                    _LOG.exception("an extension server could not be looked at", extra={"name": server.name})

    async def _look_at(self, server: _Server) -> None:
        reason, message = await self._checked(server)
        server.available = reason == "Passed"
        entry = self._table.get(server.name)
        if entry is None:
            return
        tree = decode_json(entry.value)
        if _set_condition(tree, server.available, reason, message, format_time(self._clock.now())):
            await self._writing.put_back(self._resource, entry, tree)

    async def _checked(self, server: _Server) -> tuple[str, str]:
        """Whether a server answers, as the reason and the message of a condition."""
        service = server.destination.server_name.split(".")
        name, namespace = service[0], service[1]
        url = f"{server.destination.url}{server.path}"
        try:
            host, port = server.destination.address()
            url = f"https://{host}:{port}{server.path}"
            async with asyncio.timeout(_CHECK_SECONDS):
                headers = [("Accept", "application/json"), *_who(User("system:kube-aggregator", ("system:masters",)))]
                incoming = await self._outbound.ask(server.destination, "GET", server.path, headers=headers)
                body = await incoming.body(_LARGEST)
        except TimeoutError:
            return (
                "FailedDiscoveryCheck",
                f'failing or missing response from {url}: Get "{url}": context deadline exceeded',
            )
        except OutboundError as error:
            if str(error) == f'service "{name}" not found':
                return "ServiceNotFound", f'service/{name} in "{namespace}" is not present'
            if str(error).startswith("no endpoints available"):
                text = f'endpointslices for service/{name} in "{namespace}" have no addresses with port name ""'
                return "MissingEndpoints", text
            return "FailedDiscoveryCheck", f'failing or missing response from {url}: Get "{url}": {error}'
        if not 200 <= incoming.code < 300:
            text = f"failing or missing response from {url}: bad status from {url}: {incoming.code}"
            return "FailedDiscoveryCheck", text
        self._learn(server, body)
        return "Passed", "all checks passed"

    def _learn(self, server: _Server, body: bytes) -> None:
        try:
            tree = decode_json(body)
        except Refused:
            return
        resources = tree.get("resources") if isinstance(tree, dict) else None
        if isinstance(resources, list) and resources != server.resources:
            server.resources = resources
            self.on_change()

    def groups(self) -> list[Tree]:
        """Aggregated discovery of the groups that are served elsewhere."""
        if self._stale:
            self._read()
        found: dict[str, Tree] = {}
        for server in sorted(self._servers.values(), key=lambda item: (item.priority, version_key(item.version))):
            group = found.setdefault(server.group, {"metadata": {"name": server.group}, "versions": []})
            resources = {"resources": _described(server)} if server.resources else {}
            freshness = "Current" if server.available else "Stale"
            group["versions"].append({"version": server.version, **resources, "freshness": freshness})
        return list(found.values())


def _who(user: User) -> list[tuple[str, str]]:
    found = [("X-Remote-User", user.name)]
    if user.uid:
        found.append(("X-Remote-Uid", user.uid))
    found.extend(("X-Remote-Group", group) for group in user.groups)
    for name, values in user.extra.items():
        escaped = "".join(one if one.isalnum() or one in "-_.!#$&'*+^`|~" else f"%{ord(one):02X}" for one in name)
        found.extend((f"X-Remote-Extra-{escaped}", value) for value in values)
    return found


def _unavailable(text: str) -> Answer:
    return Answer(503, f"{text}\n".encode(), _TEXT, _NO_SNIFFING)


def _is_available(tree: Tree) -> bool:
    conditions = (tree.get("status") or {}).get("conditions") or ()
    return any(item.get("type") == "Available" and item.get("status") == "True" for item in conditions)


def _set_condition(tree: Tree, available: bool, reason: str, message: str, now: str) -> bool:
    """Write the condition; whether that changed anything."""
    conditions = tree.setdefault("status", {}).setdefault("conditions", [])
    wanted = {"type": "Available", "status": "True" if available else "False", "reason": reason, "message": message}
    for place, item in enumerate(conditions):
        if item.get("type") == "Available":
            if all(item.get(key) == value for key, value in wanted.items()):
                return False
            since = item.get("lastTransitionTime") if item.get("status") == wanted["status"] else now
            conditions[place] = {**wanted, "lastTransitionTime": since}
            return True
    conditions.append({**wanted, "lastTransitionTime": now})
    return True


def _described(server: _Server) -> list[Tree]:
    """Resources of the old form in the aggregated one."""
    found: dict[str, Tree] = {}
    for item in server.resources:
        name, _, sub = str(item.get("name") or "").partition("/")
        kind = {name: item.get(name) or "" for name in ("group", "version", "kind")}
        if sub:
            described = {"subresource": sub, "responseKind": kind, "verbs": item.get("verbs") or []}
            found.setdefault(name, {"resource": name}).setdefault("subresources", []).append(described)
            continue
        tree: Tree = {
            "resource": name,
            "responseKind": kind,
            "scope": "Namespaced" if item.get("namespaced") else "Cluster",
            "singularResource": item.get("singularName") or "",
            "verbs": item.get("verbs") or [],
        }
        tree.update({key: item[key] for key in ("shortNames", "categories") if item.get(key)})
        found[name] = {**found.get(name, {}), **tree}
    return list(found.values())
