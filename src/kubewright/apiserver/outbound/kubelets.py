"""Finds the kubelet of a node by the addresses and the daemon endpoint in the node's status, and how to talk to it.

The API server shows kubelets its client certificate. It verifies theirs if it has a CA for them; without one it does
not, as kube-apiserver without `--kubelet-certificate-authority`. Logs, exec, attach and port-forward go to any address
a node reports, as those of kube-apiserver do: their paths are fixed. `nodes/proxy` lets the user choose the path, so it
refuses the addresses of this machine, unless the kubelet is one that the cluster itself registered: those of simulated
nodes listen on loopback. `proxy` calls it. It follows `NodeConnectionInfoGetter` of
k8s.io/kubernetes/pkg/kubelet/client/kubelet_client.go and `ResourceLocation` of
k8s.io/kubernetes/pkg/registry/core/node/strategy.go.
"""

from __future__ import annotations

from typing import Any, Final, final

from msgspec import Struct

from kubewright.api.kinds import GroupResource
from kubewright.apiserver.outbound.addresses import is_global_unicast, resolve
from kubewright.apiserver.outbound.http_client import Destination
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.status_errors import bad_request, not_found, status_error

__all__ = ("KubeletClientConfig", "Kubelets")

_PORT: Final = 10250
_PREFERRED: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")


@final
class KubeletClientConfig(Struct, frozen=True, kw_only=True):
    """The credentials of the API server for kubelets, and the CA of their certificates."""

    certificate: tuple[str, str] = ("", "")
    """The files of the client certificate and its key: `--kubelet-client-certificate`, `--kubelet-client-key`."""
    authorities: bytes = b""
    """CA certificates as PEM (`--kubelet-certificate-authority`); if empty, kubelets are not verified."""


@final
class Kubelets:
    """The kubelets of the nodes in the store."""

    def __init__(self, store: Store, config: KubeletClientConfig) -> None:
        self._store = store
        self._config = config
        self._registered: dict[tuple[str, int], bytes] = {}

    def register(self, host: str, port: int, *, authorities: bytes) -> None:
        """Let `nodes/proxy` connect to this kubelet although it is on this machine; `authorities` verify it.

        Only the program that runs the server can do this: nothing that users write to the API makes such an exception.
        """
        self._registered[host, port] = authorities

    def destination(self, node: str, *, resource: GroupResource) -> Destination:
        """The kubelet of a node.

        `resource` is the resource of the request: kube-apiserver's error for a missing node names that.
        """
        return self._kubelet(*self._address(node, resource))

    async def proxy_destination(self, node: str, scheme: str, port: str, *, resource: GroupResource) -> Destination:
        """What `nodes/proxy` connects to: the kubelet, or another port of the node; 400 if that is not allowed."""
        host, kubelet_port = self._address(node, resource)
        is_kubelet = port in ("", str(kubelet_port))
        if is_kubelet and (host, kubelet_port) in self._registered:
            return self._kubelet(host, kubelet_port)
        try:
            addresses = await resolve(host)
        except (OSError, UnicodeError):
            raise bad_request(f"lookup {host}: no such host") from None
        if not addresses or not all(map(is_global_unicast, addresses)):
            raise bad_request("address not allowed")
        number = kubelet_port if is_kubelet else _port_number(port)

        def dial() -> tuple[str, int]:
            return addresses[0], number  # the address that was checked: a second lookup could give another

        if is_kubelet:
            return self._kubelet(host, kubelet_port, dial=dial)
        return Destination(_shown(host, number), host, secure=scheme == "https", verify=False, dial=dial)

    def _kubelet(self, host: str, port: int, **options: Any) -> Destination:
        authorities = self._registered.get((host, port)) or self._config.authorities
        return Destination(
            _shown(host, port),
            host,
            authorities=authorities,
            verify=bool(authorities),
            certificate=self._config.certificate,
            **options,
        )

    def _address(self, node: str, resource: GroupResource) -> tuple[str, int]:
        entry = self._store.table("/nodes").get(node)
        if entry is None:
            raise not_found(resource, node)
        status = decode_json(entry.value).get("status") or {}
        addresses = {item.get("type"): item.get("address") for item in reversed(status.get("addresses") or [])}
        # The internal IP first: no DNS resolves the host names of simulated nodes.
        for kind in ("InternalIP", *_PREFERRED):
            if addresses.get(kind):
                endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
                return str(addresses[kind]), int(endpoint.get("Port") or _PORT)
        known = " ".join(f"{{{kind} {address}}}" for kind, address in addresses.items())
        raise status_error(500, "", f"no preferred addresses found; known addresses: [{known}]")


def _port_number(port: str) -> int:
    if not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise bad_request(f'invalid port "{port}"')
    return int(port)


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
