"""Where the kubelet of a node listens, as the node's status says."""

from __future__ import annotations

from typing import Final

from kubewright.api.kinds import GroupResource
from kubewright.apiserver.outbound.http_client import Destination
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.status_errors import not_found, status_error

__all__ = ("kubelet_of",)

_PORT: Final = 10250
_PREFERRED: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")


def kubelet_of(store: Store, node: str, *, asked_for: GroupResource) -> Destination:
    """The kubelet of a node; its certificate is not checked, as no server does that unless it is told to.

    `asked_for` is the resource of the request: a node that is missing is said to be one of those, as the real server
    has it.
    """
    entry = store.table("/nodes").get(node)
    if entry is None:
        raise not_found(asked_for, node)
    status = decode_json(entry.value).get("status") or {}
    addresses = {item.get("type"): item.get("address") for item in reversed(status.get("addresses") or [])}
    # A host name of a simulated node is known to nobody, its address always is.
    for kind in ("InternalIP", *_PREFERRED):
        if addresses.get(kind):
            endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
            host = str(addresses[kind])
            shown = f"[{host}]" if ":" in host else host
            return Destination(f"{shown}:{endpoint.get('Port') or _PORT}", verify=False)
    raise status_error(500, "", f"no preferred addresses found; known addresses: {_shown(addresses)}")


def _shown(addresses: dict[str, str]) -> str:
    return "[" + " ".join(f"{{{kind} {address}}}" for kind, address in addresses.items()) + "]"
