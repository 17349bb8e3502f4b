"""Finds the kubelet of a node by the addresses and the daemon endpoint in the node's status. `proxy` calls it.

It follows `NodeConnectionInfoGetter` of k8s.io/kubernetes/pkg/kubelet/client/kubelet_client.go.
"""

from __future__ import annotations

from typing import Final

from kubewright.api.kinds import GroupResource
from kubewright.apiserver.outbound.http_client import Destination
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.status_errors import not_found, status_error

__all__ = ("kubelet_destination",)

_PORT: Final = 10250
_PREFERRED: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")


def kubelet_destination(store: Store, node: str, *, resource: GroupResource) -> Destination:
    """The kubelet of a node. Its certificate is not verified, as by kube-apiserver without a kubelet CA.

    `resource` is the resource of the request: kube-apiserver's error for a missing node names that.
    """
    entry = store.table("/nodes").get(node)
    if entry is None:
        raise not_found(resource, node)
    status = decode_json(entry.value).get("status") or {}
    addresses = {item.get("type"): item.get("address") for item in reversed(status.get("addresses") or [])}
    # The internal IP first: no DNS resolves the host names of simulated nodes.
    for kind in ("InternalIP", *_PREFERRED):
        if addresses.get(kind):
            endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
            host = str(addresses[kind])
            shown = f"[{host}]" if ":" in host else host
            return Destination(f"{shown}:{endpoint.get('Port') or _PORT}", verify=False)
    raise status_error(500, "", f"no preferred addresses found; known addresses: {_shown(addresses)}")


def _shown(addresses: dict[str, str]) -> str:
    return "[" + " ".join(f"{{{kind} {address}}}" for kind, address in addresses.items()) + "]"
