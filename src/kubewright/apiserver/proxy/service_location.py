"""Where `services/proxy` connects to: a pod behind the service, and nothing else.

As kube-apiserver, it takes an address of the Endpoints only if that refers to a pod of the same namespace which has the
address. So neither a Service of type ExternalName nor an address that somebody wrote into Endpoints leads elsewhere.
Webhooks and aggregated API servers are resolved by `outbound.service_resolver`: administrators configure those. Called
by `connect`. Upstream: `ResourceLocation` in k8s.io/kubernetes/pkg/registry/core/service/storage/storage.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, final

from kubewright.api.kinds import GroupResource
from kubewright.apiserver.outbound.addresses import is_global_unicast
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.status_errors import not_found, unavailable

__all__ = ("ServiceLocation",)

_SERVICES: Final = GroupResource("", "services")


@final
class ServiceLocation:
    """Finds the pods behind services, in turn."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = 0

    def resolve(self, namespace: str, name: str, port: str, *, shown: str) -> tuple[str, int]:
        """Host and port for a service and the name or number of one of its ports; `shown` is the name in errors."""
        if port.isascii() and port.isdecimal():
            spec = self._get("/services", namespace, name).get("spec") or {}
            named = next((one for one in spec.get("ports") or () if one.get("port") == int(port)), None)
            if named is None:
                raise unavailable(f'no service port {int(port)} found for service "{name}"')
            port = str(named.get("name") or "")
        # kube-apiserver looks no service up here; its error for missing Endpoints names the resource of the request.
        subsets = self._get("/endpoints", namespace, name).get("subsets") or []
        if not subsets:
            raise unavailable(f'no endpoints available for service "{name}"')
        found = list(self._pods(namespace, subsets, port))
        if not found:
            raise unavailable(f'no endpoints available for service "{shown}"')
        self._turn += 1
        return found[self._turn % len(found)]

    def _get(self, table: str, namespace: str, name: str) -> dict[str, Any]:
        entry = self._store.table(table).get(f"{namespace}/{name}")
        if entry is None:
            raise not_found(_SERVICES, name)
        tree: dict[str, Any] = decode_json(entry.value)
        return tree

    def _pods(self, namespace: str, subsets: list[Mapping[str, Any]], port: str) -> Iterator[tuple[str, int]]:
        for subset in subsets:
            numbers = [int(one["port"]) for one in subset.get("ports") or () if (one.get("name") or "") == port]
            for address in (subset.get("addresses") or ()) if numbers else ():
                if self._is_pod(namespace, address):
                    yield str(address["ip"]), numbers[0]

    def _is_pod(self, namespace: str, address: Mapping[str, Any]) -> bool:
        target = address.get("targetRef") or {}
        if target.get("namespace") != namespace or not is_global_unicast(str(address.get("ip"))):
            return False
        entry = self._store.table("/pods").get(f"{namespace}/{target.get('name')}")
        if entry is None:
            return False
        status = decode_json(entry.value).get("status") or {}
        return any(one.get("ip") == address.get("ip") for one in status.get("podIPs") or ())
