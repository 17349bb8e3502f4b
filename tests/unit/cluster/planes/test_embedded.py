"""The embedded cluster: its port without TLS, and errors of ports."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

import pytest

from kubewright import Client, Config, connect
from kubewright.client.config.credentials import StaticToken
from kubewright.cluster.planes.cluster import Cluster
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.errors import ClusterError, Forbidden
from kubewright.k8s.core.v1 import Namespace, Pod


async def names(client: Client) -> set[str]:
    return {namespace.metadata.name for namespace in await client.list(Namespace)}


async def test_without_tls_requests_use_a_token_or_are_anonymous() -> None:
    async with EmbeddedCluster(controllers=False, http_port=0) as cluster:
        token = await service_account_token(cluster)
        async with connect(Config(server=cluster.http_url)) as anonymous:
            with pytest.raises(Forbidden, match="system:anonymous"):
                await anonymous.list(Pod, namespace="default")
        async with connect(Config(server=cluster.http_url, credentials=StaticToken(token))) as robot:
            with pytest.raises(Forbidden, match="system:serviceaccount:default:robot"):
                await robot.list(Pod, namespace="default")
        assert {"default", "kube-system"} <= await names(cluster.client)


async def test_there_is_no_address_without_tls_unless_http_port_is_given() -> None:
    async with EmbeddedCluster(controllers=False) as cluster:
        with pytest.raises(ClusterError, match="http_port"):
            _ = cluster.http_url


async def test_a_port_in_use_is_an_error_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(ClusterError, match=f"cannot listen on 127.0.0.1:{port}: it is in use; choose another port"):
            await EmbeddedCluster(controllers=False, port=port).start()

    async with EmbeddedCluster(controllers=False, port=port) as cluster:
        assert cluster.url.endswith(f":{port}")


async def test_an_impossible_port_is_an_error_that_names_it() -> None:
    with pytest.raises(ClusterError, match="There is no port 70000; choose one up to 65535"):
        await EmbeddedCluster(controllers=False, port=70000).start()


async def service_account_token(cluster: EmbeddedCluster) -> str:
    await cluster.client.request(
        "POST",
        "/api/v1/namespaces/default/serviceaccounts",
        body=b'{"metadata": {"name": "robot"}}',
    )
    response = await cluster.client.request(
        "POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", body=b'{"spec": {}}'
    )
    token: str = json.loads(response.body)["status"]["token"]
    return token


@pytest.mark.parametrize("name", ["client", "config", "kubeconfig", "folder", "url", "ca_data"])
@pytest.mark.parametrize("make", [Cluster.embedded, Cluster.real])
def test_what_a_start_sets_is_not_there_before_it_and_says_so(make: Callable[[], Cluster], name: str) -> None:
    with pytest.raises(ClusterError, match=r"the cluster has not been started, so it has no .*; write `async with"):
        getattr(make(), name)


def test_a_misspelt_attribute_of_a_cluster_is_none() -> None:
    with pytest.raises(AttributeError, match="'EmbeddedCluster' object has no attribute 'clinet'"):
        assert Cluster.embedded().clinet  # type: ignore[attr-defined]  # the mistake
