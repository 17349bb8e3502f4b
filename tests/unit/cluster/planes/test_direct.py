"""Requests to a server in the same process, without a connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kubewright import Client
from kubewright.apiserver.server import ApiServer
from kubewright.client.transport.transport import HttpRequest
from kubewright.cluster.planes.direct import DirectTransport
from kubewright.errors import Conflict, NotFound, RequestTimeout, TransportError
from kubewright.k8s.core.v1 import ConfigMap

PATH = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server() -> ApiServer:
    server = ApiServer()
    await server.loopback.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    return server


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[Client]:
    async with Client(DirectTransport(server.router, user="tester"), field_manager="tests") as client:
        yield client


async def test_objects_are_written_and_read(client: Client) -> None:
    created = await client.create(ConfigMap.named("settings", data={"colour": "red"}))
    created.data = {"colour": "blue"}
    await client.update(created)

    assert (await client.get(ConfigMap, "settings")).data == {"colour": "blue"}
    created.metadata.resource_version = "1"
    with pytest.raises(Conflict):
        await client.update(created)
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "nothing")


async def test_a_watch_sees_each_change_and_ends_at_its_timeout(client: Client) -> None:
    await client.create(ConfigMap.named("first"))
    seen = []
    async with client.watch(ConfigMap, timeout=1) as events:
        async for event in events:
            seen.append((event.type, event.object.metadata.name))
            if len(seen) == 1:
                await client.create(ConfigMap.named("second"))

    assert seen == [("ADDED", "first"), ("ADDED", "second")]


async def test_the_server_drops_a_watch_that_the_client_closes(server: ApiServer, client: Client) -> None:
    async with client.watch(ConfigMap):
        assert len(server.watches.streams) == 1

    assert not server.watches.streams


async def test_a_failed_watch_has_the_error_as_its_body(client: Client) -> None:
    async with client.transport.stream(HttpRequest(method="GET", path="/api/v1/nothings")) as stream:
        assert stream.status == 404
        assert b"could not find the requested resource" in await stream.read()


async def test_an_idle_watch_times_out(server: ApiServer) -> None:
    transport = DirectTransport(server.router, user="tester")
    request = HttpRequest(method="GET", path=PATH, query=(("watch", "true"),), idle_timeout=0.01)

    async with transport.stream(request) as stream:
        with pytest.raises(RequestTimeout, match="silent"):
            async for _ in stream.chunks():
                pass


async def test_requests_yield_to_other_tasks(client: Client) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    for number in range(10):
        await client.create(ConfigMap.named(f"settings-{number}"))
    counting.cancel()

    assert turns >= 10


async def test_a_closed_transport_sends_nothing(server: ApiServer) -> None:
    transport = DirectTransport(server.router, user="tester")
    await transport.close()

    with pytest.raises(TransportError, match="closed the transport"):
        await transport.send(HttpRequest(method="GET", path=PATH))


async def test_warnings_arrive_one_by_one(server: ApiServer) -> None:
    transport = DirectTransport(server.router, user="tester")
    body = b'{"metadata": {"name": "settings"}, "colour": "red", "size": 1}'
    headers = (("Content-Type", "application/json"),)

    response = await transport.send(HttpRequest(method="POST", path=PATH, headers=headers, body=body))

    assert response.warnings == ('unknown field "colour"', 'unknown field "size"')
