"""A cluster as a manager sees it: how to write to it, and what is cached of it.

Of each cluster there are two clients on one set of connections. `client` is for what this process does as the leader:
its writes stop at the fence. `open_client` is for everything else, such as the lease itself, reviews, or a runnable
that works on every replica. Without leader election both are the same. The manager makes these; controllers get the
client and the cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

from kubewright._base.clock import Clock
from kubewright._base.logs import Logger
from kubewright._base.tasks import cancel_and_wait, wait_for_end
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.client.transport.default import default_transport
from kubewright.client.transport.retries import RetryingTransport
from kubewright.client.transport.transport import Transport
from kubewright.manager.checks import CacheLike
from kubewright.manager.runnables import Group
from kubewright.manager.telemetry import Telemetry

if TYPE_CHECKING:
    from kubewright.manager.leadership import Leadership

__all__ = ("CacheFactory", "CacheRunnable", "Connection", "ManagedCluster")

_LOOK: Final = 0.5
"""Seconds between two looks at what a cache is waiting for."""

_log = Logger("kubewright.manager")

CacheFactory = Callable[[Client], CacheLike]


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
            # Its retries are below the fence then: one that is slept through is cut off, see `fence`.
            self._wire = telemetry.transport(target.transport, host="")
            self._pattern = target
            self._namespace, self._manager = target.namespace, target.field_manager or field_manager

    def client(self, leadership: Leadership | None = None) -> Client:
        """A client; fenced, if there is a leadership to keep."""
        wire = self._wire
        if leadership is not None:
            from kubewright.manager.fence import FencedTransport  # only those who are several pay for it

            wire = FencedTransport(wire, leadership)
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
        leadership: Leadership | None,
        cache: CacheFactory,
    ) -> None:
        self.name = name
        self.connection = connection
        self.open_client = open_client
        """Not fenced: for work that does not need to lead."""
        self.client = open_client if leadership is None else connection.client(leadership)
        """For work that leads: refuses to write when this process does not."""
        self.cache = cache(self.open_client)


@final
class CacheRunnable:
    """A cache as a runnable that others wait for."""

    needs_leader = False
    group = Group.CACHES

    def __init__(self, name: str, cache: CacheLike, *, clock: Clock) -> None:
        self.name = f"cache {name}"
        self._cache = cache
        self._clock = clock

    async def run(self) -> None:
        await self._cache.run()

    async def wait_ready(self) -> None:
        """Wait until every kind is in sync, or known not to be for a reason that may last.

        A missing permission for one kind must not keep the controllers of the others from working; who needs that
        kind waits for it himself.
        """
        synced = asyncio.ensure_future(self._cache.wait_for_sync())
        try:
            while await wait_for_end([synced], seconds=_LOOK, clock=self._clock):
                waiting = [watched for watched in self._cache.informers() if not watched.synced]
                if waiting and all(watched.problem is not None for watched in waiting):
                    kinds = [watched.kind.__name__ for watched in waiting]
                    _log.warning("going on without some kinds", cache=self.name, kinds=kinds)
                    return
            synced.result()
        finally:
            await cancel_and_wait(synced)
