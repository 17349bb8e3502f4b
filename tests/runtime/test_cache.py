"""The cache on a control plane: through gaps, missing kinds and missing rights, and never behind its own writes.

Covers: kubewright.cache
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from tests.planes import Plane

from kubewright import Client, Config, Dynamic, ObjectMeta, Resource, Spec, Status, connect
from kubewright.api import metadata_of
from kubewright.api.resource import KubeObject
from kubewright.cache.cache import Cache
from kubewright.cache.cached_client import CachedClient
from kubewright.cache.changes import Change
from kubewright.cache.observer import CacheObserver
from kubewright.cache.scope import Scope
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream, Transport
from kubewright.cluster.install import install_crds
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.errors import NotFound, TransportError
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.k8s.rbac.v1 import PolicyRule, Role, RoleBinding, RoleRef, Subject
from kubewright.testing import time_limit


class Notes(CacheObserver):
    """Wakes whoever waits whenever the cache has something to tell."""

    def __init__(self) -> None:
        self.lists: list[str] = []
        self._woken = asyncio.Event()

    async def until(self, condition: Callable[[], object]) -> None:
        async with time_limit(30):
            while not condition():
                self._woken.clear()
                await self._woken.wait()

    def wake(self) -> None:
        self._woken.set()

    def on_size(self, kind: type[KubeObject], objects: int, size: int) -> None:
        self.wake()

    def on_list(self, kind: type[KubeObject], reason: str) -> None:
        self.lists.append(reason)
        self.wake()

    def on_watch_end(self, kind: type[KubeObject], reason: str) -> None:
        self.wake()


class Gate:
    """A transport whose watches can be cut and held up."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._cut: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open = asyncio.Event()
        self._open.set()

    def close_watches(self) -> None:
        """Cut every watch, and let none be opened."""
        self._open.clear()
        self._cut.set_exception(TransportError("cut by the test"))
        self._cut.exception()
        self._cut = asyncio.get_running_loop().create_future()

    def open_watches(self) -> None:
        self._open.set()

    async def send(self, request: HttpRequest) -> HttpResponse:
        return await self._transport.send(request)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        await self._open.wait()
        async with self._transport.stream(request) as stream:
            yield _Cuttable(stream, self._cut)

    async def close(self) -> None:
        return


class _Cuttable:
    def __init__(self, stream: HttpStream, cut: asyncio.Future[None]) -> None:
        self.status = stream.status
        self.headers = stream.headers
        self._stream = stream
        self._cut = cut

    async def chunks(self) -> AsyncIterator[bytes]:
        chunks = self._stream.chunks()
        while True:
            following = asyncio.ensure_future(anext(chunks, None))
            try:
                await asyncio.wait((following, self._cut), return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not following.done():
                    following.cancel()
                    await asyncio.wait((following,))
            if self._cut.done():
                self._cut.result()
            chunk = following.result()
            if chunk is None:
                return
            yield chunk

    async def read(self) -> bytes:
        return await self._stream.read()


@asynccontextmanager
async def running(client: Client, **options: Any) -> AsyncIterator[tuple[Cache, Notes]]:
    """A cache that runs."""
    notes = Notes()
    cache = Cache(client, observer=notes, **options)
    task = asyncio.create_task(cache.run())
    try:
        yield cache, notes
    finally:
        task.cancel()
        await asyncio.wait((task,))
    assert task.cancelled()


class Heard:
    """The changes of one subscription, as they come."""

    def __init__(self) -> None:
        self._changes: asyncio.Queue[Change[Any]] = asyncio.Queue()

    def __call__(self, change: Change[Any]) -> None:
        self._changes.put_nowait(change)

    async def next(self) -> Change[Any]:
        async with time_limit(20):
            return await self._changes.get()

    async def short(self, count: int) -> list[str]:
        return [f"{change.type} {change.key.name}" for change in [await self.next() for _ in range(count)]]

    @property
    def empty(self) -> bool:
        return self._changes.empty()


def config(namespace: str, name: str, **data: str) -> ConfigMap:
    made = ConfigMap.named(name, namespace, data=data)
    made.metadata.labels = {"case": "cache"}
    return made


def only(namespace: str) -> Scope:
    return Scope(namespaces=(namespace,), labels="case=cache")


async def test_cache_shows_what_is_there_and_follows_every_change(client: Client, namespace: str) -> None:
    await client.create(config(namespace, "a", k="1"))
    heard = Heard()
    async with running(client, default_scope=only(namespace)) as (cache, _):
        with cache.use(ConfigMap) as informer:
            informer.subscribe(heard)
            await cache.wait_for_sync(ConfigMap)
            first = await heard.next()
            assert (first.type, first.initial, first.key.name) == ("added", True, "a")

            found = cache.reader.get(ConfigMap, "a", namespace=namespace)
            found.data = {"k": "2"}
            await client.patch(found)
            changed = await heard.next()
            assert changed.old is not None
            assert changed.new is not None
            assert (changed.type, changed.old.data, changed.new.data) == ("updated", {"k": "1"}, {"k": "2"})
            assert cache.reader.get(ConfigMap, "a", namespace=namespace).data == {"k": "2"}

            await client.delete(found)
            gone = await heard.next()
            assert (gone.type, gone.new, gone.initial) == ("deleted", None, False)
            with pytest.raises(NotFound):
                cache.reader.get(ConfigMap, "a", namespace=namespace)


async def test_managed_fields_are_dropped_and_nothing_else_is(client: Client, namespace: str) -> None:
    created = await client.create(config(namespace, "a", k="1"))
    assert created.metadata.managed_fields
    async with running(client, default_scope=only(namespace)) as (cache, _):
        with cache.use(ConfigMap):
            await cache.wait_for_sync()

            found = cache.reader.get(ConfigMap, "a", namespace=namespace)

    created.metadata.managed_fields = []
    assert found == created


async def test_deletion_during_a_gap_is_seen_after_it(client: Client, namespace: str) -> None:
    gate = Gate(client.transport)
    heard = Heard()
    for name in ("a", "b"):
        await client.create(config(namespace, name))
    async with running(Client(gate), default_scope=only(namespace)) as (cache, notes):
        with cache.use(ConfigMap) as informer:
            await cache.wait_for_sync()
            informer.subscribe(heard)
            assert await heard.short(2) == ["added a", "added b"]

            gate.close_watches()
            await client.delete(ConfigMap, "a", namespace=namespace)
            await client.create(config(namespace, "c"))
            gate.open_watches()

            assert await heard.short(2) == ["deleted a", "added c"]
            assert notes.lists == ["first"]


@pytest.fixture
async def own_plane(plane: Plane) -> AsyncIterator[Plane]:
    """A control plane of the same kind for one case alone, which may restart it."""
    another = (
        EmbeddedCluster()
        if isinstance(plane, EmbeddedCluster)
        else RealCluster(start_timeout=300, version=plane.version)
    )
    async with another:
        yield another


@pytest.mark.slow
async def test_expired_watch_is_listed_anew_and_finds_what_was_missed(own_plane: Plane) -> None:
    heard = Heard()
    namespace = "default"
    async with (
        connect(Config.load(kubeconfig=own_plane.kubeconfig)) as client,
        running(Client(gate := Gate(client.transport)), default_scope=only(namespace)) as (cache, notes),
    ):
        for name in ("a", "b"):
            await client.create(config(namespace, name))
        with cache.use(ConfigMap) as informer:
            await cache.wait_for_sync()
            informer.subscribe(heard)
            await heard.short(2)

            gate.close_watches()
            await client.delete(ConfigMap, "a", namespace=namespace)
            await client.delete(ConfigMap, "b", namespace=namespace)
            await client.create(config(namespace, "b"))
            await own_plane.compact()
            await own_plane.restart("apiserver")  # it forgets older versions, too
            gate.open_watches()

            assert await heard.short(3) == ["deleted a", "deleted b", "added b"]
            assert notes.lists == ["first", "expired"]
            assert [item.metadata.name for item in cache.reader.list(ConfigMap)] == ["b"]


async def test_kind_installed_after_the_start_is_named_and_then_watched(client: Client, namespace: str) -> None:
    group = f"x{uuid4().hex[:8]}.example.io"

    class LateSpec(Spec):
        size: int = 1

    class LateStatus(Status):
        ready: int = 0

    class Late(Resource[LateSpec, LateStatus], group=group, version="v1"):
        """Not there yet."""

    async with running(client, default_scope=Scope(namespaces=(namespace,))) as (cache, notes):
        with cache.use(Late), cache.use(ConfigMap):
            await cache.wait_for_sync(ConfigMap)
            await notes.until(cache.problems)
            (problem,) = cache.problems()
            assert f"install the CRD lates.{group} with version v1" in problem.sentence

            await install_crds(client, Late)
            await client.create(Late.named("one", namespace))
            await cache.wait_for_sync()

            await notes.until(lambda: len(cache.reader.list(Late)) == 1)
            assert cache.problems() == ()


async def test_dynamic_kind_is_looked_up_when_it_appears(client: Client, namespace: str, widget: Any) -> None:
    dynamic = Dynamic("contract.example.io/v1", "Widget")
    await client.create(widget.named("w", namespace))
    async with running(client, default_scope=Scope(namespaces=(namespace,))) as (cache, _):
        with cache.use(dynamic):
            await cache.wait_for_sync()

            assert cache.reader.get(dynamic, "w", namespace=namespace).get("spec.size") == 1


async def test_a_dynamic_kind_without_namespaces_is_watched_once_however_many_are_in_scope(
    client: Client, namespace: str
) -> None:
    dynamic = Dynamic("v1", "Namespace")
    async with running(client, default_scope=Scope(namespaces=(namespace, "default", "kube-system"))) as (cache, notes):
        changes: list[tuple[str, str, str]] = []

        def note(change: Change[Any]) -> None:
            known = change.new or change.old
            assert known is not None
            changes.append((change.type, str(change.key), known.metadata.resource_version))

        with cache.use(dynamic) as informer:
            informer.subscribe(note)
            await cache.wait_for_sync()
            made = await client.create(dynamic(metadata=ObjectMeta(name=f"{namespace}-more")))
            await notes.until(lambda: ("added", str(made.key), made.metadata.resource_version) in changes)

            cached = CachedClient(client, cache).in_namespace(namespace)
            assert (await cached.get(dynamic, namespace)).metadata.name == namespace
            await client.delete(made)
            assert notes.lists == ["first"]
            assert len(changes) == len(set(changes))  # one that is told again would be of the same version
            assert cache.problems() == ()


async def test_a_dynamic_kind_is_watched_in_each_namespace_in_scope(
    client: Client, namespace: str, widget: Any
) -> None:
    dynamic = Dynamic("contract.example.io/v1", "Widget")
    await client.create(widget.named("w", namespace))
    async with running(client, default_scope=Scope(namespaces=("kube-system", namespace))) as (cache, notes):
        with cache.use(dynamic):
            await cache.wait_for_sync()

            assert [str(found.key) for found in cache.reader.list(dynamic)] == [f"{namespace}/w"]
            assert notes.lists == ["first", "first"]


async def test_missing_permission_is_named_and_the_watch_starts_once_it_is_granted(
    client: Client, namespace: str, plane: RealCluster
) -> None:
    user = f"user-{uuid4().hex[:8]}"
    await client.create(config(namespace, "a"))
    kubeconfig = await plane.user(user)
    async with (
        connect(Config.load(kubeconfig=kubeconfig)) as other,
        running(other, default_scope=only(namespace)) as (cache, notes),
    ):
        with cache.use(ConfigMap):
            await notes.until(cache.problems)
            sentence = cache.problems()[0].sentence
            assert f"the permission to list configmaps in namespace {namespace} is missing" in sentence
            assert '{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}' in sentence

            role = Role.named("reads", namespace)
            role.rules = [PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["get", "list", "watch"])]
            await client.create(role)
            reference = RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="reads")
            binding = RoleBinding.named("reads", namespace, role_ref=reference)
            binding.subjects = [Subject(kind="User", name=user, api_group="rbac.authorization.k8s.io")]
            await client.create(binding)

            await cache.wait_for_sync()
            assert [item.key.name for item in cache.reader.list(ConfigMap)] == ["a"]
            assert cache.problems() == ()


async def test_reads_are_never_older_than_own_writes_under_load(client: Client, namespace: str) -> None:
    async with running(client, default_scope=only(namespace)) as (cache, notes):
        with cache.use(ConfigMap) as informer:
            own: list[bool] = []
            informer.subscribe(lambda change: own.append(change.own))
            await cache.wait_for_sync()

            async def writer(name: str) -> None:
                cache.record_write(await client.create(config(namespace, name, n="0")))
                for number in range(1, 30):
                    found = cache.reader.get(ConfigMap, name, namespace=namespace)
                    assert found.data == {"n": str(number - 1)}
                    found.data = {"n": str(number)}
                    # With a lock: any older read would be a conflict.
                    cache.record_write(await client.patch(found, optimistic_lock=True))
                found = cache.reader.get(ConfigMap, name, namespace=namespace)
                await client.delete(found)
                cache.record_deletion(found)
                with pytest.raises(NotFound):
                    cache.reader.get(ConfigMap, name, namespace=namespace)

            await asyncio.gather(*(writer(f"w{number}") for number in range(8)))
            await notes.until(lambda: len(own) >= 8 * 31)

            assert len(cache.reader.list(ConfigMap)) == 0


async def test_namespaces_and_selectors_bound_what_is_held(client: Client, namespace: str) -> None:
    inside = config(namespace, "inside")
    outside = config(namespace, "outside")
    outside.metadata.labels = {"case": "other"}
    await client.create(inside)
    await client.create(outside)
    scopes = {ConfigMap: Scope(namespaces=(namespace, "default"), labels="case=cache", fields="metadata.name=inside")}
    async with running(client, scopes=scopes) as (cache, _):
        with cache.use(ConfigMap):
            await cache.wait_for_sync()

            assert [item.key.name for item in cache.reader.list(ConfigMap)] == ["inside"]


async def test_own_write_that_leaves_the_scope_is_gone_from_reads(client: Client, namespace: str) -> None:
    async with running(client, default_scope=only(namespace)) as (cache, _):
        with cache.use(ConfigMap):
            await client.create(config(namespace, "a"))
            await cache.wait_for_sync()
            found = await client.get(ConfigMap, "a", namespace=namespace)
            found.metadata.labels["case"] = "other"

            cache.record_write(await client.patch(found))

            with pytest.raises(NotFound):
                cache.reader.get(ConfigMap, "a", namespace=namespace)


async def test_metadata_alone_is_held_without_the_rest(client: Client, namespace: str) -> None:
    await client.create(config(namespace, "a", big="x" * 10_000))
    kind = metadata_of(ConfigMap)
    heard = Heard()
    async with running(client, default_scope=only(namespace)) as (cache, _):
        with cache.use(kind) as informer:
            informer.subscribe(heard)
            await cache.wait_for_sync()
            assert informer.store.size < 1000
            assert cache.reader.get(kind, "a", namespace=namespace).metadata.labels == {"case": "cache"}

            await client.patch_by_name(ConfigMap, "a", {"metadata": {"labels": {"more": "yes"}}}, namespace=namespace)

            assert await heard.short(2) == ["added a", "updated a"]
            assert informer.store.size < 1000


async def test_projection_keeps_named_fields_and_what_is_read_can_still_be_patched(
    client: Client, namespace: str
) -> None:
    await client.create(config(namespace, "a", keep="1", drop="2"))
    scope = Scope(namespaces=(namespace,), labels="case=cache", projection=("data.keep",))
    async with running(client, default_scope=scope) as (cache, _):
        with cache.use(ConfigMap):
            await cache.wait_for_sync()
            found = cache.reader.get(ConfigMap, "a", namespace=namespace)
            assert found.data == {"keep": "1"}
            found.data["keep"] = "3"

            await client.patch(found)

            assert (await client.get(ConfigMap, "a", namespace=namespace)).data == {"keep": "3", "drop": "2"}


async def test_paged_and_streaming_lists_fill_the_cache_alike(client: Client, namespace: str) -> None:
    for number in range(12):
        await client.create(config(namespace, f"c{number:02}"))

    class NoStreamingLists:
        def __init__(self, transport: Transport) -> None:
            self._transport = transport

        async def send(self, request: HttpRequest) -> HttpResponse:
            return await self._transport.send(request)

        def stream(self, request: HttpRequest) -> Any:
            query = tuple(pair for pair in request.query if pair[0] != "resourceVersionMatch")
            if "sendInitialEvents" in dict(request.query):  # without this, the server refuses the combination
                request = HttpRequest(method=request.method, path=request.path, query=query, headers=request.headers)
            return self._transport.stream(request)

        async def close(self) -> None:
            return

    held = []
    for transport in (client.transport, NoStreamingLists(client.transport)):
        async with running(Client(transport), default_scope=only(namespace)) as (cache, _):
            with cache.use(ConfigMap):
                await cache.wait_for_sync()
                held.append(cache.reader.list(ConfigMap).items)

    assert len(held[0]) == 12
    assert held[0] == held[1]
