"""Manager: one process, from start to stop.

    manager = Manager()                                  # the cluster and the options that the environment names
    manager.add(reconcile)
    asyncio.run(manager.run())

It puts the parts together and owns their order: servers, webhooks, caches, others, and the leaders once this
process leads; and back again. It knows controllers only as runnables and caches only as something that runs and gets
in sync, so several managers with several clusters fit in one process. What each part does is written where it is.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeGuard, cast, final

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger, configure
from kubewright._base.loop import shrink_tls_buffers
from kubewright._base.loop_monitor import LoopMonitor
from kubewright._base.tasks import Tasks, cancel_and_wait, within
from kubewright.api.resource import KubeObject
from kubewright.cache.cache import Cache
from kubewright.cache.memory import freeze_loaded
from kubewright.cache.scope import Scope
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.controllers.controller import Controller
from kubewright.controllers.declaration import Declaration
from kubewright.controllers.event_recorder import EventRecorder
from kubewright.errors import ConfigError, KubewrightError, LeadershipLost
from kubewright.manager.addresses import is_on
from kubewright.manager.checks import CacheLike, caches_ready, lease_kept, loop_turns, watches_heard, webhooks_ready
from kubewright.manager.clusters import CacheFactory, CacheRunnable, Connection, ManagedCluster
from kubewright.manager.health import Check, Checks
from kubewright.manager.inspection import Provider, pages_of
from kubewright.manager.options import ManagerOptions
from kubewright.manager.runnables import Function, Group, Runnable, Runnables
from kubewright.manager.signals import stop_on_signal
from kubewright.manager.telemetry import Telemetry

if TYPE_CHECKING:
    # What not every operator needs is imported where it is made.
    from kubewright.manager.leadership import Leadership
    from kubewright.manager.servers import Server
    from kubewright.manager.webhooks import ServedWebhooks
    from kubewright.webhooks.certificates.sources import CertificateSource
    from kubewright.webhooks.serving.router import WebhookDeclaration

__all__ = ("Manager",)


@final
class Manager:
    """Starts, leads, reports, stops. Use `run`, or `async with` where something else decides when to stop."""

    def __init__(
        self,
        target: Config | Client | None = None,
        *runnables: Runnable | Declaration[Any] | WebhookDeclaration | type | Callable[[], Awaitable[None]],
        options: ManagerOptions | None = None,
        namespaces: Sequence[str] = (),
        scopes: Mapping[type[KubeObject], Scope] | None = None,
        cache: CacheFactory | None = None,
        certificates: CertificateSource | None = None,
        telemetry: Telemetry | None = None,
        clock: Clock | None = None,
        rng: Random | None = None,
    ) -> None:
        """`target` is the cluster. What is not given of it and `options` is what their `load` finds.

        `namespaces` are those that are watched, all if none is named; `scopes` says more for single kinds, and what
        declares a controller may say more still.
        `cache` makes another cache of a client. `certificates` are what webhooks are served with, if not as the options
        say.
        """
        self.options = options or ManagerOptions.load()
        self.log = Logger("kubewright.manager", manager=self.options.name)
        self._clock = clock or SystemClock()
        self.telemetry = telemetry or Telemetry(clock=self._clock)
        self._rng = rng or Random()
        self._namespaces = (namespaces,) if isinstance(namespaces, str) else tuple(namespaces)
        self._scopes = dict(scopes or {})
        target = target if target is not None else Config.load()
        self._config = target if isinstance(target, Config) else None
        connection = self._connection(target)
        open_client = connection.client()
        self.leadership = self._campaign(open_client) if self.options.leader_election else None
        """None without leader election: then this process always leads."""
        self.home = ManagedCluster(
            "home", connection, open_client=open_client, leadership=self.leadership, cache=cache or self._new_cache
        )
        self._clusters = {"home": self.home}
        self._runnables = Runnables(owner=self.options.name, grace=self.options.grace_period, clock=self._clock)
        self._election = Tasks(f"{self.options.name} election", clock=self._clock)
        self._healthz = Checks("healthz", clock=self._clock)
        self._readyz = Checks("readyz", clock=self._clock)
        self._kinds: list[tuple[str, type[KubeObject], Scope | None]] = []
        self._controllers: set[tuple[str, str, type[KubeObject]]] = set()
        self._debug: dict[str, Provider] = {}
        self._servers: list[Server | ServedWebhooks] = []
        self._certificates = certificates
        self._declared: list[WebhookDeclaration] = []
        self._stop_asked = asyncio.Event()
        self._state = "new"
        self._assemble()
        for runnable in runnables:
            self.add(runnable)

    # What it offers -----------------------------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """The client for controllers: it writes only while this process leads."""
        return self.home.client

    @property
    def cache(self) -> CacheLike:
        """The cache of the home cluster."""
        return self.home.cache

    @property
    def clusters(self) -> dict[str, ManagedCluster]:
        """Every cluster by its name; the first is `home`."""
        return dict(self._clusters)

    @property
    def state(self) -> str:
        """new, starting, running, stopping or stopped."""
        return self._state

    def add(
        self,
        runnable: Runnable | Declaration[Any] | WebhookDeclaration | type | Callable[[], Awaitable[None]],
        *,
        group: Group | None = None,
        cluster: str = "home",
    ) -> None:
        """Run it too: with its group, at once if that runs already. An async function runs where this process leads.

        What `@controller` declared becomes a controller on the client and the cache of the cluster; what `@validate`
        and its like declared is served on every replica, unless webhooks are off.

        If it has `kinds`, the cache of its cluster follows them from the start, also where this process does not lead:
        who takes over finds them warm.
        """
        if cluster not in self._clusters:
            raise ConfigError(f"the manager {self.options.name} has no cluster {cluster!r}; call add_cluster first")
        if _is_webhook(runnable):
            if self._state != "new":
                raise ConfigError(f"{runnable.name}: webhooks are added before the manager starts; it is {self._state}")
            if self.options.webhooks:
                self._declared.append(runnable)
                self._kinds.extend(("home", kind, None) for kind in getattr(runnable, "reads", ()))
            return
        if isinstance(runnable, Declaration):
            runnable = self._controller(runnable, self._clusters[cluster])
        self._runnables.add(_as_runnable(runnable), group=group)
        scopes = runnable.scopes if isinstance(runnable, Controller) else {}
        for kind in getattr(runnable, "kinds", ()):
            self._kinds.extend((cluster, kind, scope) for scope in scopes.get(kind, (None,)))
        if self._state == "running":
            self._follow_kinds()

    def add_cluster(self, name: str, target: Config | Client, *, cache: CacheFactory | None = None) -> ManagedCluster:
        """Another cluster to work with. Who leads is decided in the home cluster, for all of them."""
        if name in self._clusters:
            raise ConfigError(f"the manager {self.options.name} has a cluster {name!r} already; choose another name")
        connection = self._connection(target)
        cluster = ManagedCluster(
            name,
            connection,
            open_client=connection.client(),
            leadership=self.leadership,
            cache=cache or self._new_cache,
        )
        self._clusters[name] = cluster
        self._add_cache(cluster)
        return cluster

    def add_health_check(self, name: str, check: Check, *, timeout: float = 5.0) -> None:
        """Liveness: only for what a restart of the process cures."""
        self._healthz.add(name, check, timeout=timeout)

    def add_ready_check(self, name: str, check: Check, *, timeout: float = 5.0) -> None:
        """Readiness: whether this process can be sent requests now."""
        self._readyz.add(name, check, timeout=timeout)

    def add_debug(self, name: str, provider: Provider) -> None:
        """Show this at `/debug/<name>`."""
        self._debug[name] = provider

    def recorder(self, controller: str, *, client: Client | None = None) -> EventRecorder:
        """An event recorder for a controller; it runs with this manager, and stops after the controllers.

        `client` is how it writes, where that is not the home cluster or does not need to lead.
        """
        recorder = EventRecorder(client or self.client, controller=controller, clock=self._clock, rng=self._rng)
        self._runnables.add(recorder, group=Group.CACHES)
        return recorder

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """Those that have been added, also while they do not run."""
        everything = chain.from_iterable(self._runnables.members(group) for group in Group)
        return tuple(member for member in everything if isinstance(member, Controller))

    def port(self, server: str) -> int:
        """The port that `health`, `metrics`, `debug` or `webhooks` listens on."""
        for candidate in self._servers:
            if candidate.name == server:
                return candidate.port
        raise ConfigError(f"the {server} server is off; give it an address in the options")

    # Life ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start, work until told to stop, stop. Raises what ended it, if it was not a request.

        SIGINT and SIGTERM are requests; a second one ends the process at once.
        """
        if (
            not logging.getLogger().handlers
        ):  # nobody has set up logging, and an operator that says nothing helps nobody
            configure(format=self.options.log_format, level=self.options.log_level)
        # Two settings of the whole process, so only here: with `async with` it belongs to somebody else.
        shrink_tls_buffers()
        with stop_on_signal(self.stop):
            async with self:
                freeze_loaded()
                await self.wait()

    def stop(self) -> None:
        """Ask it to stop; `run` returns when it has."""
        self._stop_asked.set()

    async def wait(self) -> None:
        """Wait until it is asked to stop, or until something that must run has failed, which is raised."""
        waits = [
            asyncio.create_task(self._stop_asked.wait()),
            asyncio.create_task(self._runnables.wait_failure()),
            asyncio.create_task(self._election.wait_failure()),
        ]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await cancel_and_wait(*waits)

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise KubewrightError(f"the manager {self.options.name} is {self._state}; it runs once, so make another")
        self._state = "starting"
        starting = asyncio.create_task(self._start(), name=f"{self.options.name}: start")
        asked = asyncio.create_task(self._stop_asked.wait())
        try:
            await asyncio.wait({starting, asked}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
            # In here too: who is cancelled at the very last moment must not leave behind what has just been started.
            await cancel_and_wait(starting, asked)
        except BaseException as error:
            await cancel_and_wait(starting, asked)
            await self._shut_down(error)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failure = error or self._runnables.failure or self._election.failure
        stuck = await self._shut_down(failure)
        if error is not None:
            return
        if failure is not None:
            raise failure
        if stuck:
            raise KubewrightError(
                f"{', '.join(stuck)} did not end within the grace period of {self.options.grace_period:g} s; "
                "look for code that blocks or swallows cancellation"
            )

    async def _start(self) -> None:
        self._add_webhooks()
        for server in self._servers:
            server.open()
        # Made before the webhooks are asked: those that read from the cache wait for it, so they have to know it.
        self._follow_kinds()
        await self._runnables.start(Group.SERVERS)
        await self._runnables.start(Group.WEBHOOKS)
        await self._sync()
        await self._runnables.start(Group.OTHERS)
        if self.leadership is None:
            await self._runnables.start(Group.LEADERS)
        else:
            self._election.start(self.leadership.run(), name="campaign")
            self._election.start(self._take_up(self.leadership), name="start of the leaders", may_end=True)
        self._state = "running"
        self.log.info("started")

    def _follow_kinds(self) -> None:
        for name, kind, scope in dict.fromkeys(self._kinds):
            cache = self._clusters[name].cache
            cache.informer(kind, scope=scope) if isinstance(cache, Cache) else cache.informer(kind)
        self._kinds.clear()

    async def _sync(self) -> None:
        limit = self.options.sync_timeout
        if not limit:
            await self._runnables.start(Group.CACHES)
            return
        try:
            await within(self._runnables.start(Group.CACHES), limit, clock=self._clock)
        except TimeoutError:
            problem = await caches_ready(self._caches)()
            raise KubewrightError(f"the caches were not in sync after {limit:g} s: {problem}") from None

    async def _take_up(self, leadership: Leadership) -> None:
        await leadership.wait_elected()
        await self._runnables.start(Group.LEADERS)

    async def _shut_down(self, error: BaseException | None) -> tuple[str, ...]:
        """Back in reverse order. The lease is kept until nobody works any more, then given back."""
        self._state = "stopping"
        self._runnables.begin_stop()
        # Who has lost the lease may finish nothing: whatever it writes is refused.
        hurry = 0.0 if isinstance(error, LeadershipLost) else None
        stuck = [*await self._runnables.stop(Group.LEADERS, seconds=hurry)]
        for group in (Group.OTHERS, Group.CACHES):
            stuck.extend(await self._runnables.stop(group))
        await self._leave_election()
        for group in (Group.WEBHOOKS, Group.SERVERS):
            stuck.extend(await self._runnables.stop(group))
        for server in self._servers:
            server.close()
        for cluster in self._clusters.values():
            await cluster.connection.close()
        self._state = "stopped"
        self.log.info("stopped", stuck=stuck) if stuck else self.log.info("stopped")
        return tuple(stuck)

    async def _leave_election(self) -> None:
        if self.leadership is None:
            return
        await self._election.stop()
        if self.options.release_lease:
            await self.leadership.release()
        else:
            self.leadership.resign()

    # Putting it together ------------------------------------------------------------------------------------

    def _connection(self, target: Config | Client) -> Connection:
        return Connection(target, telemetry=self.telemetry, field_manager=self.options.name)

    def _campaign(self, client: Client) -> Leadership:
        from kubewright.manager.leadership import Leadership  # only those who are several pay for it

        name = self.options.lease_name or self.options.name
        return Leadership(
            client,
            lease=name,
            namespace=self.options.namespace or client.namespace,
            times=self.options.lease_times(),
            clock=self._clock,
            rng=self._rng,
            on_change=self.telemetry.on_leading(name),
        )

    def _controller(self, declaration: Declaration[Any], cluster: ManagedCluster) -> Controller:
        if not isinstance(cluster.cache, Cache):
            raise ConfigError(
                f"the controller {declaration.name} needs the framework's own cache; "
                "make a Controller by hand to run it on another"
            )
        known = (cluster.name, declaration.name, declaration.kind)
        if known in self._controllers:
            raise ConfigError(
                f"there are two controllers named {declaration.name} for {declaration.kind.__name__}; they would share "
                "metrics, fields and finalizers, so give one of them another name"
            )
        self._controllers.add(known)
        metrics = self.telemetry.queue(declaration.name)
        client = cluster.client if declaration.needs_leader else cluster.open_client
        controller = Controller(
            declaration,
            client=client,
            cache=cluster.cache,
            recorder=self.recorder(declaration.name, client=client),
            clock=self._clock,
            observer=self.telemetry.controller(declaration.name, concurrency=declaration.concurrency),
            queue_observer=metrics,
            metrics=self.telemetry.metrics,
        )
        metrics.follow(controller.queue)
        return controller

    def _add_webhooks(self) -> None:
        """All at once, for the cluster is told of them together."""
        if not self._declared:
            return
        from kubewright.manager.webhooks import served_webhooks  # only those who have webhooks pay for them

        webhooks = served_webhooks(
            self._declared,
            options=self.options,
            client=self.home.open_client,
            cache=self.home.cache if isinstance(self.home.cache, Cache) else None,
            config=self._config,
            certificates=self._certificates,
            observer=self.telemetry.webhooks(),
            on_certificate=self.telemetry.on_certificate,
            clock=self._clock,
        )
        self._servers.append(webhooks)
        self._readyz.add("webhooks", webhooks_ready(webhooks))
        self._runnables.add(webhooks, group=Group.WEBHOOKS)

    def _caches(self) -> list[CacheLike]:
        return [cluster.cache for cluster in self._clusters.values()]

    def _new_cache(self, client: Client) -> CacheLike:
        return Cache(
            client,
            scopes=self._scopes,
            default_scope=Scope(namespaces=self._namespaces),
            clock=self._clock,
            network_clock=SystemClock(),  # a test that stops the clock does not stop the server from ending a watch
            rng=self._rng,
            observer=self.telemetry.cache(),
        )

    def _assemble(self) -> None:
        self._healthz.add("watches", watches_heard(self._caches))
        self._readyz.add("caches", caches_ready(self._caches))
        self._readyz.add("started", self._started)
        if self.options.block_limit:
            monitor = LoopMonitor(
                limit=self.options.block_limit, on_lag=self.telemetry.on_lag, on_block=self.telemetry.on_block
            )
            self._runnables.add(monitor, group=Group.SERVERS)
            self._healthz.add("loop", loop_turns(monitor))
        if self.leadership is not None:
            self._healthz.add("leader-election", lease_kept(self.leadership))
        self._add_cache(self.home)
        self._add_servers()
        self._debug.update(pages_of(self._runnables, self._caches, self.leadership))

    async def _started(self) -> str | None:
        return None if self._state == "running" else f"the process is {self._state}"

    def _add_cache(self, cluster: ManagedCluster) -> None:
        self.telemetry.watch_cache(cluster.cache)
        self._runnables.add(CacheRunnable(cluster.name, cluster.cache, clock=self._clock))

    def _add_servers(self) -> None:
        options = self.options
        if not any(map(is_on, (options.health_address, options.metrics_address, options.debug_address))):
            return
        from kubewright.manager.reporting import reporting_servers  # only those who are asked pay for answering

        for server in reporting_servers(
            options,
            health=(self._healthz, self._readyz),
            metrics=self.telemetry.metrics,
            debug=self._debug,
            client=self.home.open_client,
            on_certificate=self.telemetry.on_certificate,
            clock=self._clock,
        ):
            self._servers.append(server)
            self._runnables.add(server)


def _is_webhook(given: object) -> TypeGuard[WebhookDeclaration]:
    """Whether it is what `@validate` and its like declare. Who has declared one has imported the module it is of."""
    return any(
        isinstance(given, getattr(module, name))
        for place, name in (("admission", "AdmissionDeclaration"), ("conversion", "ConversionDeclaration"))
        if (module := sys.modules.get(f"kubewright.webhooks.{place}.declarations")) is not None
    )


def _as_runnable(given: object) -> Runnable:
    if callable(given) and not hasattr(given, "run"):
        return Function(given)
    return cast("Runnable", given)
