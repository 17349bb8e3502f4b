"""The embedded cluster: what it offers besides TLS, and what it refuses to offer."""

from __future__ import annotations

import json
import socket

import pytest

from kubewright import Client, Config, connect
from kubewright.client.config.credentials import StaticToken
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.errors import ClusterError, Forbidden
from kubewright.k8s.core.v1 import Namespace, Pod


async def names(client: Client) -> set[str]:
    return {namespace.metadata.name for namespace in await client.list(Namespace)}


async def test_without_tls_a_token_says_who_you_are_and_nobody_is_anonymous() -> None:
    async with EmbeddedCluster(controllers=False, http_port=0) as cluster:
        token = await service_account_token(cluster)
        async with connect(Config(server=cluster.http_url)) as stranger:
            with pytest.raises(Forbidden, match="system:anonymous"):
                await stranger.list(Pod, namespace="default")
        async with connect(Config(server=cluster.http_url, credentials=StaticToken(token))) as robot:
            with pytest.raises(Forbidden, match="system:serviceaccount:default:robot"):
                await robot.list(Pod, namespace="default")
        assert {"default", "kube-system"} <= await names(cluster.client)


async def test_there_is_no_address_without_tls_unless_it_was_asked_for() -> None:
    async with EmbeddedCluster(controllers=False) as cluster:
        with pytest.raises(ClusterError, match="http_port"):
            _ = cluster.http_url


async def test_a_port_that_is_taken_is_told_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(ClusterError, match=f"cannot listen on 127.0.0.1:{port}: it is in use; choose another port"):
            await EmbeddedCluster(controllers=False, port=port).start()

    async with EmbeddedCluster(controllers=False, port=port) as cluster:
        assert cluster.url.endswith(f":{port}")


async def test_a_port_that_cannot_be_is_told_in_a_sentence() -> None:
    with pytest.raises(ClusterError, match="There is no port 70000; choose one up to 65535"):
        await EmbeddedCluster(controllers=False, port=70000).start()


async def service_account_token(cluster: EmbeddedCluster) -> str:
    await cluster.client.request(
        "POST",
        "/api/v1/namespaces/default/serviceaccounts",
        body=b'{"metadata": {"name": "robot"}}',
    )
    answer = await cluster.client.request(
        "POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", body=b'{"spec": {}}'
    )
    token: str = json.loads(answer.body)["status"]["token"]
    return token
