"""What `ctx.client` reads if no namespace is named, and if all are.

Covers: kubewright.cache.cached_client, kubewright.client
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.runtime.running_controllers import running

from kubewright import Client, Context, Scope, Watch, controller
from kubewright.k8s.core.v1 import ConfigMap, Namespace, Secret
from kubewright.testing import time_limit
from kubewright.testing.waiting import until

pytestmark = pytest.mark.timeout(60)

MINE = {"case": "reads"}
EVERYWHERE = Scope(namespaces=("*",), labels="case=reads")


@pytest.fixture
async def other(client: Client, namespace: str) -> str:
    """A namespace beside the test's own, and one ConfigMap and one Secret in each of the two."""
    other = f"{namespace}-other"
    await client.create(Namespace.named(other))
    for home in (namespace, other):
        await client.create(ConfigMap.named(f"in-{home}", home, labels=MINE))
        await client.create(Secret.named(f"in-{home}", home, labels=MINE))
    return other


def watching(*kinds: type[Any]) -> list[Watch]:
    return [Watch(kind, lambda change: (), scope=EVERYWHERE) for kind in kinds]


async def test_a_list_without_a_namespace_is_of_that_of_the_object_as_a_get_is(
    client: Client, namespace: str, other: str, widget: Any
) -> None:
    read: dict[str, list[str]] = {}

    @controller(widget, watches=watching(ConfigMap))
    async def reconcile(obj: Any, ctx: Context) -> None:
        for kind in (ConfigMap, Secret):  # from the cache, and from the server
            for where in (None, "*", other):
                found = await ctx.client.list(kind, namespace=where, labels=MINE)
                read[f"{kind.__name__} {where}"] = [item.metadata.namespace for item in found]
        read["Namespace"] = [item.metadata.name for item in await ctx.client.list(Namespace, labels=MINE)]
        obj.status.ready = 1

    await client.patch_by_name(Namespace, other, {"metadata": {"labels": MINE}})
    await client.create(widget.named("w", namespace))
    async with running(client, namespace, reconcile):
        await until(client, widget, "w", lambda obj: obj.status.ready == 1, namespace=namespace)

    for kind in ("ConfigMap", "Secret"):
        assert read[f"{kind} None"] == [namespace]
        assert read[f"{kind} {other}"] == [other]
        assert {namespace, other} <= {*read[f"{kind} *"]}
    assert other in read["Namespace"]


async def test_a_list_without_a_namespace_is_of_all_for_an_object_that_has_none(
    client: Client, namespace: str, other: str
) -> None:
    read: dict[str, set[str]] = {}
    done = asyncio.Event()

    @controller(Namespace, watches=watching(ConfigMap), scope=Scope(fields=f"metadata.name={namespace}"))
    async def reconcile(obj: Namespace, ctx: Context) -> None:
        for kind in (ConfigMap, Secret):
            read[kind.__name__] = {item.metadata.namespace for item in await ctx.client.list(kind, labels=MINE)}
        done.set()

    async with running(client, namespace, reconcile), time_limit(30):
        await done.wait()

    assert {namespace, other} <= read["ConfigMap"]
    assert {namespace, other} <= read["Secret"]


async def test_a_list_of_a_watched_kind_without_namespaces_heeds_none(
    client: Client, namespace: str, widget: Any
) -> None:
    await client.patch_by_name(Namespace, namespace, {"metadata": {"labels": MINE}})
    read: list[list[str]] = []

    @controller(widget, watches=[Watch(Namespace, lambda change: (), scope=Scope(labels="case=reads"))])
    async def reconcile(obj: Any, ctx: Context) -> None:
        read.append([item.metadata.name for item in await ctx.client.list(Namespace)])
        obj.status.ready = 1

    await client.create(widget.named("w", namespace))
    async with running(client, namespace, reconcile):
        await until(client, widget, "w", lambda obj: obj.status.ready == 1, namespace=namespace)

    assert namespace in read[0]


async def test_a_star_is_every_namespace_for_a_client_too(client: Client, namespace: str, other: str) -> None:
    listed = await client.list(ConfigMap, namespace="*", labels=MINE)
    streamed = await client.list_streaming(ConfigMap, namespace="*", labels=MINE)
    seen: set[str] = set()
    async with time_limit(20), client.watch(ConfigMap, namespace="*", labels=MINE, initial_events=True) as events:
        while not {namespace, other} <= seen:
            seen.add((await anext(events)).object.metadata.namespace)

    assert {namespace, other} <= {item.metadata.namespace for item in listed}
    assert {namespace, other} <= {item.metadata.namespace for item in streamed}
