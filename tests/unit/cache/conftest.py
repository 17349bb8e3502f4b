"""A cache on a scripted server and a clock moved by hand: no network, no waiting.

A test says what the server answers, in order; a request for which nothing is scripted yet waits until something is. So
a test sees exactly which requests were made and which were not.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest

from kubewright import Client, Resource, Spec, Status
from kubewright.api.codec import read
from kubewright.api.resource import KubeObject
from kubewright.cache.cache import Cache
from kubewright.cache.changes import Change
from kubewright.cache.informer import Informer
from kubewright.cache.observer import CacheObserver
from kubewright.cache.scope import Scope
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.testing.clock import VirtualClock

JSON = {"content-type": "application/json"}


class GadgetSpec(Spec):
    size: int = 1
    color: str = ""


class GadgetStatus(Status):
    ready: int = 0


class Gadget(Resource[GadgetSpec, GadgetStatus], group="test.example.io", version="v1"):
    """What the scripted server has."""


def gadget(name: str, version: int | str, *, namespace: str = "shop", uid: str = "", **fields: Any) -> dict[str, Any]:
    """A gadget as a server writes it; `labels`, `size`, `color`, `spec`, `metadata` as wanted."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
        "generation": 1,
        **({"labels": fields["labels"]} if "labels" in fields else {}),
        **fields.get("metadata", {}),
    }
    spec = fields.get("spec") or {key: fields[key] for key in ("size", "color") if key in fields}
    return {"apiVersion": "test.example.io/v1", "kind": "Gadget", "metadata": metadata, "spec": spec}


def written(name: str, version: int | str, **fields: Any) -> Gadget:
    """A gadget as the answer to a write."""
    return read(Gadget, body(gadget(name, version, **fields)))


def body(tree: Any) -> bytes:
    return json.dumps(tree, separators=(",", ":")).encode()


def status(
    code: int, reason: str, *, message: str = "no", causes: tuple[str, ...] = (), seconds: int = 0
) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
        "details": {"causes": [{"reason": cause} for cause in causes], "retryAfterSeconds": seconds},
    }


class Stream:
    """A watch the test feeds."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = JSON
        self.closed = False
        self._chunks: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()

    def raw(self, chunk: bytes) -> None:
        self._chunks.put_nowait(chunk)

    def event(self, type_: str, tree: Any) -> None:
        self.raw(body({"type": type_, "object": tree}) + b"\n")

    def added(self, *trees: Any) -> None:
        for tree in trees:
            self.event("ADDED", tree)

    def modified(self, tree: Any) -> None:
        self.event("MODIFIED", tree)

    def deleted(self, tree: Any) -> None:
        self.event("DELETED", tree)

    def bookmark(self, version: int | str, *, end: bool = False) -> None:
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        self.event("BOOKMARK", {"kind": "Gadget", "apiVersion": "test.example.io/v1", "metadata": metadata})

    def error(self, code: int, reason: str, **options: Any) -> None:
        self.event("ERROR", status(code, reason, **options))

    def in_one_chunk(self) -> None:
        """Send what was said and is not sent yet at once."""
        said = [self._chunks.get_nowait() for _ in range(self._chunks.qsize())]
        self.raw(b"".join(chunk for chunk in said if isinstance(chunk, bytes)))

    def end(self) -> None:
        self._chunks.put_nowait(None)

    def cut(self, error: Exception) -> None:
        self._chunks.put_nowait(error)

    async def chunks(self) -> AsyncIterator[bytes]:
        while (chunk := await self._chunks.get()) is not None:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    async def read(self) -> bytes:
        return b""


class Refusal:
    """An answer that is no stream."""

    def __init__(self, code: int, reason: str, **options: Any) -> None:
        self.status = code
        self.headers: Mapping[str, str] = JSON
        self.body = body(status(code, reason, **options))

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.body

    async def read(self) -> bytes:
        return self.body


class ScriptedServer:
    """A transport: what was asked, and what is answered next."""

    def __init__(self, clock: VirtualClock) -> None:
        self.requests: list[HttpRequest] = []
        self.times: list[float] = []
        self._clock = clock
        self._script: asyncio.Queue[HttpResponse | Stream | Refusal | Exception] = asyncio.Queue()

    # --- the script ---

    def lists(self, *items: Any, version: int | str, token: str = "") -> None:
        metadata = {"resourceVersion": str(version), **({"continue": token} if token else {})}
        tree = {"kind": "GadgetList", "apiVersion": "test.example.io/v1", "metadata": metadata, "items": list(items)}
        self._script.put_nowait(HttpResponse(status=200, headers=JSON, body=body(tree)))

    def watches(self) -> Stream:
        stream = Stream()
        self._script.put_nowait(stream)
        return stream

    def streams(self, *items: Any, version: int | str) -> Stream:
        """A streaming list, complete."""
        stream = self.watches()
        stream.added(*items)
        stream.bookmark(version, end=True)
        return stream

    def refuses(self, code: int, reason: str, **options: Any) -> None:
        self._script.put_nowait(Refusal(code, reason, **options))

    def fails(self, error: Exception) -> None:
        self._script.put_nowait(error)

    # --- what was asked ---

    @property
    def asked(self) -> list[str]:
        """`list`, `stream` (a streaming list) or `watch`, each with the version it began from."""
        return [_summary(request) for request in self.requests]

    # --- the transport ---

    async def send(self, request: HttpRequest) -> HttpResponse:
        answer = await self._answer(request)
        if isinstance(answer, Refusal):
            return HttpResponse(status=answer.status, headers=answer.headers, body=answer.body)
        assert isinstance(answer, HttpResponse), f"{request} is no watch, but one is scripted"
        return answer

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        answer = await self._answer(request)
        assert not isinstance(answer, HttpResponse), f"{request} is a watch, but a list is scripted"
        try:
            yield answer
        finally:
            if isinstance(answer, Stream):
                answer.closed = True

    async def close(self) -> None:
        return

    async def _answer(self, request: HttpRequest) -> HttpResponse | Stream | Refusal:
        self.requests.append(request)
        self.times.append(self._clock.monotonic())
        answer = await self._script.get()
        if isinstance(answer, Exception):
            raise answer
        return answer


def _summary(request: HttpRequest) -> str:
    query = dict(request.query)
    what = "stream" if "sendInitialEvents" in query else "watch" if "watch" in query else "list"
    return f"{what} {query.get('resourceVersion', '')}".strip()


class Recorder(CacheObserver):
    """Counts what the cache reports."""

    def __init__(self) -> None:
        self.events = 0
        self.lists: list[str] = []
        self.ends: list[str] = []
        self.malformed = 0
        self.handler_errors: list[str] = []
        self.sizes: list[tuple[int, int]] = []

    def on_size(self, kind: type[KubeObject], objects: int, size: int) -> None:
        self.sizes.append((objects, size))

    def on_events(self, kind: type[KubeObject], count: int) -> None:
        self.events += count

    def on_list(self, kind: type[KubeObject], reason: str) -> None:
        self.lists.append(reason)

    def on_watch_end(self, kind: type[KubeObject], reason: str) -> None:
        self.ends.append(reason)

    def on_malformed(self, kind: type[KubeObject]) -> None:
        self.malformed += 1

    def on_handler_error(self, kind: type[KubeObject], handler: str) -> None:
        self.handler_errors.append(handler)


class Rig:
    """A running cache with everything around it in a test's hands."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.server = ScriptedServer(self.clock)
        self.observer = Recorder()
        self.client = Client(self.server)
        self.kind = Gadget
        self.gadget = gadget
        self.written = written
        self.cache = self.make()
        self.changes: list[Change[Gadget]] = []
        self.tasks: list[asyncio.Task[None]] = []

    def make(self, **options: Any) -> Cache:
        """Another cache, not running, in the place of the first."""
        self.cache = Cache(self.client, clock=self.clock, rng=Random(7), observer=self.observer, **options)
        return self.cache

    def start(self, *, scope: Scope | None = None) -> Informer[Gadget]:
        """Run the cache and use the kind, with every change noted."""
        if scope is not None:
            self.make(default_scope=scope)
        informer = self.cache.informer(Gadget)
        informer.subscribe(self.changes.append)
        self.run()
        return informer

    def run(self) -> asyncio.Task[None]:
        task = asyncio.create_task(self.cache.run())
        self.tasks.append(task)
        return task

    async def settle(self) -> None:
        await self.clock.settle()

    def delivered(self) -> list[str]:
        """The changes delivered so far, in short; forgets them."""
        short = [_short(change) for change in self.changes]
        self.changes.clear()
        return short

    def read(self, name: str, namespace: str = "shop") -> Gadget:
        return self.cache.reader.get(Gadget, name, namespace=namespace)

    def names(self, **options: Any) -> list[str]:
        return [item.metadata.name for item in self.cache.reader.list(Gadget, **options)]

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task


def _short(change: Change[Gadget]) -> str:
    metadata = change.new_metadata or change.old_metadata
    assert metadata is not None
    flags = "".join(f" {name}" for name in ("initial", "resync", "own", "final_state_unknown") if getattr(change, name))
    return f"{change.type} {metadata.name}@{metadata.resource_version}{flags}"


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    yield rig
    await rig.stop()
