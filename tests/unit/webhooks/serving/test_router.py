"""Handlers that read from the cache: called once it is in sync, and told everything it has."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from tests.unit.webhooks.reviews import admit, review

from kubewright import Client, Resource, Spec, Status, mutate, validate
from kubewright._base.tasks import cancel_and_wait
from kubewright.api import definition_of
from kubewright.cache import CacheReader
from kubewright.cache.cache import Cache
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import ConfigError
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.webhooks.serving.router import WebhookRouter


class Web(Resource[Spec, Status], group="shop.example.io", version="v1"):
    """A web site."""


SENT = {"apiVersion": "shop.example.io/v1", "kind": "Web", "metadata": {"name": "web", "namespace": "shop"}}
REVIEW = review(definition_of(Web).gvk, SENT)


@validate(Web, reads=[ConfigMap])
async def check(web: Web, cached: CacheReader, warnings: Any) -> None:
    for limits in cached.list(ConfigMap):
        warnings.add(limits.metadata.name)


class Slow:
    """A server that has one ConfigMap, and lists it when it is told to."""

    def __init__(self) -> None:
        self.asked, self.told = asyncio.Event(), asyncio.Event()
        self.status = 200
        self.headers = {"content-type": "application/json"}

    async def send(self, request: HttpRequest) -> HttpResponse:
        raise AssertionError(f"nobody should ask {request}")

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        yield cast("HttpStream", self)

    async def chunks(self) -> AsyncIterator[bytes]:
        self.asked.set()
        await self.told.wait()
        metadata = {"name": "limits", "namespace": "shop", "uid": "1", "resourceVersion": "1"}
        yield event("ADDED", metadata)
        yield event("BOOKMARK", {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}})
        await asyncio.Event().wait()

    async def close(self) -> None: ...


def event(type_: str, metadata: dict[str, Any]) -> bytes:
    tree = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
    return json.dumps({"type": type_, "object": tree}).encode() + b"\n"


@asynccontextmanager
async def serving(server: Slow) -> AsyncIterator[WebhookRouter]:
    cache = Cache(Client(server))
    cache.informer(ConfigMap)
    webhooks = WebhookRouter([check], cache=cache)
    running = asyncio.create_task(cache.run())
    await server.asked.wait()
    try:
        yield webhooks
    finally:
        await cancel_and_wait(running)
        webhooks.close()


async def test_a_handler_waits_until_the_kinds_it_reads_are_in_sync() -> None:
    server = Slow()
    async with serving(server) as webhooks:
        answer = asyncio.create_task(admit(webhooks, check.path, REVIEW))
        await asyncio.sleep(0)
        assert not answer.done()
        server.told.set()

        assert (await answer)["warnings"] == ["limits"]
        assert (await admit(webhooks, check.path, REVIEW))["warnings"] == ["limits"]


async def test_a_cache_that_does_not_get_in_sync_in_time_is_named_in_the_refusal() -> None:
    async with serving(Slow()) as webhooks:
        answer = await admit(webhooks, f"{check.path}", REVIEW, query="timeout=20ms")

    assert not answer["allowed"]
    assert answer["status"]["code"] == 504
    assert "not in sync yet: ConfigMap" in answer["status"]["message"]


def test_a_handler_that_reads_needs_a_cache_to_be_served_from() -> None:
    with pytest.raises(ConfigError, match="reads from a cache, and there is none"):
        WebhookRouter([check])


def test_reads_and_the_parameter_belong_together() -> None:
    with pytest.raises(ConfigError, match="belong together"):

        @mutate(Web)
        async def without_kinds(web: Web, cached: CacheReader) -> None: ...

    with pytest.raises(ConfigError, match="belong together"):

        @mutate(Web, reads=[ConfigMap])
        async def without_parameter(web: Web) -> None: ...


def test_a_handler_that_reads_runs_on_the_event_loop() -> None:
    with pytest.raises(ConfigError, match="make it async"):

        @mutate(Web, reads=[ConfigMap])
        def plain(web: Web, cached: CacheReader) -> None: ...
