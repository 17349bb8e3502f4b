"""The embedded API server: constructs its parts, and listens.

    server = ApiServer()
    await server.start(port=0, tls=context)
    ...
    await server.stop()

Everything runs on one event loop, in the process that starts it. Each part gets what it needs in its constructor, in
the order of the layers: store, catalog, admission, registry and verbs, controllers, routes, router.
`cluster.planes.embedded` adds certificates, a kubeconfig, the controllers of a cluster and simulated nodes.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol, final

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.http.listener import Listener
from kubewright._base.metrics import Metrics
from kubewright.apiserver.admission.crd_termination import TerminatingCrds
from kubewright.apiserver.admission_chain import admission_chain
from kubewright.apiserver.apiextensions.resource_strategy import version_of
from kubewright.apiserver.apiextensions.webhook_converter import converter_of
from kubewright.apiserver.auth.access import RbacAccess
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.controllers.autoregistration import Autoregistration
from kubewright.apiserver.controllers.component_status import report_healthy
from kubewright.apiserver.controllers.crds import CrdController
from kubewright.apiserver.controllers.event_expiry import EventExpiry
from kubewright.apiserver.controllers.resource_quotas import ResourceQuotaController
from kubewright.apiserver.controllers.service_cidrs import ServiceCidrs
from kubewright.apiserver.front.discovery import Discovery
from kubewright.apiserver.front.flow_control import FlowControl
from kubewright.apiserver.front.health import Health
from kubewright.apiserver.front.metrics import RequestMetrics
from kubewright.apiserver.front.nonresource import NonResourcePaths
from kubewright.apiserver.front.router import RequestObserver, Router
from kubewright.apiserver.front.routes import Handler, Routes
from kubewright.apiserver.identities import Identities
from kubewright.apiserver.kinds.access import Access, OpenAccess
from kubewright.apiserver.openapi.aggregated import AggregatedDocuments
from kubewright.apiserver.openapi.endpoints import OpenApi
from kubewright.apiserver.outbound.http_client import HttpClient
from kubewright.apiserver.outbound.kubelets import KubeletClientConfig, Kubelets
from kubewright.apiserver.outbound.service_resolver import ServiceResolver
from kubewright.apiserver.outbound.webhook_client import WebhookClient
from kubewright.apiserver.proxy.aggregator import Aggregator
from kubewright.apiserver.proxy.connect import ProxyHandlers
from kubewright.apiserver.proxy.pod_logs import PodLogs
from kubewright.apiserver.storage.compaction import Compactor
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.verbs.apply import ApplyHandler
from kubewright.apiserver.verbs.create import CreateHandler
from kubewright.apiserver.verbs.delete import DeleteHandler
from kubewright.apiserver.verbs.get import ReadHandler
from kubewright.apiserver.verbs.loopback import Loopback
from kubewright.apiserver.verbs.patch import PatchHandler
from kubewright.apiserver.verbs.registry import Registry
from kubewright.apiserver.verbs.scale import ScaleHandler
from kubewright.apiserver.verbs.subresources import SubresourceHandlers
from kubewright.apiserver.verbs.update import UpdateHandler
from kubewright.apiserver.verbs.watch import WatchHandler
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.http import http_server

__all__ = ("ApiServer",)

_TICK: Final = 1.0
_DRAIN: Final = 2.0


class _Controller(Protocol):
    """A part of the server that works in the background."""

    def start(self) -> None: ...

    async def stop(self) -> None: ...


@final
class ApiServer:
    """A Kubernetes API server."""

    def __init__(
        self,
        *,
        store: Store | None = None,
        access: Access | None = None,
        clock: Clock | None = None,
        observers: Sequence[RequestObserver] = (),
        proxy_client_certificate: tuple[str, str] = ("", ""),
        kubelet_client: KubeletClientConfig | None = None,
    ) -> None:
        """Without `access` everybody is the administrator.

        `observers` see every request and its response. `proxy_client_certificate` are the files of the certificate and
        the key by which aggregated API servers recognize this one, `kubelet_client` is how kubelets do.
        """
        self.store = store or Store()
        self.clock: Clock = clock or SystemClock()
        self.metrics = Metrics()
        self.services = ServiceAllocator()
        # Services that a data folder brought back keep their addresses: no two may have the same one.
        self.services.rebuild(decode_json(entry.value) for entry in self.store.table("/services").entries())
        report_healthy(self.store, "etcd-0")
        self.catalog = Catalog(self.services)
        self._access = access or OpenAccess()
        self._outbound = HttpClient()
        self._addresses = ServiceResolver(self.store)
        self.kubelets = Kubelets(self.store, kubelet_client or KubeletClientConfig())
        webhooks, terminating = WebhookClient(self._outbound), TerminatingCrds()
        self.admission = admission_chain(
            self.store,
            self.catalog,
            self._access,
            self.clock,
            webhooks=webhooks,
            addresses=self._addresses,
            terminating_crds=terminating,
        )
        self.compaction = Compactor(self.store, self.clock)
        self.watches = WatchHandler(self.store)
        self._registry = Registry(self.store, self.admission, self.clock, access=self._access)
        self._creates = CreateHandler(self._registry)
        self._updates = UpdateHandler(self._registry, self._creates)
        applies = ApplyHandler(self._registry, self._creates, self._updates)
        self._patches = PatchHandler(self._registry, self._updates, applies)
        self._deletes = DeleteHandler(self._registry)
        self.loopback = Loopback(
            self.store,
            self.catalog,
            creates=self._creates,
            updates=self._updates,
            patches=self._patches,
            deletes=self._deletes,
        )
        parts = self.store, self.catalog, self._registry
        self.crds = CrdController(
            *parts,
            self.loopback,
            self.clock,
            terminating=terminating,
            converter_for=partial(converter_of, webhooks=webhooks, addresses=self._addresses),
        )
        self.aggregator = Aggregator(
            *parts,
            self.clock,
            outbound=self._outbound,
            addresses=self._addresses,
            client_certificate=proxy_client_certificate,
        )
        self.documents = AggregatedDocuments(self.aggregator)
        self.flow_control = FlowControl(*parts, self.clock, self.metrics)
        self.registration = Autoregistration(self.store, self.catalog, self.loopback)
        self.events = EventExpiry(self.store, self.catalog.builtin("", "events"), self._registry, self.clock)
        self._controllers: tuple[_Controller, ...] = (
            self.crds,
            self.aggregator,
            self.documents,
            ResourceQuotaController(*parts, self.clock),
            ServiceCidrs(self.store, self.services),
            self.flow_control,
            self.registration,
        )
        self.identities = self._identities()
        self.health = Health()
        self._add_checks(self.health)
        self.nonresource = NonResourcePaths(self.catalog, self.metrics, self.health)
        self._address = "127.0.0.1"
        routes = Routes()
        self._add_routes(routes)
        self.router = Router(
            self.catalog,
            self._access,
            routes=routes,
            aggregator=self.aggregator,
            flow_control=self.flow_control,
            observers=(RequestMetrics(self.metrics, self.store), *observers),
            verbs=self._verbs(),
        )
        self._http = http_server(self.router.handle, wants_body=self.router.wants_body)
        self._listeners: list[Listener] = []
        self._ticker: asyncio.Task[None] | None = None

    def _verbs(self) -> dict[str, Handler]:
        reads = ReadHandler(self.store, self.compaction)
        return {
            "get": reads.get,
            "list": reads.list,
            "watch": self.watches.watch,
            "create": self._creates.create,
            "update": self._updates.update,
            "patch": self._patches.patch,
            "delete": self._deletes.delete,
            "deletecollection": self._deletes.collection,
        }

    def _identities(self) -> Identities | None:
        if not isinstance(self._access, RbacAccess):
            return None
        return Identities(
            self._access,
            self.store,
            self.catalog,
            self.services,
            self.clock,
            admission=self.admission,
            loopback=self.loopback,
        )

    def _add_checks(self, health: Health) -> None:
        health.add(lambda: self.store.writable, "etcd", "etcd-readiness")
        health.add(lambda: self.crds.running and self.crds.has_synced, "informer-sync")
        health.add(lambda: self.running, "shutdown")
        health.add_hooks(
            lambda: self.running,
            *("start-apiserver-admission-initializer", "generic-apiserver-start-informers"),
            *("storage-object-count-tracker-hook", "start-service-ip-repair-controllers"),
        )
        health.add_hooks(
            lambda: self.crds.running,
            *("start-apiextensions-informers", "start-apiextensions-controllers", "crd-informer-synced"),
        )
        health.add_hooks(
            lambda: self.flow_control.running,
            *("priority-and-fairness-config-consumer", "priority-and-fairness-filter"),
        )
        health.add_hooks(
            lambda: self.aggregator.running,
            *("start-kube-aggregator-informers", "apiservice-registration-controller"),
            *("apiservice-status-local-available-controller", "apiservice-status-remote-available-controller"),
            "apiservice-discovery-controller",
        )
        health.add_hooks(
            lambda: self.documents.running,
            *("apiservice-openapi-controller", "apiservice-openapiv3-controller"),
        )
        health.add_hooks(lambda: self.registration.running, "kube-apiserver-autoregistration")
        health.add(lambda: self.registration.running, "autoregister-completion")
        if self.identities is not None:
            self.identities.add_checks(health)

    def _add_routes(self, routes: Routes) -> None:
        routes.add_path("version", self.nonresource.version)
        routes.add_path("metrics", self.nonresource.metrics)
        routes.add_path("", self.nonresource.index)
        for name in ("healthz", "livez", "readyz"):
            routes.add_path(name, self.nonresource.health)
        routes.add_path("openapi", OpenApi(self.catalog, version_of, self.documents).handle)
        discovery = Discovery(self.catalog, self.aggregator, address=self._advertised)
        for name in ("api", "apis"):
            routes.add_path(name, discovery.handle)
        routes.add_subresource("scale", ScaleHandler(self._registry, self._patches).answer)
        subresources = SubresourceHandlers(self._registry, self.catalog, self._deletes)
        routes.add_resource("", "pods", subresources.bind, subresource="binding")
        routes.add_resource("", "bindings", subresources.bind)
        routes.add_resource("", "pods", subresources.evict, subresource="eviction")
        routes.add_resource("", "namespaces", subresources.finalize, subresource="finalize")
        routes.add_resource("", "pods", PodLogs(self.store, self._outbound, self.kubelets).handle, subresource="log")
        proxies = ProxyHandlers(
            self.store, self._outbound, self.kubelets, admission=self.admission, access=self._access
        )
        routes.add_resource("", "services", proxies.service, subresource="proxy")
        routes.add_resource("", "pods", proxies.pod, subresource="proxy")
        routes.add_resource("", "nodes", proxies.node, subresource="proxy")
        for name in ("exec", "attach", "portforward"):
            routes.add_resource("", "pods", proxies.stream, subresource=name)
        if self.identities is not None:
            self.identities.add_routes(routes, address=self._advertised)

    def _advertised(self) -> str:
        """Host and port under which clients find this server."""
        return self._address

    # start and stop

    async def start(self, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> int:
        """Listen and return the port. A second call listens on another port too; discovery shows the first."""
        if self._ticker is None:
            self.events.start()
            for controller in self._controllers:
                controller.start()
            self._ticker = asyncio.create_task(self._tick(), name="apiserver ticker")
        sock = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        bound = int(sock.getsockname()[1])
        self._listeners.append(self._http.listen(sock, tls=tls))
        if len(self._listeners) == 1:
            self._address = f"{host}:{bound}"
            if self.identities is not None:
                self.identities.start(port=bound)
        return bound

    @property
    def running(self) -> bool:
        """Whether the server listens and its background work goes on."""
        return self._ticker is not None and not self._ticker.done() and bool(self._listeners)

    async def stop(self) -> None:
        """Stop listening, end the watches, let requests under way finish, and close."""
        for listener in self._listeners:
            listener.close()
        self._http.end()
        self.watches.end()  # those that have left HTTP for WebSockets
        await self._http.drain(_DRAIN)
        self._http.abort()
        if self.identities is not None:
            await self.identities.stop()
        for controller in reversed(self._controllers):
            await controller.stop()
        await self._outbound.close()
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)
            self._ticker = None
        self._listeners.clear()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            now = time.monotonic()
            self.watches.tick(now)
            self.events.remove_due()
            self.compaction.tick()
            self._http.sweep(now)
