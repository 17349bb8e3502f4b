"""Lists, pages and watches.

Covers: kubewright.apiserver.verbs, kubewright.client
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from kubewright import Client, Dynamic
from kubewright.api import metadata_of
from kubewright.client import Bookmark
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream, Transport
from kubewright.errors import BadRequest, Expired
from kubewright.k8s.core.v1 import ConfigMap, Event, ObjectReference
from kubewright.testing import time_limit

LABEL = {"case": "list"}


async def make(client: Client, namespace: str, count: int) -> None:
    for number in range(count):
        wanted = ConfigMap.named(f"c{number:02}", namespace, data={"n": str(number)})
        wanted.metadata.labels.update(LABEL, parity="even" if number % 2 == 0 else "odd")
        await client.create(wanted)


async def test_list_is_assembled_from_pages(client: Client, namespace: str) -> None:
    await make(client, namespace, 7)

    listed = await client.list(ConfigMap, namespace=namespace, labels=LABEL, page_size=3)

    assert [item.metadata.name for item in listed] == [f"c{number:02}" for number in range(7)]
    assert listed.continue_token == ""
    assert listed.resource_version


async def test_limit_cuts_a_list_and_the_token_goes_on(client: Client, namespace: str) -> None:
    await make(client, namespace, 3)

    first = await client.list(ConfigMap, namespace=namespace, labels=LABEL, limit=2)
    rest = await client.list(ConfigMap, namespace=namespace, labels=LABEL, limit=2, continue_token=first.continue_token)

    assert [item.metadata.name for item in first] == ["c00", "c01"]
    assert [item.metadata.name for item in rest] == ["c02"]


async def test_list_selects_by_label_and_field(client: Client, namespace: str) -> None:
    await make(client, namespace, 4)

    odd = await client.list(ConfigMap, namespace=namespace, labels="case=list,parity in (odd)")
    one = await client.list(ConfigMap, namespace=namespace, fields={"metadata.name": "c02"})

    assert [item.metadata.name for item in odd] == ["c01", "c03"]
    assert [item.metadata.name for item in one] == ["c02"]


async def test_list_without_a_namespace_sees_all_of_them(client: Client, namespace: str) -> None:
    await make(client, namespace, 1)

    everywhere = await client.list(ConfigMap, labels=LABEL)

    assert namespace in {item.metadata.namespace for item in everywhere}


async def test_list_at_an_exact_version_shows_the_past(client: Client, namespace: str) -> None:
    await make(client, namespace, 1)
    before = await client.list(ConfigMap, namespace=namespace, labels=LABEL)
    await client.patch_by_name(ConfigMap, "c00", {"data": {"n": "changed"}}, namespace=namespace)

    past = await client.list(
        ConfigMap,
        namespace=namespace,
        labels=LABEL,
        limit=10,
        resource_version=before.resource_version,
        version_match="Exact",
    )

    assert past[0].data == {"n": "0"}


async def test_bad_selector_is_a_bad_request(client: Client, namespace: str) -> None:
    with pytest.raises(BadRequest, match="unable to parse requirement"):
        await client.list(ConfigMap, namespace=namespace, labels="a===b")


async def test_streaming_list_equals_the_ordinary_one(client: Client, namespace: str) -> None:
    await make(client, namespace, 5)

    streamed = await client.list_streaming(ConfigMap, namespace=namespace, labels=LABEL)
    ordinary = await client.list(ConfigMap, namespace=namespace, labels=LABEL)

    assert sorted(streamed.items, key=lambda item: item.metadata.name) == ordinary.items
    assert int(streamed.resource_version) <= int(ordinary.resource_version)


async def test_watch_sees_create_change_and_delete(client: Client, namespace: str) -> None:
    start = await client.list(ConfigMap, namespace=namespace)
    seen = []

    async with client.watch(ConfigMap, namespace=namespace, resource_version=start.resource_version) as events:
        created = await client.create(ConfigMap.named("a", namespace, data={"k": "1"}))
        created.data = {"k": "2"}
        await client.delete(await client.patch(created))
        async for event in events:
            if event.object.metadata.name != "a":
                continue
            seen.append((event.type, (event.object.data or {}).get("k")))
            if event.type == "DELETED":
                break

    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


async def test_watch_events_can_be_patched_like_objects_that_were_read(client: Client, namespace: str) -> None:
    await client.create(ConfigMap.named("a", namespace, data={"k": "1"}))

    async with client.watch(
        ConfigMap, namespace=namespace, fields={"metadata.name": "a"}, resource_version="0"
    ) as events:
        async for event in events:
            event.object.metadata.labels["seen"] = "yes"
            patched = await client.patch(event.object)
            break

    assert patched.metadata.labels == {"seen": "yes"}


async def test_initial_events_end_with_a_bookmark(client: Client, namespace: str) -> None:
    await make(client, namespace, 3)
    names = []

    async with client.watch(
        ConfigMap, namespace=namespace, labels=LABEL, initial_events=True, bookmarks=True
    ) as events:
        async for event in events:
            if isinstance(event, Bookmark):
                assert event.initial_events_end
                assert event.resource_version
                break
            names.append(event.object.metadata.name)

    assert sorted(names) == ["c00", "c01", "c02"]


async def test_metadata_alone_is_watched(client: Client, namespace: str) -> None:
    await client.create(ConfigMap.named("a", namespace, data={"k": "1"}))

    async with client.watch(
        metadata_of(ConfigMap), namespace=namespace, fields={"metadata.name": "a"}, resource_version="0"
    ) as events:
        event = await anext(events)

    assert event.object.metadata.name == "a"
    assert type(event.object).__name__ == "ConfigMapMetadata"


async def test_watch_ends_when_the_server_says_so(client: Client, namespace: str) -> None:
    async with time_limit(20), client.watch(ConfigMap, namespace=namespace, timeout=1) as events:
        async for event in events:
            assert event.object.metadata.namespace == namespace


async def test_watch_from_a_version_that_is_gone_is_expired(plane: Any, client: Client) -> None:
    await plane.compact()

    with pytest.raises(Expired) as caught:
        # Events are the one kind that is watched in etcd itself, which has just forgotten its past.
        async with client.watch(Dynamic("v1", "Event"), resource_version="1") as events:
            await anext(events)

    assert caught.value.code == 410
    assert caught.value.message == "The resourceVersion for the provided watch is too old."


class ForgettingAfterOnePage:
    """A transport to a server that forgets its past as soon as it has sent the first page of a list."""

    def __init__(self, transport: Transport, forget: Callable[[], Awaitable[Any]]) -> None:
        self._transport = transport
        self._forget = forget
        self.tokens: list[str | None] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        response = await self._transport.send(request)
        self.tokens.append(dict(request.query).get("continue"))
        if len(self.tokens) == 1:
            await self._forget()
        return response

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        return self._transport.stream(request)

    async def close(self) -> None: ...


async def test_list_whose_pages_expire_is_read_again_in_one_piece(plane: Any, client: Client, namespace: str) -> None:
    about = ObjectReference(kind="Thing", name="t", namespace=namespace)
    for name in "abcd":
        # Events are the one kind that is read in etcd itself, not in the API server's memory.
        await client.create(Event.named(name, namespace, involved_object=about, reason="Tested"))

    async def forget() -> None:
        await client.patch_by_name(Event, "a", {"message": "changed"}, namespace=namespace)
        await plane.compact()

    transport = ForgettingAfterOnePage(client.transport, forget)
    listed = await Client(transport).list(Event, namespace=namespace, page_size=2)

    assert [item.metadata.name for item in listed] == ["a", "b", "c", "d"]
    assert listed[0].message == "changed"
    assert [token is None for token in transport.tokens] == [True, False, True]


async def test_expired_token_of_the_callers_own_is_an_error(plane: Any, client: Client, namespace: str) -> None:
    about = ObjectReference(kind="Thing", name="t", namespace=namespace)
    for name in "ab":
        await client.create(Event.named(name, namespace, involved_object=about, reason="Tested"))
    first = await client.list(Event, namespace=namespace, limit=1)
    await client.patch_by_name(Event, "a", {"message": "changed"}, namespace=namespace)
    await plane.compact()

    with pytest.raises(Expired):
        await client.list(Event, namespace=namespace, limit=1, continue_token=first.continue_token)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_five_thousand_objects_are_listed_paged_and_watched(client: Client, namespace: str) -> None:
    """With one of 700 KB among them, whose watch line is longer than any line reader's default limit."""
    total, big = 5_000, "x" * 700_000
    start = await client.list(ConfigMap, namespace=namespace, limit=1)
    numbers = iter(range(total))

    async def create_some() -> None:
        for number in numbers:
            text = big if number == 2_500 else f"value {number}"
            await client.create(ConfigMap.named(f"m{number:04}", namespace, data={"v": text}))

    async def watch_all() -> dict[str, int]:
        sizes: dict[str, int] = {}
        version = start.resource_version
        while len(sizes) < total:  # a server ends the watch of somebody who reads too slowly
            async with client.watch(ConfigMap, namespace=namespace, resource_version=version) as events:
                async for event in events:
                    assert int(event.object.metadata.resource_version) > int(version), "in order, and each once"
                    version = event.object.metadata.resource_version
                    if event.object.metadata.name.startswith("m"):
                        sizes[event.object.metadata.name] = len((event.object.data or {})["v"])
                    if len(sizes) == total:
                        break
        return sizes

    watching = asyncio.create_task(watch_all())
    await asyncio.gather(*(create_some() for _ in range(16)))
    watched = await watching
    paged = await client.list(ConfigMap, namespace=namespace, page_size=450)
    streamed = await client.list_streaming(ConfigMap, namespace=namespace)

    def sizes_in(found: Iterable[ConfigMap]) -> dict[str, int]:
        """But for the certificate that somebody else puts into every namespace when it gets to it."""
        return {item.metadata.name: len((item.data or {})["v"]) for item in found if item.metadata.name[0] == "m"}

    listed = sizes_in(paged)
    assert len(listed) == total
    assert listed["m2500"] == 700_000
    assert watched == listed
    assert sizes_in(streamed) == listed
