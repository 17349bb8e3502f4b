"""What the scenarios share: a kind, an operator for it, a journal of what that did, and ways to wait for a state.

A scenario is a whole operator on a real control plane to which something happens. Those that kill processes have a
control plane of their own (`own_cluster`); the others share one and have a namespace of their own. Nothing sleeps: the
state of the server is awaited through a watch, what reconcilers do through a journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import pytest
from tests.planes import fresh_namespace
from tests.waiting import present

from kubewright import Client, Config, Context, Resource, Scope, Spec, Status, connect, controller
from kubewright.api.owners import controller_of
from kubewright.api.resource import KubeObject
from kubewright.cache.cache import Cache
from kubewright.cache.observer import CacheObserver
from kubewright.cluster.install import install_crds
from kubewright.cluster.planes.real import RealCluster
from kubewright.cluster.processes.probe import Probe
from kubewright.controllers.declaration import Declaration
from kubewright.errors import AlreadyExists, NotFound, ServerError, TransportError
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.manager.manager import Manager
from kubewright.manager.options import ManagerOptions
from kubewright.testing import time_limit

K = TypeVar("K", bound=KubeObject)


# --- the operator under test ---


class WidgetSpec(Spec):
    size: int = 1


class WidgetStatus(Status):
    ready: int = 0


class Widget(Resource[WidgetSpec, WidgetStatus], group="scenarios.example.io", version="v1"):
    """What the operator looks after: each has one ConfigMap that says its size."""


def widget(name: str, namespace: str, size: int = 1) -> Widget:
    return Widget.named(name, namespace, spec=WidgetSpec(size=size))


class Journal:
    """What happened, in order, and a way to wait for more."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self._waiting: dict[asyncio.Future[None], Callable[[list[str]], bool]] = {}

    def note(self, entry: str) -> None:
        self.entries.append(entry)
        for future, holds in tuple(self._waiting.items()):
            if not future.done() and holds(self.entries):
                future.set_result(None)

    async def reach(self, holds: Callable[[list[str]], bool], *, seconds: float = 60) -> list[str]:
        """The entries, once they satisfy a condition."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = holds
        try:
            if not holds(self.entries):
                async with time_limit(seconds):
                    await future
        finally:
            del self._waiting[future]
        return list(self.entries)


def child_per_widget(journal: Journal, **options: Any) -> Declaration[Widget]:
    """The operator: one ConfigMap for each widget, and its size in the status.

    It takes the child away itself: the cluster's own garbage collector needs half a minute to hear of a new kind.
    """

    class Children:
        async def reconcile(self, obj: Widget, ctx: Context) -> None:
            journal.note(obj.metadata.name)
            child = await ctx.apply(ConfigMap.named(obj.metadata.name, data={"size": str(obj.spec.size)}))
            obj.status.ready = int((child.data or {}).get("size", "0"))
            ctx.condition("Ready", True, reason="Applied")

        async def finalize(self, obj: Widget, ctx: Context) -> None:
            journal.note(f"-{obj.metadata.name}")
            with suppress(NotFound):  # asked live: the answer to the child's creation may have been lost
                await ctx.client.live.delete(ConfigMap, obj.key)

    return controller(Widget, owns=[ConfigMap], **options)(Children)


class Lists(CacheObserver):
    """Counts full lists by kind and by what made them necessary."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []

    def on_list(self, kind: type[KubeObject], reason: str) -> None:
        self.made.append((kind.kind, reason))


def managed(
    target: Config | Client, namespace: str, *declarations: Declaration[Any], lists: Lists | None = None, **options: Any
) -> Manager:
    """A manager for one namespace, as an operator would have it, with a health server on a free port."""
    chosen = {
        "name": "scenario",
        "namespace": namespace,
        "health_address": "127.0.0.1:0",
        "metrics_address": "0",
        **options,
    }
    return Manager(
        *declarations,
        config=target if isinstance(target, Config) else None,
        client=target if isinstance(target, Client) else None,
        options=ManagerOptions(**chosen),
        namespaces=[namespace],
        cache=lambda client: Cache(client, default_scope=Scope(namespaces=(namespace,)), observer=lists),
    )


async def asked(manager: Manager, path: str) -> str:
    """What the health server says."""
    _, body = await Probe(manager.port("health")).get(path)
    return body.decode()


# --- people ---


async def insist(action: Callable[[], Awaitable[object]]) -> None:
    """Do what a person does whose command fails: repeat it until the server has said yes."""
    while True:
        try:
            await action()
            return
        except (AlreadyExists, NotFound):  # an earlier try was executed, its answer lost
            return
        except (TransportError, ServerError):
            continue


# --- states of the server ---


def children(have: Mapping[str, ConfigMap]) -> dict[str, tuple[str, str]]:
    """Of each owned ConfigMap its size and its owner's uid."""
    found = {}
    for name, child in have.items():
        owner = controller_of(child)
        if owner is not None:
            found[name] = ((child.data or {}).get("size", ""), owner.uid)
    return found


def finished(obj: Widget) -> bool:
    """Whether the operator has seen the widget as it is now."""
    return obj.status.observed_generation == obj.metadata.generation and obj.status.ready == obj.spec.size


async def converged(client: Client, namespace: str, sizes: Mapping[str, int], *, seconds: float = 120) -> None:
    """Returns when there are exactly these widgets, each finished and with exactly its child."""

    def all_finished(have: dict[str, Widget]) -> bool:
        return {name: obj.spec.size for name, obj in have.items()} == sizes and all(map(finished, have.values()))

    widgets = await present(client, Widget, namespace, all_finished, seconds=seconds)
    wanted = {name: (str(size), widgets[name].metadata.uid) for name, size in sizes.items()}
    await present(client, ConfigMap, namespace, lambda have: children(have) == wanted, seconds=seconds)


# --- control planes ---


@pytest.fixture(scope="session")
async def client(real_cluster: RealCluster) -> AsyncIterator[Client]:
    """An administrator's client of the shared control plane, which has the kind."""
    async with connect(Config.load(kubeconfig=real_cluster.kubeconfig)) as client:
        await install_crds(client, Widget)
        yield client


@pytest.fixture
async def namespace(client: Client) -> str:
    """A fresh namespace; it is left behind, for emptying it would take the server longer than many a scenario."""
    return await fresh_namespace(client)


@pytest.fixture(scope="module")
async def own_client(own_cluster: RealCluster) -> AsyncIterator[Client]:
    """An administrator's client of the module's own control plane, which has the kind."""
    async with connect(Config.load(kubeconfig=own_cluster.kubeconfig)) as client:
        await install_crds(client, Widget)
        yield client
