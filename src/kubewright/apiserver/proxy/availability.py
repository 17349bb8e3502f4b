"""Whether an extension server can be reached and answers: the condition `Available` of its APIService.

First its Service is looked at, and the endpoints behind it, then the server is asked for what it must be able to say.
Whose certificate it shows does not matter for that. `aggregation` asks, and writes what is found.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, final

from msgspec import Struct
from msgspec.structs import replace

from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.outbound.http_client import HttpClient, HttpClientError
from kubewright.apiserver.proxy.api_services import ExtensionServer, identity_headers
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.users import User

__all__ = ("Availability", "Finding")

_AGGREGATOR: Final = User("system:kube-aggregator", ("system:masters",))
_SECONDS: Final = 5.0
_LATE: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_LARGEST: Final = 16 * 1024 * 1024
_SERVICE: Final = "kubernetes.io/service-name"


class Finding(Struct, frozen=True):
    """What was found, in the words of the condition."""

    reason: str
    message: str

    @property
    def available(self) -> bool:
        """Whether all is well."""
        return self.reason == "Passed"

    @property
    def passes_by_itself(self) -> bool:
        """Whether it may be well the next moment, without anything being written."""
        return self.reason == "FailedDiscoveryCheck"

    def write(self, tree: Tree, now: str) -> bool:
        """Write the condition into an APIService; whether that changed anything."""
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
class Availability:
    """Looks at extension servers."""

    def __init__(self, store: Store, outbound: HttpClient) -> None:
        self._services = store.table("/services")
        self._slices = store.table("discovery.k8s.io/endpointslices")
        self._outbound = outbound

    async def look(self, server: ExtensionServer) -> Finding:
        """One look at one of them."""
        return self._missing(server) or await self._answer(server)

    def _missing(self, server: ExtensionServer) -> Finding | None:
        """What the cluster lacks for it to be reached."""
        namespace, name, number = server.service
        about = f'service/{name} in "{namespace}"'
        entry = self._services.get(f"{namespace}/{name}")
        if entry is None:
            return Finding("ServiceNotFound", f"{about} is not present")
        spec = decode_json(entry.value).get("spec") or {}
        if spec.get("type", "ClusterIP") != "ClusterIP":
            return None
        port = next((one for one in spec.get("ports") or () if one.get("port") == number), None)
        if port is None:
            return Finding("ServicePortError", f"{about} is not listening on port {number}")
        slices = self._slices_of(namespace, name)
        if not slices:
            return Finding("EndpointsNotFound", f"cannot find endpointslices for {about}")
        port_name = port.get("name") or ""
        if not any(_is_ready(tree, port_name) for tree in slices):
            text = f'endpointslices for {about} have no addresses with port name "{port_name}"'
            return Finding("MissingEndpoints", text)
        return None

    def _slices_of(self, namespace: str, name: str) -> list[Any]:
        trees = (decode_json(entry.value) for entry in self._slices.entries(namespace))
        return [tree for tree in trees if (tree["metadata"].get("labels") or {}).get(_SERVICE) == name]

    async def _answer(self, server: ExtensionServer) -> Finding:
        try:
            host, port = server.destination.address()
        except HttpClientError as error:
            return Finding("FailedDiscoveryCheck", str(error))
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        url = f"https://{place}{server.path}"
        destination = replace(server.destination, host=place, server_name=host, verify=False, authorities=b"")
        try:
            async with asyncio.timeout(_SECONDS):
                headers = identity_headers(_AGGREGATOR)
                incoming = await self._outbound.request(destination, "GET", server.path, headers=headers)
                await incoming.body(_LARGEST)
        except (HttpClientError, TimeoutError) as error:
            text = str(error) or _LATE
            return Finding("FailedDiscoveryCheck", f'failing or missing response from {url}: Get "{url}": {text}')
        if not 200 <= incoming.code < 300:
            text = f"failing or missing response from {url}: bad status from {url}: {incoming.code}"
            return Finding("FailedDiscoveryCheck", text)
        return Finding("Passed", "all checks passed")


def _is_ready(tree: Tree, port_name: str) -> bool:
    ready = any((one.get("conditions") or {}).get("ready", True) for one in tree.get("endpoints") or ())
    ports = tree.get("ports") or ()
    return ready and any((one.get("name") or "") == port_name and one.get("port") for one in ports)
