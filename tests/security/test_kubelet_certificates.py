"""The API server proves to kubelets who it is, and verifies them where it knows their CA.

The kubelet of these tests is a stub that demands a client certificate of the cluster's CA, as a real one that is given
the CA as its `--client-ca-file`.

Covers: kubewright.apiserver.outbound.kubelets, kubewright.cluster.planes, kubewright.cluster.pki
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.builders.pods import pod
from tests.planes import Plane, fresh_namespace

from kubewright import Client
from kubewright._base.certificates import Authority
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.errors import ApiError
from kubewright.k8s.core.v1 import ServiceAccount


class DemandingKubelet:
    """Serves one log to whoever shows a certificate of the CA, and keeps the names on them."""

    def __init__(self, clients: bytes, serving: Authority, folder: Path) -> None:
        self.callers: list[str] = []
        pair = serving.server("kubelet", hosts=("127.0.0.1", "localhost"))
        file = folder / "kubelet.pem"
        file.write_bytes(pair.certificate + pair.key)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(file)
        self._tls.load_verify_locations(cadata=clients.decode())
        self._tls.verify_mode = ssl.CERT_REQUIRED

    async def __aenter__(self) -> DemandingKubelet:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        subject = dict(pair for group in writer.get_extra_info("peercert")["subject"] for pair in group)
        self.callers.append(subject["commonName"])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlog\n")
        writer.close()


@asynccontextmanager
async def node(client: Client, port: int) -> AsyncIterator[str]:
    """A node with a kubelet at that port, and the namespace of a pod `web` on it."""
    namespace = await fresh_namespace(client, prefix="kubelet")
    async with client.watch(ServiceAccount, namespace=namespace, initial_events=True) as events:
        await anext(events)
    await client.request("POST", "/api/v1/nodes", body=json.dumps({"metadata": {"name": namespace}}).encode())
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    await client.request(
        "PATCH",
        f"/api/v1/nodes/{namespace}/status",
        body=json.dumps({"status": status}).encode(),
        content_type="application/merge-patch+json",
    )
    await client.create(pod("web", namespace, nodeName=namespace))
    yield namespace
    await client.request("DELETE", f"/api/v1/nodes/{namespace}")


async def test_a_kubelet_sees_the_certificate_of_the_api_server(plane: Plane, client: Client, tmp_path: Path) -> None:
    serving = Authority.create("signs-itself")  # as most kubelets do; it is not verified
    async with DemandingKubelet(plane.ca_data, serving, tmp_path) as kubelet, node(client, kubelet.port) as namespace:
        assert await client.pods.read_logs("web", namespace=namespace) == "log\n"

        assert kubelet.callers == ["kube-apiserver-kubelet-client"]


async def test_a_kubelet_of_another_authority_is_refused_where_one_is_given(tmp_path: Path) -> None:
    known, unknown = Authority.create("known"), Authority.create("unknown")
    file = tmp_path / "kubelets.crt"
    file.write_bytes(known.certificate)
    async with EmbeddedCluster(nodes=0, pods=False, kubelet_certificate_authority=file) as cluster:
        client = cluster.client
        async with (
            DemandingKubelet(cluster.ca_data, known, tmp_path) as kubelet,
            node(client, kubelet.port) as namespace,
        ):
            assert await client.pods.read_logs("web", namespace=namespace) == "log\n"
        async with (
            DemandingKubelet(cluster.ca_data, unknown, tmp_path) as kubelet,
            node(client, kubelet.port) as namespace,
        ):
            with pytest.raises(ApiError, match="certificate signed by unknown authority"):
                await client.pods.read_logs("web", namespace=namespace)
            assert kubelet.callers == []


async def test_the_kubelet_of_simulated_nodes_cannot_be_replaced(
    embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """Somebody who listens at the kubelet's port after it is gone has no certificate of the cluster's CA."""
    async with DemandingKubelet(embedded_cluster.ca_data, Authority.create("kubewright-ca"), tmp_path) as impostor:
        embedded_cluster.server.kubelets.register("127.0.0.1", impostor.port, authorities=embedded_cluster.ca_data)
        async with node(embedded_cluster.client, impostor.port) as namespace:
            with pytest.raises(ApiError, match="failed to verify certificate"):
                await embedded_cluster.client.pods.read_logs("web", namespace=namespace)
        assert impostor.callers == []
