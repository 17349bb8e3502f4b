"""The clusters of a manager: how to write to each, and what is cached of it.

Each cluster has two clients on one set of connections. `client` is for what this process does as the leader: the fence
stops its writes. `open_client` is for everything else, such as the lease itself, reviews, or a runnable that works on
every replica. Without leader election both are the same. The manager makes these; controllers get the client and the
cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger
from kubewright._base.tasks import cancel_and_wait, wait_for_end
from kubewright.api.resource import KubeObject
from kubewright.cache.cache import Cache
from kubewright.cache.scope import Scope
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.client.transport.default import default_transport
from kubewright.client.transport.retries import RetryingTransport
from kubewright.client.transport.transport import Transport
from kubewright.errors import ConfigError
from kubewright.manager.cache_protocols import CacheLike
from kubewright.manager.runnables import RunnableGroup
from kubewright.manager.telemetry import Telemetry

if TYPE_CHECKING:
    from kubewright.manager.leader_election.elector import LeaderElector

__all__ = (
    "DEFAULT",
    "CacheFactory",
    "CacheRunnable",
    "Clusters",
    "Connection",
    "ManagedCluster",
    "cache_factory",
)

DEFAULT: Final = "default"
"""The name of the cluster a manager is made for. Its lease decides who leads, for all of them."""
_POLL: Final = 0.5
"""Seconds between two looks at what a cache is waiting for."""

_log = Logger("kubewright.manager")

CacheFactory = Callable[[Client], CacheLike]


def cache_factory(
    *,
    scopes: Mapping[type[KubeObject], Scope],
    namespaces: tuple[str, ...],
    telemetry: Telemetry,
    clock: Clock,
    rng: Random,
) -> CacheFactory:
    """Makes the caches of clusters that bring none of their own."""
    return lambda client: Cache(
        client,
        scopes=scopes,
        default_scope=Scope(namespaces=namespaces),
        clock=clock,
        network_clock=SystemClock(),  # a test that stops the clock does not stop the server from ending a watch
        rng=rng,
        observer=telemetry.cache(),
    )


@final
class Connection:
    """The way to one cluster: made from a configuration, or around a client that somebody else made and closes."""

    def __init__(self, target: Config | Client, *, telemetry: Telemetry, field_manager: str) -> None:
        self.config = target if isinstance(target, Config) else None
        """None around a client."""
        if isinstance(target, Config):
            host = urlsplit(target.server).netloc
            self._wire: Transport = telemetry.transport(default_transport(target), host=host)
            self._pattern: Client | None = None
            self._namespace, self._manager = target.namespace, field_manager
        else:
            # The client brings its own retries, so they are below the fence; see `leader_election.fence`.
            self._wire = telemetry.transport(target.transport, host="")
            self._pattern = target
            self._namespace, self._manager = target.namespace, target.field_manager or field_manager

    def client(self, elector: LeaderElector | None = None) -> Client:
        """A client; with an elector, one that writes only while this process leads."""
        wire = self._wire
        if elector is not None:
            from kubewright.manager.leader_election.fence import FencedTransport  # only those who are several pay

            wire = FencedTransport(wire, elector)
        if self._pattern is None:
            return Client(RetryingTransport(wire), namespace=self._namespace, field_manager=self._manager)
        return Client(
            wire,
            namespace=self._namespace,
            field_manager=self._manager,
            field_validation=self._pattern.field_validation,
            timeout=self._pattern.timeout,
        )

    async def close(self) -> None:
        """Close what was made here."""
        if self.config is not None:
            await self._wire.close()


@final
class ManagedCluster:
    """One cluster of a manager: its clients and its cache."""

    def __init__(
        self,
        name: str,
        connection: Connection,
        *,
        open_client: Client,
        elector: LeaderElector | None,
        cache: CacheFactory,
    ) -> None:
        self.name = name
        self.connection = connection
        self.open_client = open_client
        """Not fenced: for work that does not need to lead."""
        self.client = open_client if elector is None else connection.client(elector)
        """For work that leads: refuses to write when this process does not."""
        self.cache = cache(self.open_client)


@final
class Clusters:
    """The clusters of one manager by name, and the kinds their caches follow."""

    def __init__(self, *, owner: str, elector: LeaderElector | None, cache: CacheFactory) -> None:
        self._owner = owner
        self._elector = elector
        self._cache = cache
        self._by_name: dict[str, ManagedCluster] = {}
        self._kinds: list[tuple[str, type[KubeObject], Scope | None]] = []

    def add(
        self, name: str, connection: Connection, *, open_client: Client | None = None, cache: CacheFactory | None = None
    ) -> ManagedCluster:
        if name in self._by_name:
            raise ConfigError(f"the manager {self._owner} has a cluster {name!r} already; choose another name")
        cluster = ManagedCluster(
            name,
            connection,
            open_client=open_client or connection.client(),
            elector=self._elector,
            cache=cache or self._cache,
        )
        self._by_name[name] = cluster
        return cluster

    def __getitem__(self, name: str) -> ManagedCluster:
        cluster = self._by_name.get(name)
        if cluster is None:
            raise ConfigError(f"the manager {self._owner} has no cluster {name!r}; call add_cluster first")
        return cluster

    def by_name(self) -> dict[str, ManagedCluster]:
        return dict(self._by_name)

    def caches(self) -> list[CacheLike]:
        return [cluster.cache for cluster in self._by_name.values()]

    def follow(self, cluster: str, kind: type[KubeObject], scope: Scope | None = None) -> None:
        """Have the cache of a cluster follow a kind, from the next `start_informers` on."""
        self._kinds.append((cluster, kind, scope))

    def start_informers(self) -> None:
        """Make an informer for each kind that was asked for since the last call."""
        for name, kind, scope in dict.fromkeys(self._kinds):
            cache = self._by_name[name].cache
            cache.informer(kind, scope=scope) if isinstance(cache, Cache) else cache.informer(kind)
        self._kinds.clear()

    async def close(self) -> None:
        for cluster in self._by_name.values():
            await cluster.connection.close()


@final
class CacheRunnable:
    """A cache as a runnable that others wait for."""

    needs_leader = False
    group = RunnableGroup.CACHES

    def __init__(self, name: str, cache: CacheLike, *, clock: Clock) -> None:
        self.name = f"cache {name}"
        self._cache = cache
        self._clock = clock

    async def run(self) -> None:
        await self._cache.run()

    async def wait_ready(self) -> None:
        """Wait until every kind is in sync, or known not to be for a reason that may last.

        A missing permission for one kind must not keep the controllers of the others from working. A controller that
        needs that kind waits for it itself.
        """
        synced = asyncio.ensure_future(self._cache.wait_for_sync())
        try:
            while await wait_for_end([synced], seconds=_POLL, clock=self._clock):
                waiting = [watched for watched in self._cache.informers() if not watched.synced]
                if waiting and all(watched.problem is not None for watched in waiting):
                    kinds = [watched.kind.__name__ for watched in waiting]
                    _log.warning("going on without some kinds", cache=self.name, kinds=kinds)
                    return
            synced.result()
        finally:
            await cancel_and_wait(synced)
