"""The floor: the benchmark's operator with no framework at all, on aiohttp, uvloop and msgspec.

It has no back-off, no retries, no relist and no read-your-writes: it shows what the libraries cost, and how close to
that a framework can stay. Run as `python -m bench.peers.floor --kubeconfig FILE`.
"""

from __future__ import annotations

import argparse
import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import aiohttp
import msgspec
import uvloop

from bench.peers.kubeconfig import read_kubeconfig

__all__ = ("main",)

WORKERS = 16
PAGE_SIZE = 500
WIDGETS = "/apis/bench.example.io/v1/namespaces/bench/widgets"
CONFIG_MAPS = "/api/v1/namespaces/bench/configmaps"


class Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""


class ListMetadata(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Part(msgspec.Struct, gc=False):
    name: str
    image: str = ""
    arguments: list[str] = []
    settings: dict[str, str] = {}


class WidgetSpec(msgspec.Struct, frozen=True, gc=False):
    size: int = 0
    note: str = ""
    paused: bool = False
    parts: list[Part] = []


class WidgetStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    ready: bool = False
    observed_generation: int = 0


class Widget(msgspec.Struct, gc=False):
    metadata: Metadata
    spec: WidgetSpec = WidgetSpec()
    status: WidgetStatus = WidgetStatus()


class ConfigMap(msgspec.Struct, gc=False):
    metadata: Metadata
    data: dict[str, str] = {}


K = TypeVar("K", Widget, ConfigMap)


class ObjectList(msgspec.Struct, Generic[K]):
    metadata: ListMetadata
    items: list[K]


class Event(msgspec.Struct, Generic[K]):
    type: str
    object: K


class Operator:
    """A store per kind, a queue of names and a handful of workers."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._widgets: dict[str, Widget] = {}
        self._config_maps: dict[str, ConfigMap] = {}
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._waiting: set[str] = set()
        self._encode = msgspec.json.Encoder().encode

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(
                self._inform(
                    CONFIG_MAPS, ObjectList[ConfigMap], Event[ConfigMap], self._config_maps, self._child_changed
                )
            )
            group.create_task(self._inform(WIDGETS, ObjectList[Widget], Event[Widget], self._widgets, self._add))
            for _ in range(WORKERS):
                group.create_task(self._work())

    def _add(self, name: str) -> None:
        if name not in self._waiting:
            self._waiting.add(name)
            self._queue.put_nowait(name)

    def _child_changed(self, name: str) -> None:
        if name in self._widgets:
            self._add(name)

    async def _inform(
        self,
        path: str,
        listed: type[ObjectList[K]],
        event: type[Event[K]],
        store: dict[str, K],
        changed: Callable[[str], None],
    ) -> None:
        version = await self._list(path, msgspec.json.Decoder(listed), store)
        for name in store:
            changed(name)
        decode = msgspec.json.Decoder(event).decode
        while True:
            rest = b""
            query = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "1"}
            async with self._session.get(path, params=query, timeout=aiohttp.ClientTimeout(total=None)) as answer:
                async for chunk in answer.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        seen = decode(line)
                        name, version = seen.object.metadata.name, seen.object.metadata.resource_version
                        if seen.type == "DELETED":
                            store.pop(name, None)
                        elif seen.type != "BOOKMARK":
                            store[name] = seen.object
                        changed(name)

    async def _list(self, path: str, decoder: msgspec.json.Decoder[ObjectList[K]], store: dict[str, K]) -> str:
        token = ""
        while True:
            async with self._session.get(path, params={"limit": str(PAGE_SIZE), "continue": token}) as answer:
                page = decoder.decode(await answer.read())
            store.update((item.metadata.name, item) for item in page.items)
            token = page.metadata.continue_
            if not token:
                return page.metadata.resource_version

    async def _work(self) -> None:
        while True:
            name = await self._queue.get()
            self._waiting.discard(name)
            widget = self._widgets.get(name)
            if widget is None or widget.spec.paused:
                continue
            status = widget.status
            if not (status.ready and status.observed_generation == widget.metadata.generation):
                await self._reconcile(widget)

    async def _reconcile(self, widget: Widget) -> None:
        name = widget.metadata.name
        await self._patch(f"{CONFIG_MAPS}/{name}?fieldManager=bench&force=true", _child(widget), "apply-patch+yaml")
        status = {"status": {"ready": True, "observedGeneration": widget.metadata.generation}}
        await self._patch(f"{WIDGETS}/{name}/status", status, "merge-patch+json")

    async def _patch(self, path: str, body: object, form: str) -> None:
        headers = {"Content-Type": f"application/{form}"}
        async with self._session.patch(path, data=self._encode(body), headers=headers) as answer:
            text = await answer.read()
            if answer.status >= 300:
                raise RuntimeError(f"PATCH {path} was answered {answer.status}: {text.decode()}")


def _child(widget: Widget) -> object:
    owner = {
        "apiVersion": "bench.example.io/v1",
        "kind": "Widget",
        "name": widget.metadata.name,
        "uid": widget.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": widget.metadata.name, "ownerReferences": [owner]},
        "data": {"size": str(widget.spec.size)},
    }


async def _run(url: str, tls: ssl.SSLContext) -> None:
    connector = aiohttp.TCPConnector(ssl=tls, limit=2 * WORKERS)
    async with aiohttp.ClientSession(url, connector=connector) as session:
        await Operator(session).run()


def main() -> None:
    """Run until a signal ends the process."""
    parser = argparse.ArgumentParser(description="The benchmark's operator with no framework.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    uvloop.run(_run(*read_kubeconfig(parser.parse_args().kubeconfig)))


if __name__ == "__main__":
    main()
