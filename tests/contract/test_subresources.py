"""Status, scale, eviction, ephemeral containers, logs, token requests.

Covers: kubewright.apiserver.verbs, kubewright.client
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.builders.pods import pod

from kubewright import Client, Dynamic, ObjectMeta
from kubewright._base.certificates import Authority
from kubewright.errors import BadRequest, NotFound
from kubewright.k8s.core.v1 import EphemeralContainer, Node, Pod


async def test_status_is_written_apart_from_the_spec(client: Client, namespace: str, widget: Any) -> None:
    created = await client.create(widget.named("w", namespace))
    created.spec.size = 9
    created.status.ready = 4
    created.status.observed_generation = created.metadata.generation

    patched = await client.patch(created, subresource="status")

    assert (patched.status.ready, patched.spec.size) == (4, 1)
    assert patched.metadata.generation == created.metadata.generation


async def test_main_patch_leaves_the_status_alone(client: Client, namespace: str, widget: Any) -> None:
    created = await client.create(widget.named("w", namespace))
    created.spec.size = 9
    created.status.ready = 4

    patched = await client.patch(created)

    assert (patched.status.ready, patched.spec.size) == (0, 9)


async def test_status_of_zero_is_said_on_the_wire(client: Client, namespace: str, widget: Any) -> None:
    created = await client.create(widget.named("w", namespace))
    created.status.ready = 4
    changed = await client.patch(created, subresource="status")
    changed.status.ready = 0

    await client.patch(changed, subresource="status")

    whole = await client.get(Dynamic("contract.example.io/v1", "Widget"), "w", namespace=namespace)
    assert whole.get("status.ready") == 0


async def test_status_is_applied_and_updated(client: Client, namespace: str, widget: Any) -> None:
    await client.create(widget.named("w", namespace))
    wanted = widget.named("w", namespace)
    wanted.status.ready = 2

    applied = await client.apply(wanted, subresource="status", field_manager="me")
    applied.status.ready = 3
    updated = await client.update(applied, subresource="status")

    assert (applied.status.ready is not None, updated.status.ready) == (True, 3)


async def test_subresource_is_read(client: Client, namespace: str, widget: Any) -> None:
    await client.create(widget.named("w", namespace))

    read = await client.get(widget, "w", namespace=namespace, subresource="status")

    assert read.metadata.name == "w"


async def test_scale_is_read_and_set(client: Client, namespace: str, widget: Any) -> None:
    await client.create(widget.named("w", namespace))

    scaled = await client.scales.set(widget, "w", 5, namespace=namespace)

    assert scaled.spec.replicas == 5
    assert (await client.scales.get(widget, "w", namespace=namespace)).spec.replicas == 5
    assert (await client.get(widget, "w", namespace=namespace)).spec.size == 5


async def test_kind_without_scale_is_not_found(client: Client, namespace: str) -> None:
    with pytest.raises(NotFound):
        await client.scales.get(Pod, "p", namespace=namespace)


async def test_eviction_deletes_a_pod(client: Client, namespace: str) -> None:
    # On no node, or it would be given its grace period.
    await client.create(pod("p", namespace, schedulerName="nobody"))

    await client.pods.evict("p", namespace=namespace)

    with pytest.raises(NotFound):
        await client.get(Pod, "p", namespace=namespace)


async def test_dry_run_eviction_spares_the_pod(client: Client, namespace: str) -> None:
    await client.create(pod("p", namespace))

    await client.pods.evict("p", namespace=namespace, dry_run=True)

    assert (await client.get(Pod, "p", namespace=namespace)).metadata.deletion_timestamp is None


async def test_ephemeral_containers_are_added_one_after_the_other(client: Client, namespace: str) -> None:
    await client.create(pod("p", namespace))

    await client.pods.add_ephemeral_container("p", EphemeralContainer(name="d1", image="busybox"), namespace=namespace)
    await client.pods.add_ephemeral_container("p", {"name": "d2", "image": "busybox"}, namespace=namespace)

    found = await client.get(Pod, "p", namespace=namespace)
    assert {container.name for container in found.spec.ephemeral_containers or ()} == {"d1", "d2"}


async def test_token_is_requested_through_a_subresource(client: Client, namespace: str) -> None:
    account = Dynamic("v1", "ServiceAccount")
    await client.create(account.named("robot", namespace))
    path = await client.object_path(account, "robot", namespace=namespace, subresource="token")

    response = await client.request(
        "POST", path, body=b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest"}'
    )

    assert b'"token":"' in response.body


async def test_logs_of_a_pod_without_a_node_are_empty(client: Client, namespace: str) -> None:
    await client.create(pod("p", namespace, schedulerName="nobody"))

    assert await client.pods.read_logs("p", namespace=namespace) == ""


async def test_logs_of_an_unknown_container_are_a_bad_request(client: Client, namespace: str) -> None:
    await client.create(pod("p", namespace))

    with pytest.raises(BadRequest, match="container x is not valid for pod p"):
        await client.pods.read_logs("p", namespace=namespace, container="x")
    with pytest.raises(BadRequest, match="container x is not valid for pod p"):
        async with client.pods.follow_logs("p", namespace=namespace, container="x"):
            pass


def kubelet_tls(folder: Path) -> ssl.SSLContext:
    pair = Authority.create("kubelet").server("kubelet", hosts=["127.0.0.1"])
    (folder / "tls.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.pem")
    return context


@asynccontextmanager
async def log_server(folder: Path) -> AsyncIterator[tuple[int, asyncio.Event]]:
    """What a kubelet answers to the API server when somebody asks for logs."""
    more = asyncio.Event()

    async def logs(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\n\nthird\n")
        if request.query.get("follow") == "true":
            await more.wait()
            await response.write(b"fourth\n")
        return response

    application = web.Application()
    application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", logs)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=kubelet_tls(folder))
    await site.start()
    try:
        yield runner.addresses[0][1], more
    finally:
        await runner.cleanup()


async def test_logs_are_read_and_followed(client: Client, namespace: str, tmp_path: Path) -> None:
    async with log_server(tmp_path) as (port, more):
        node = await client.create(Node(metadata=ObjectMeta(name=f"node-{namespace}")))
        await client.patch_by_name(
            Node,
            node.metadata.name,
            {
                "status": {
                    "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
                }
            },
            subresource="status",
        )
        created = await client.create(pod("p", namespace, nodeName=node.metadata.name))

        assert await client.pods.read_logs(created.key) == "first\n\nthird\n"
        lines = []
        async with client.pods.follow_logs(created.key, container="main") as followed:
            async for line in followed:
                lines.append(line)
                if line == "third":
                    more.set()

        await client.delete(Pod, created.key, grace_period=0)
        await client.delete(node)
    assert lines == ["first", "", "third", "fourth"]
