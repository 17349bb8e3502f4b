"""Everything by which others extend this server: webhooks, policies, converters, extension servers and proxies.

Puts these parts together and hands them to whoever asks for them: admission gets judges, definitions a converter, the
front what it passes on. They share one client for connections to elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from kubewright._base.clock import Clock
from kubewright.apiserver.apiextensions.resource_strategy import Converter
from kubewright.apiserver.apiextensions.webhook_converter import WebhookConverter
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.front.discovery import Discovery
from kubewright.apiserver.front.router import Router
from kubewright.apiserver.kinds.access import Access
from kubewright.apiserver.kinds.admission import Chain
from kubewright.apiserver.openapi.aggregated import AggregatedDocuments
from kubewright.apiserver.openapi.endpoints import OpenApi
from kubewright.apiserver.outbound.http_client import HttpClient
from kubewright.apiserver.outbound.service_resolver import ServiceResolver
from kubewright.apiserver.outbound.webhook_client import WebhookClient
from kubewright.apiserver.proxy.aggregator import Aggregator
from kubewright.apiserver.proxy.connect import ProxyHandlers
from kubewright.apiserver.proxy.pod_logs import PodLogs
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.verbs.write import WriteHandler

__all__ = ("Extensions",)

_GROUP = "admissionregistration.k8s.io"


@final
class Extensions:
    """The parts, ready to be used."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        access: Access,
        *,
        admission: Chain,
        writes: WriteHandler,
        clock: Clock,
        outbound: HttpClient,
        addresses: ServiceResolver,
        webhooks: WebhookClient,
    ) -> None:
        self.outbound = outbound
        self.addresses = addresses
        self.aggregation = Aggregator(store, catalog, writes, clock, outbound=self.outbound, addresses=self.addresses)
        self.documents = AggregatedDocuments(self.aggregation)
        self._store = store
        self._catalog = catalog
        self._admission = admission
        self._access = access
        self._caller = webhooks

    def converter_for(self, conversion: Mapping[str, Any]) -> Converter | None:
        """What converts the objects of a definition; None when only the version is to be rewritten."""
        if conversion.get("strategy") != "Webhook":
            return None
        return WebhookConverter(conversion.get("webhook") or {}, self._caller, self.addresses)

    def add_to(self, front: Router, discovery: Discovery, openapi: OpenApi) -> None:
        """Answer what is fetched from elsewhere."""
        proxies = ProxyHandlers(
            self._store, self.outbound, self.addresses, admission=self._admission, access=self._access
        )
        front.subresource_handlers["", "pods", "log"] = PodLogs(self._store, self.outbound).answer
        front.subresource_handlers["", "services", "proxy"] = proxies.service
        front.subresource_handlers["", "pods", "proxy"] = proxies.pod
        front.subresource_handlers["", "nodes", "proxy"] = proxies.node
        for name in ("exec", "attach", "portforward"):
            front.subresource_handlers["", "pods", name] = proxies.way_in
        front.aggregator = self.aggregation
        discovery.aggregator = self.aggregation.groups
        discovery.priorities = self.aggregation.priorities
        openapi.others = self.documents
        self.aggregation.on_change.append(discovery.forget)

    def start(self) -> None:
        """Look after extension servers."""
        self.aggregation.start()
        self.documents.start()

    async def stop(self) -> None:
        """Close connections."""
        await self.documents.stop()
        await self.aggregation.stop()
        await self.outbound.close()
