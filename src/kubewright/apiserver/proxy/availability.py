"""Checks an aggregated API server and gives the condition Available of its APIService.

First the Service and its endpoints, then a discovery request to the server, whose certificate is not verified: a wrong
caBundle must not hide whether the server runs. `aggregator` calls it and writes the condition. It follows
k8s.io/kube-aggregator/pkg/controllers/status/remote/remote_available_controller.go.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, final

from msgspec import Struct
from msgspec.structs import replace

from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.outbound.http_client import HttpClient, HttpClientError
from kubewright.apiserver.proxy.api_services import AggregatedServer, identity_headers
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.users import User

__all__ = ("AvailabilityChecker", "AvailableCondition")

_AGGREGATOR: Final = User("system:kube-aggregator", ("system:masters",))
_SECONDS: Final = 5.0
_CLIENT_TIMEOUT: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_MAX_BODY: Final = 8 * 1024 * 1024
_SERVICE: Final = "kubernetes.io/service-name"


class AvailableCondition(Struct, frozen=True):
    """The condition Available of an APIService."""

    reason: str
    message: str

    @property
    def available(self) -> bool:
        """Whether the condition is True."""
        return self.reason == "Passed"

    @property
    def retryable(self) -> bool:
        """Whether a retry may pass without any change in the store."""
        return self.reason == "FailedDiscoveryCheck"

    def write(self, tree: Tree, now: str) -> bool:
        """Set the condition of an APIService; returns whether that changed it."""
        conditions = tree.setdefault("status", {}).setdefault("conditions", [])
        status = "True" if self.available else "False"
        wanted = {"type": "Available", "status": status, "reason": self.reason, "message": self.message}
        for place, item in enumerate(conditions):
            if item.get("type") == "Available":
                if all(item.get(key) == value for key, value in wanted.items()):
                    return False
                since = item.get("lastTransitionTime") if item.get("status") == status else now
                conditions[place] = {**wanted, "lastTransitionTime": since}
                return True
        conditions.append({**wanted, "lastTransitionTime": now})
        return True


@final
class AvailabilityChecker:
    """Checks aggregated API servers."""

    def __init__(self, store: Store, outbound: HttpClient) -> None:
        self._services = store.table("/services")
        self._slices = store.table("discovery.k8s.io/endpointslices")
        self._outbound = outbound

    async def check(self, server: AggregatedServer) -> AvailableCondition:
        """Check one server."""
        return self._check_service(server) or await self._check_discovery(server)

    def _check_service(self, server: AggregatedServer) -> AvailableCondition | None:
        """The failed check of its Service and endpoints; None if they are fine."""
        namespace, name, number = server.service
        service = f'service/{name} in "{namespace}"'
        entry = self._services.get(f"{namespace}/{name}")
        if entry is None:
            return AvailableCondition("ServiceNotFound", f"{service} is not present")
        spec = decode_json(entry.value).get("spec") or {}
        if spec.get("type", "ClusterIP") != "ClusterIP":
            return None
        port = next((one for one in spec.get("ports") or () if one.get("port") == number), None)
        if port is None:
            return AvailableCondition("ServicePortError", f"{service} is not listening on port {number}")
        slices = self._slices_of(namespace, name)
        if not slices:
            return AvailableCondition("EndpointsNotFound", f"cannot find endpointslices for {service}")
        port_name = port.get("name") or ""
        if not any(_is_ready(tree, port_name) for tree in slices):
            text = f'endpointslices for {service} have no addresses with port name "{port_name}"'
            return AvailableCondition("MissingEndpoints", text)
        return None

    def _slices_of(self, namespace: str, name: str) -> list[Any]:
        trees = (decode_json(entry.value) for entry in self._slices.entries(namespace))
        return [tree for tree in trees if (tree["metadata"].get("labels") or {}).get(_SERVICE) == name]

    async def _check_discovery(self, server: AggregatedServer) -> AvailableCondition:
        try:
            host, port = server.destination.address()
        except HttpClientError as error:
            return AvailableCondition("FailedDiscoveryCheck", str(error))
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        url = f"https://{place}{server.path}"
        destination = replace(server.destination, host=place, server_name=host, verify=False, authorities=b"")
        try:
            async with asyncio.timeout(_SECONDS):
                headers = identity_headers(_AGGREGATOR)
                incoming = await self._outbound.request(destination, "GET", server.path, headers=headers)
                await incoming.body(_MAX_BODY)
        except (HttpClientError, TimeoutError) as error:
            text = str(error) or _CLIENT_TIMEOUT
            return AvailableCondition(
                "FailedDiscoveryCheck", f'failing or missing response from {url}: Get "{url}": {text}'
            )
        if not 200 <= incoming.code < 300:
            text = f"failing or missing response from {url}: bad status from {url}: {incoming.code}"
            return AvailableCondition("FailedDiscoveryCheck", text)
        return AvailableCondition("Passed", "all checks passed")


def _is_ready(tree: Tree, port_name: str) -> bool:
    ready = any((one.get("conditions") or {}).get("ready", True) for one in tree.get("endpoints") or ())
    ports = tree.get("ports") or ()
    return ready and any((one.get("name") or "") == port_name and one.get("port") for one in ports)
