"""Everything by which others extend this server: webhooks, policies, converters, extension servers and proxies.

Puts these parts together and hands them to whoever asks for them: admission gets judges, definitions a converter, the
front what it passes on. They share one client for connections to elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from kubewright._base.clock import Clock
from kubewright.apiserver.admission.policies.plugin import Policies
from kubewright.apiserver.admission.selectors import NamespaceLookup
from kubewright.apiserver.admission.webhooks.configurations import Configurations
from kubewright.apiserver.admission.webhooks.matcher import Matcher
from kubewright.apiserver.admission.webhooks.mutating import MutatingWebhooks
from kubewright.apiserver.admission.webhooks.validating import ValidatingWebhooks
from kubewright.apiserver.apiextensions.resource_strategy import Converter
from kubewright.apiserver.apiextensions.webhook_converter import WebhookConverter
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.front.discovery import Discovery
from kubewright.apiserver.front.router import Front
from kubewright.apiserver.kinds.access import Access
from kubewright.apiserver.kinds.admission import Admission
from kubewright.apiserver.openapi.aggregated import DocumentsElsewhere
from kubewright.apiserver.openapi.endpoints import OpenApi
from kubewright.apiserver.outbound.http_client import Outbound
from kubewright.apiserver.outbound.service_resolver import ServiceAddresses
from kubewright.apiserver.outbound.webhook_client import Caller
from kubewright.apiserver.proxy.aggregator import Aggregation
from kubewright.apiserver.proxy.connect import Proxies
from kubewright.apiserver.proxy.pod_logs import PodLogs
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.verbs.write import Writing

__all__ = ("Extensions",)

_GROUP = "admissionregistration.k8s.io"


@final
class Extensions:
    """The parts, ready to be used. Making them adds judges to an admission, behind those it has."""

    def __init__(
        self, store: Store, catalog: Catalog, access: Access, *, admission: Admission, writing: Writing, clock: Clock
    ) -> None:
        self.outbound = Outbound()
        self.addresses = ServiceAddresses(store)
        self.aggregation = Aggregation(store, catalog, writing, clock, outbound=self.outbound, addresses=self.addresses)
        self.documents = DocumentsElsewhere(self.aggregation)
        self._store = store
        self._catalog = catalog
        self._admission = admission
        self._access = access
        self._caller = Caller(self.outbound)
        self._add_judges(access)

    def _add_judges(self, access: Access) -> None:
        store, catalog, judges = self._store, self._catalog, self._admission.judges
        matcher = Matcher(NamespaceLookup(store), access)

        def configurations(name: str) -> Configurations:
            return Configurations(store.table(f"{_GROUP}/{name}"), catalog, self.addresses)

        mutating = configurations("mutatingwebhookconfigurations")
        validating = configurations("validatingwebhookconfigurations")
        judges.append(MutatingWebhooks(mutating, matcher, self._caller, earlier=tuple(judges)))
        judges.append(Policies(store, catalog, access))
        judges.append(ValidatingWebhooks(validating, matcher, self._caller))

    def converter_for(self, conversion: Mapping[str, Any]) -> Converter | None:
        """What converts the objects of a definition; None when only the version is to be rewritten."""
        if conversion.get("strategy") != "Webhook":
            return None
        return WebhookConverter(conversion.get("webhook") or {}, self._caller, self.addresses)

    def add_to(self, front: Front, discovery: Discovery, openapi: OpenApi) -> None:
        """Answer what is fetched from elsewhere."""
        proxies = Proxies(self._store, self.outbound, self.addresses, admission=self._admission, access=self._access)
        front.specials["", "pods", "log"] = PodLogs(self._store, self.outbound).answer
        front.specials["", "services", "proxy"] = proxies.service
        front.specials["", "pods", "proxy"] = proxies.pod
        front.specials["", "nodes", "proxy"] = proxies.node
        for name in ("exec", "attach", "portforward"):
            front.specials["", "pods", name] = proxies.way_in
        front.elsewhere = self.aggregation
        discovery.elsewhere = self.aggregation.groups
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
