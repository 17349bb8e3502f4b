"""Old versions can be listed for five to ten minutes."""

from __future__ import annotations

import json
from typing import Any

from kubewright.apiserver.server import ApiServer
from kubewright.apiserver.storage.compaction import Compactor
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.requests import Peer, Request
from kubewright.apiserver.wire.responses import Response
from kubewright.testing.clock import VirtualClock


async def test_the_newest_version_of_one_interval_is_the_oldest_after_the_next() -> None:
    clock, store = VirtualClock(), Store(version=10)
    compaction = Compactor(store, clock)
    store.version = 20

    await clock.advance(299)
    compaction.tick()
    assert compaction.oldest == 0
    await clock.advance(1)
    compaction.tick()
    assert compaction.oldest == 10  # what was there when the server began

    store.version = 30
    await clock.advance(300)
    compaction.tick()
    assert compaction.oldest == 20


async def test_a_continue_token_expires() -> None:
    clock = VirtualClock()
    server = ApiServer(clock=clock)
    for name in "abc":
        await server.loopback.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    _, first = await listed(server, limit="1")
    token = first["metadata"]["continue"]

    for name in "de":
        await server.loopback.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await clock.advance(300)
        server.compaction.tick()
    status, error = await listed(server, **{"limit": "1", "continue": token})
    assert (status, error["reason"]) == (410, "Expired")

    status, rest = await listed(server, **{"continue": error["metadata"]["continue"]})
    assert [item["metadata"]["name"] for item in rest["items"]] == ["b", "c", "d", "e"]


async def listed(server: ApiServer, **query: str) -> tuple[int, dict[str, Any]]:
    answer = await server.router.handle(Request("GET", "/api/v1/namespaces", query, {}, b"", Peer()))
    assert isinstance(answer, Response)
    return answer.code, json.loads(answer.body)
