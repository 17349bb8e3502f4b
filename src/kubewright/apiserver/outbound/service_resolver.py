"""Resolves a Service and port to an address to connect to. Webhooks, the aggregator and the proxies call it.

There is no cluster network, so no cluster IP can be reached: as kube-apiserver's endpoint-based service resolver
(k8s.io/kube-aggregator/pkg/apiserver/resolvers.go), it takes one of the ready endpoints instead. For a server on the
developer's machine, `overrides` has its address, or the Service is of type ExternalName.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, final

from kubewright.apiserver.outbound.http_client import HttpClientError
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("ServiceResolver",)

_SERVICE: Final = "kubernetes.io/service-name"


@final
class ServiceResolver:
    """Resolves services by their EndpointSlices in the store, in turn."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.overrides: dict[tuple[str, str], tuple[str, int]] = {}
        """Addresses that win over the store, by namespace and name."""
        self._turn = 0

    def resolve(self, namespace: str, name: str, port: int | str) -> tuple[str, int]:
        """Host and port for one connection; raises `HttpClientError` with kube-apiserver's message."""
        known = self.overrides.get((namespace, name))
        if known is not None:
            return known
        entry = self._store.table("/services").get(f"{namespace}/{name}")
        if entry is None:
            raise HttpClientError(f'service "{name}" not found')
        spec = decode_json(entry.value).get("spec") or {}
        if spec.get("type") == "ExternalName":
            return str(spec.get("externalName")), int(port)
        wanted = _port(spec, port)
        if wanted is None:
            raise HttpClientError(f'no service port {port} found for service "{name}"')
        found = list(self._endpoints(namespace, name, str(wanted.get("name") or "")))
        if not found:
            raise HttpClientError(f'no endpoints available for service "{name}"')
        self._turn += 1
        return found[self._turn % len(found)]

    def _endpoints(self, namespace: str, name: str, port_name: str) -> Iterator[tuple[str, int]]:
        for entry in self._store.table("discovery.k8s.io/endpointslices").entries(namespace):
            tree = decode_json(entry.value)
            if (tree["metadata"].get("labels") or {}).get(_SERVICE) != name:
                continue
            number = next(
                (one["port"] for one in tree.get("ports") or () if (one.get("name") or "") == port_name), None
            )
            for endpoint in tree.get("endpoints") or ():
                if number and (endpoint.get("conditions") or {}).get("ready", True) and endpoint.get("addresses"):
                    yield str(endpoint["addresses"][0]), int(number)


def _port(spec: dict[str, Any], port: int | str) -> dict[str, Any] | None:
    """The port of a service by its number or its name."""
    text = str(port)
    for one in spec.get("ports") or ():
        if str(one.get("port")) == text or (one.get("name") or "") == text:
            found: dict[str, Any] = one
            return found
    return None
