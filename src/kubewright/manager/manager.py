"""Manager: one process, from start to stop.

    manager = Manager(reconcile)              # the cluster and the options that the environment names
    manager.add_readyz_check("disk", disk_is_mounted)
    run(manager)

An operator that is started in several ways says such things below `setup_with_manager`, where each of them finds it.
This module is what a manager offers to its users. `assembly` makes its parts and joins them, `lifecycle` starts and
stops them in order, `runnables` holds what runs. Nothing of it is global, so several managers with several clusters fit
in one process.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, final

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import configure
from kubewright._base.loop import shrink_tls_buffers
from kubewright._base.metrics import Metrics
from kubewright.api.resource import KubeObject
from kubewright.cache.memory import freeze_loaded
from kubewright.cache.scope import Scope
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.controllers.controller import Controller
from kubewright.controllers.declaration import Declaration
from kubewright.controllers.event_recorder import EventRecorder
from kubewright.errors import ConfigError
from kubewright.manager.assembly import Assembly
from kubewright.manager.cache_protocols import CacheLike
from kubewright.manager.clusters import DEFAULT, CacheFactory, ManagedCluster
from kubewright.manager.endpoints.debug import DebugProvider
from kubewright.manager.endpoints.healthz import Check
from kubewright.manager.options import ManagerOptions
from kubewright.manager.runnables import Runnable, RunnableGroup
from kubewright.manager.setup import ManagerSetup, single_setup
from kubewright.manager.signals import stop_on_signal
from kubewright.manager.telemetry import Telemetry

if TYPE_CHECKING:
    # What not every operator needs is imported where it is made.
    from kubewright.manager.leader_election.elector import LeaderElector
    from kubewright.webhooks.certificates.sources import CertificateSource
    from kubewright.webhooks.serving.router import WebhookDeclaration

__all__ = ("Addable", "Manager")

Addable: TypeAlias = "Runnable | Declaration[Any] | WebhookDeclaration | type | Callable[[], Awaitable[None]]"
"""What a manager runs. A `type` is a class below `@controller`: type checkers do not see what the decorator returns."""


@final
class Manager:
    """Starts, leads, reports, stops. Use `run`, or `async with` where something else decides when to stop."""

    def __init__(
        self,
        *runnables: Addable | ManagerSetup,
        config: Config | None = None,
        client: Client | None = None,
        options: ManagerOptions | None = None,
        namespaces: Sequence[str] = (),
        scopes: Mapping[type[KubeObject], Scope] | None = None,
        cache: CacheFactory | None = None,
        certificates: CertificateSource | None = None,
        telemetry: Telemetry | None = None,
        clock: Clock | None = None,
        rng: Random | None = None,
    ) -> None:
        """`config` says how to reach the cluster: `Config.load()` if neither it nor a `client` is given.

        A `client` that is given stays open when the manager stops. `options` are `ManagerOptions.load()` if not given.
        `namespaces` are those that are watched, all if none is named, unless the options name some; `scopes` says more
        for single kinds, and a controller may declare its own. What `setup_with_manager` declared has scopes and
        defaults of options, too; those that are given here win.
        `cache` makes another cache for a client. `certificates` are what webhooks are served with, if not as the
        options say.
        """
        setup = single_setup([item for item in runnables if isinstance(item, ManagerSetup)])
        self.options = options or ManagerOptions.load(defaults=setup.defaults if setup is not None else None)
        clock = clock or SystemClock()
        self._parts = Assembly(
            self.options,
            config=config,
            client=client,
            namespaces=self.options.watch_namespaces
            or ((namespaces,) if isinstance(namespaces, str) else tuple(namespaces)),
            scopes={**(setup.scopes if setup is not None else {}), **(scopes or {})},
            cache=cache,
            certificates=certificates,
            telemetry=telemetry or Telemetry(clock=clock),
            clock=clock,
            rng=rng or Random(),
        )
        self._lifecycle = self._parts.lifecycle
        for runnable in runnables:
            if not isinstance(runnable, ManagerSetup):
                self.add(runnable)
        if setup is not None:
            setup(self)

    # What it runs -------------------------------------------------------------------------------------------

    def add(self, runnable: Addable, *, group: RunnableGroup | None = None, cluster: str = DEFAULT) -> None:
        """Run it too: with its group, at once if that runs already. An async function runs where this process leads.

        What `@controller` declared becomes a controller on the client and the cache of the cluster; what `@validate`
        and its like declared is served on every replica, unless webhooks are off.

        If it has `kinds`, the cache of its cluster follows them from the start, also where this process does not lead:
        a process that takes over finds them in sync.
        """
        if isinstance(runnable, ManagerSetup):
            raise ConfigError(f"{runnable} comes too late: its scopes make the cache; give it to Manager or to run")
        self._parts.add(runnable, group=group, cluster=cluster)

    def add_cluster(
        self,
        name: str,
        *,
        config: Config | None = None,
        client: Client | None = None,
        cache: CacheFactory | None = None,
    ) -> ManagedCluster:
        """Work with another cluster too. The lease in the default cluster decides who leads, for all of them."""
        return self._parts.add_cluster(name, config=config, client=client, cache=cache)

    def add_healthz_check(self, name: str, check: Check, *, timeout: float = 5.0) -> None:
        """Liveness: only for what a restart of the process cures."""
        self._parts.endpoints.healthz.add(name, check, timeout=timeout)

    def add_readyz_check(self, name: str, check: Check, *, timeout: float = 5.0) -> None:
        """Readiness: whether this process can be sent requests now."""
        self._parts.endpoints.readyz.add(name, check, timeout=timeout)

    def add_debug(self, name: str, provider: DebugProvider) -> None:
        """Show this at `/debug/<name>`."""
        self._parts.endpoints.debug[name] = provider

    def recorder(self, controller: str, *, client: Client | None = None) -> EventRecorder:
        """An event recorder for a controller; it runs with this manager, and stops after the controllers.

        `client` is how it writes, where that is not the default cluster or does not need to lead.
        """
        return self._parts.controllers.recorder(controller, client or self.client)

    # What it offers -----------------------------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """The client for controllers: it writes only while this process leads."""
        return self._parts.clusters[DEFAULT].client

    @property
    def cache(self) -> CacheLike:
        """The cache of the default cluster."""
        return self._parts.clusters[DEFAULT].cache

    @property
    def clusters(self) -> dict[str, ManagedCluster]:
        """Every cluster by its name; the first is `default`."""
        return self._parts.clusters.by_name()

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """Those that have been added, also while they do not run."""
        everything = chain.from_iterable(self._parts.runnables.members(group) for group in RunnableGroup)
        return tuple(member for member in everything if isinstance(member, Controller))

    @property
    def metrics(self) -> Metrics:
        """The registry that `/metrics` shows."""
        return self._parts.telemetry.metrics

    @property
    def elector(self) -> LeaderElector | None:
        """None without leader election: then this process always leads."""
        return self._parts.elector

    @property
    def state(self) -> str:
        """new, starting, running, failed, stopping or stopped.

        It is `failed` from when something that must run has ended, such as a controller, until the rest is stopped;
        `wait` raises why.
        """
        return self._lifecycle.state

    def port(self, server: str) -> int:
        """The port that `health`, `metrics`, `debug` or `webhooks` listens on."""
        return self._parts.endpoints.port(server)

    # Its life -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start, work until told to stop, stop. Raises what ended it, if it was not a request.

        SIGINT and SIGTERM are requests; a second one ends the process at once.
        """
        if not logging.getLogger().handlers:  # nobody has set up logging, and a silent operator helps nobody
            configure(format=self.options.log_format, level=self.options.log_level)
        # Two settings of the whole process, so only here: with `async with` it belongs to somebody else.
        shrink_tls_buffers()
        with stop_on_signal(self.stop):
            async with self:
                freeze_loaded()
                await self.wait()

    def stop(self) -> None:
        """Ask it to stop; `run` returns when it has."""
        self._lifecycle.stop()

    async def wait(self) -> None:
        """Wait until it is asked to stop, or until something that must run has failed, which is raised."""
        await self._lifecycle.wait()

    async def elected(self) -> None:
        """Wait until the leaders may start: this process has won the election, or runs without one."""
        await self._lifecycle.elected.wait()

    async def __aenter__(self) -> Self:
        await self._lifecycle.start(self._parts.serve_webhooks)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._lifecycle.end(error)
