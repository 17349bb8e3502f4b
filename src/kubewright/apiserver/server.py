"""The embedded API server: its parts put together, and the sockets it listens on.

    server = ApiServer()
    await server.start(port=0, tls=context)
    ...
    await server.stop()

Everything runs on one event loop, in the process of whoever starts it. `cluster.embedded` adds certificates, a
kubeconfig, the controllers and the simulated nodes; this module knows none of them.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import Any, Final, final

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.metrics import Metrics
from kubewright.apiserver.admission.crd_termination import TerminatingCrds
from kubewright.apiserver.admission_chain import admission_chain
from kubewright.apiserver.apiextensions.resource_strategy import version_of
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.controllers.autoregistration import Autoregistration
from kubewright.apiserver.controllers.component_status import report_healthy
from kubewright.apiserver.controllers.crds import CrdController
from kubewright.apiserver.controllers.event_expiry import EventExpiry
from kubewright.apiserver.controllers.resource_quotas import ResourceQuotaController
from kubewright.apiserver.controllers.service_cidrs import ServiceCidrs
from kubewright.apiserver.extensions import Extensions
from kubewright.apiserver.front.discovery import Discovery
from kubewright.apiserver.front.flow_control import FlowControl
from kubewright.apiserver.front.health import Health
from kubewright.apiserver.front.metrics import RequestCounter
from kubewright.apiserver.front.nonresource import NonResourcePaths
from kubewright.apiserver.front.router import Router
from kubewright.apiserver.kinds.access import Access, OpenAccess
from kubewright.apiserver.kinds.calls import Call, User
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.openapi import OpenApi
from kubewright.apiserver.outbound.http_client import HttpClient
from kubewright.apiserver.outbound.service_resolver import ServiceResolver
from kubewright.apiserver.outbound.webhook_client import WebhookClient
from kubewright.apiserver.storage.compaction import Compaction
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.verbs.delete import DeleteHandler
from kubewright.apiserver.verbs.get import ReadHandler
from kubewright.apiserver.verbs.scale import ScaleHandler
from kubewright.apiserver.verbs.subresources import SubresourceHandlers
from kubewright.apiserver.verbs.watch import WatchHandler
from kubewright.apiserver.verbs.write import WriteHandler
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.http import HttpServer
from kubewright.apiserver.wire.negotiation import MediaType
from kubewright.apiserver.wire.options import WriteOptions
from kubewright.apiserver.wire.requests import Peer, Request, RequestInfo
from kubewright.apiserver.wire.responses import Response
from kubewright.apiserver.wire.status_errors import StatusError

__all__ = ("ApiServer",)

SYSTEM: Final = User("system:apiserver", ("system:masters",))
_TICK: Final = 1.0
_DRAIN: Final = 2.0


@final
class ApiServer:
    """A Kubernetes API server."""

    def __init__(
        self,
        *,
        store: Store | None = None,
        access: Access | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.store = store or Store()
        self.clock: Clock = clock or SystemClock()
        self.metrics = Metrics()
        self.services = ServiceAllocator()
        # What a data folder brought back is taken: no two Services may have one address.
        self.services.rebuild(decode_json(entry.value) for entry in self.store.table("/services").entries())
        self.service_ranges = ServiceCidrs(self.store, self.services)
        report_healthy(self.store, "etcd-0")
        self.catalog = Catalog(self.services)
        access = access or OpenAccess()
        outbound, addresses, terminating = HttpClient(), ServiceResolver(self.store), TerminatingCrds()
        webhooks = WebhookClient(outbound)
        self.admission = admission_chain(
            self.store,
            self.catalog,
            access,
            self.clock,
            webhooks=webhooks,
            addresses=addresses,
            terminating_crds=terminating,
        )
        self.compaction = Compaction(self.store, self.clock)
        self.reads = ReadHandler(self.store, self.compaction)
        self.watches = WatchHandler(self.store)
        self.writes = WriteHandler(self.store, self.admission, self.clock)
        self.deletes = DeleteHandler(self.store, self.writes, self.admission, self.clock)
        self.definitions = CrdController(
            self.store, self.catalog, self.writes, self.deletes, self.clock, terminating=terminating
        )
        self.extensions = Extensions(
            self.store,
            self.catalog,
            access,
            admission=self.admission,
            writes=self.writes,
            clock=self.clock,
            outbound=outbound,
            addresses=addresses,
            webhooks=webhooks,
        )
        self.quotas = ResourceQuotaController(self.store, self.catalog, self.writes, self.clock)
        events = self.catalog.find("", "v1", "events")
        assert events is not None
        self.events = EventExpiry(self.store, events, self.writes, self.clock)
        self.definitions.converter_for = self.extensions.converter_for
        self.router = Router(
            self.catalog,
            access,
            reads=self.reads,
            watches=self.watches,
            writes=self.writes,
            deletes=self.deletes,
        )
        self.router.recorders.append(RequestCounter(self.metrics, self.store))
        self.flow_control = FlowControl(self.store, self.catalog, self.writes, self.clock, self.metrics)
        self.router.flow_control = self.flow_control
        self.discovery = Discovery(self.catalog)
        self.registration = Autoregistration(self.store, self.catalog, self.writes, self.deletes)
        self.health = Health()
        self._add_checks()
        self.nonresource = NonResourcePaths(self.catalog, self.metrics, self.health)
        self._add_pages()
        self._connections = HttpServer(self.router.handle)
        self._servers: list[asyncio.Server] = []
        self._ticker: asyncio.Task[None] | None = None

    def _add_checks(self) -> None:
        health, definitions, aggregation = self.health, self.definitions, self.extensions.aggregation
        health.add(lambda: self.store.writable, "etcd", "etcd-readiness")
        health.add(lambda: definitions.running and definitions.settled, "informer-sync")
        health.add(lambda: self.running, "shutdown")
        health.add_hooks(
            lambda: self.running,
            *("start-apiserver-admission-initializer", "generic-apiserver-start-informers"),
            *("storage-object-count-tracker-hook", "start-service-ip-repair-controllers"),
        )
        health.add_hooks(
            lambda: definitions.running,
            *("start-apiextensions-informers", "start-apiextensions-controllers", "crd-informer-synced"),
        )
        health.add_hooks(
            lambda: self.flow_control.running,
            *("priority-and-fairness-config-consumer", "priority-and-fairness-filter"),
        )
        health.add_hooks(
            lambda: aggregation.running,
            *("start-kube-aggregator-informers", "apiservice-registration-controller"),
            *("apiservice-status-local-available-controller", "apiservice-status-remote-available-controller"),
            "apiservice-discovery-controller",
        )
        health.add_hooks(
            lambda: self.extensions.documents.running,
            *("apiservice-openapi-controller", "apiservice-openapiv3-controller"),
        )
        health.add_hooks(lambda: self.registration.running, "kube-apiserver-autoregistration")
        health.add(lambda: self.registration.running, "autoregister-completion")

    def _add_pages(self) -> None:
        path_handlers, scaling = self.router.path_handlers, ScaleHandler(self.store, self.writes)
        path_handlers["version"] = self.nonresource.version
        path_handlers["metrics"] = self.nonresource.metrics
        path_handlers[""] = self.nonresource.index
        for name in ("healthz", "livez", "readyz"):
            path_handlers[name] = self.nonresource.health
        openapi = OpenApi(self.catalog, version_of)
        path_handlers["openapi"] = openapi.answer
        for name in ("api", "apis"):
            path_handlers[name] = lambda request, user: self.discovery.answer(request)
        for resource in self.catalog:
            if "scale" in resource.subresources:
                self.router.subresource_handlers[resource.kind.group, resource.plural, "scale"] = scaling.answer
        self.extensions.add_to(self.router, self.discovery, openapi)
        special = SubresourceHandlers(self.store, self.catalog, self.writes, self.deletes, self.clock)
        self.definitions.on_served = lambda resource: self.router.subresource_handlers.update(
            {(resource.kind.group, resource.plural, "scale"): scaling.answer}
        )
        self.router.subresource_handlers["", "pods", "binding"] = special.bind
        self.router.subresource_handlers["", "bindings", ""] = special.bind
        self.router.subresource_handlers["", "pods", "eviction"] = special.evict
        self.router.subresource_handlers["", "namespaces", "finalize"] = special.finalize

    # life

    async def start(self, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> int:
        """Listen; may be called again for another port. Returns the port."""
        if self._ticker is None:
            self.definitions.start()
            self.events.start()
            self.extensions.start()
            self.quotas.start()
            self.service_ranges.start()
            self.flow_control.start()
            self.registration.start()
            self._ticker = asyncio.create_task(self._tick(), name="apiserver ticker")
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._connections.protocol, host, port, ssl=tls, backlog=1024)
        self._servers.append(server)
        bound = int(server.sockets[0].getsockname()[1])
        self.discovery.address = f"{host}:{bound}"
        return bound

    @property
    def running(self) -> bool:
        """Whether it listens, and does what is due from time to time."""
        return self._ticker is not None and not self._ticker.done() and bool(self._servers)

    async def stop(self) -> None:
        """Listen no more, end the watches, let what is under way finish, close."""
        for server in self._servers:
            server.close()
        self._connections.end()
        await self._connections.drain(_DRAIN)
        self._connections.abort()
        await self.definitions.stop()
        await self.extensions.stop()
        await self.quotas.stop()
        self.service_ranges.stop()
        await self.flow_control.stop()
        await self.registration.stop()
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)
            self._ticker = None
        self._servers.clear()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            now = time.monotonic()
            self.watches.tick(now)
            self.events.remove_due()
            self.compaction.tick()
            self._connections.sweep(now)

    # the server's own writes

    async def ensure(self, tree: Tree) -> Tree:
        """Create an object if there is none of that name, as the server itself; returns what is there."""
        call = self._own_call(tree)
        entry = self.store.table(call.resource.table).get(call.key)
        if entry is None:
            try:
                call.resource.strategy.normalize(tree)
                call.resource.strategy.default(tree)
                answer = await self.writes.create_tree(call, tree, WriteOptions(manager="kube-apiserver"))
                return _tree(answer)
            except StatusError as exc:
                if exc.reason != "AlreadyExists":
                    raise
            entry = self.store.table(call.resource.table).get(call.key)
            assert entry is not None
        return await call.resource.tree_of(entry)

    def _own_call(self, tree: Tree) -> Call:
        group, _, version = str(tree["apiVersion"]).rpartition("/")
        meta = tree["metadata"]
        resource = next(
            item
            for item in self.catalog
            if (item.kind.group, item.kind.version, item.kind.kind) == (group, version, tree["kind"])
        )
        target = RequestInfo(
            verb="create",
            path="",
            group=group,
            version=version,
            resource=resource.plural,
            namespace=meta.get("namespace", "") if resource.namespaced else "",
            name=meta["name"],
        )
        request = Request("POST", "", {}, {"user-agent": "kube-apiserver"}, b"", Peer())
        return Call(request, target, resource, SYSTEM, MediaType())


def _tree(answer: Response) -> dict[str, Any]:
    tree: dict[str, Any] = decode_json(answer.body)
    return tree
