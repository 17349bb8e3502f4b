"""Assembly: the parts of one manager, made from its options and joined.

Clusters with their caches, the runnables, controllers, HTTP servers, webhooks, checks, and the election if there is
one. It starts nothing: `lifecycle` does, in order. `manager` makes one and is what users see of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any, final

from kubewright._base.clock import Clock
from kubewright._base.loop_monitor import LoopMonitor
from kubewright.api.resource import KubeObject
from kubewright.cache.cache import Cache
from kubewright.cache.scope import Scope
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.controllers.controller import Controller
from kubewright.controllers.declaration import Declaration
from kubewright.errors import ConfigError
from kubewright.manager.clusters import (
    DEFAULT,
    CacheFactory,
    CacheRunnable,
    Clusters,
    Connection,
    ManagedCluster,
    cache_factory,
)
from kubewright.manager.controllers import Controllers
from kubewright.manager.endpoints.checks import caches_ready, lease_kept, loop_turns, watches_heard, webhooks_ready
from kubewright.manager.endpoints.debug import debug_pages
from kubewright.manager.endpoints.endpoints import Endpoints
from kubewright.manager.lifecycle import Lifecycle
from kubewright.manager.options import ManagerOptions
from kubewright.manager.runnables import RunnableGroup, Runnables, is_webhook, runnable_from
from kubewright.manager.telemetry import Telemetry
from kubewright.manager.webhook_certificates import registers_itself

if TYPE_CHECKING:
    # What not every operator needs is imported where it is made.
    from kubewright.manager.leader_election.election import Election
    from kubewright.webhooks.certificates.sources import CertificateSource
    from kubewright.webhooks.serving.router import WebhookDeclaration

__all__ = ("Assembly",)


@final
class Assembly:
    """The parts of one manager."""

    def __init__(
        self,
        options: ManagerOptions,
        *,
        config: Config | None,
        client: Client | None,
        namespaces: tuple[str, ...],
        scopes: Mapping[type[KubeObject], Scope],
        cache: CacheFactory | None,
        certificates: CertificateSource | None,
        telemetry: Telemetry,
        clock: Clock,
        rng: Random,
    ) -> None:
        self.options = options
        self.telemetry = telemetry
        self._clock = clock
        self._certificates = certificates
        self._webhooks: list[WebhookDeclaration] = []
        connection = self._connection(config, client)
        open_client = connection.client()
        self.election = self._new_election(open_client, rng) if options.leader_election else None
        self.elector = self.election.elector if self.election is not None else None
        self.clusters = Clusters(
            owner=options.name,
            elector=self.elector,
            cache=cache_factory(scopes=scopes, namespaces=namespaces, telemetry=telemetry, clock=clock, rng=rng),
        )
        self.runnables = Runnables(owner=options.name, grace=options.grace_period, clock=clock)
        self.controllers = Controllers(self.runnables, telemetry=telemetry, clock=clock, rng=rng)
        self.endpoints = Endpoints(self.runnables, clock=clock)
        self.lifecycle = Lifecycle(
            options,
            runnables=self.runnables,
            clusters=self.clusters,
            endpoints=self.endpoints,
            election=self.election,
            clock=clock,
        )
        self._add_checks()
        self._run_cache(self.clusters.add(DEFAULT, connection, open_client=open_client, cache=cache))
        self.endpoints.add_servers(options, telemetry=telemetry, client=open_client)
        self.endpoints.debug.update(debug_pages(self.runnables, self.clusters.caches, self.elector))

    def add(self, runnable: object, *, group: RunnableGroup | None, cluster: str) -> None:
        """Turn what was declared into what runs, and have the cache follow the kinds it names."""
        place = self.clusters[cluster]
        if is_webhook(runnable):
            self._add_webhook(runnable)
            return
        if isinstance(runnable, Declaration):
            runnable = self.controllers.build(runnable, place)
        self.runnables.add(runnable_from(runnable), group=group)
        scopes: Mapping[Any, Any] = runnable.scopes if isinstance(runnable, Controller) else {}
        for kind in getattr(runnable, "kinds", ()):
            for scope in scopes.get(kind, (None,)):
                self.clusters.follow(cluster, kind, scope)
        if self.lifecycle.state == "running":
            self.clusters.start_informers()

    def add_cluster(
        self, name: str, *, config: Config | None, client: Client | None, cache: CacheFactory | None
    ) -> ManagedCluster:
        if config is None and client is None:
            raise ConfigError(f"the cluster {name!r} has no address; give add_cluster its config or a client")
        cluster = self.clusters.add(name, self._connection(config, client), cache=cache)
        self._run_cache(cluster)
        return cluster

    def serve_webhooks(self) -> None:
        """Make the server of the webhooks, once all are known: they are registered together."""
        default = self.clusters[DEFAULT]
        if not self._webhooks:
            if registers_itself(self.options, default.connection.config):
                # A process before this one may have had some, and have been killed.
                from kubewright.webhooks.registration.local_processes import DeadWebhooks

                self.runnables.add(DeadWebhooks(default.open_client, clock=self._clock), group=RunnableGroup.WEBHOOKS)
            return
        from kubewright.manager.webhooks import served_webhooks  # only those who have webhooks pay for them

        webhooks = served_webhooks(
            self._webhooks,
            options=self.options,
            client=default.open_client,
            cache=default.cache if isinstance(default.cache, Cache) else None,
            config=default.connection.config,
            certificates=self._certificates,
            observer=self.telemetry.webhooks(),
            on_certificate=self.telemetry.on_certificate,
            clock=self._clock,
        )
        self.endpoints.readyz.add("webhooks", webhooks_ready(webhooks))
        self.endpoints.add(webhooks, group=RunnableGroup.WEBHOOKS)

    def _connection(self, config: Config | None, client: Client | None) -> Connection:
        if config is not None and client is not None:
            raise ConfigError("the manager got a config and a client, which both name a cluster; give it one of them")
        target = client or config or Config.load()
        return Connection(target, telemetry=self.telemetry, field_manager=self.options.name)

    def _new_election(self, client: Client, rng: Random) -> Election:
        from kubewright.manager.leader_election.election import Election  # only those who are several pay for it

        return Election.from_options(self.options, client, telemetry=self.telemetry, clock=self._clock, rng=rng)

    def _run_cache(self, cluster: ManagedCluster) -> None:
        self.telemetry.watch_cache(cluster.cache)
        self.runnables.add(CacheRunnable(cluster.name, cluster.cache, clock=self._clock))

    def _add_checks(self) -> None:
        healthz, readyz = self.endpoints.healthz, self.endpoints.readyz
        healthz.add("watches", watches_heard(self.clusters.caches))
        readyz.add("caches", caches_ready(self.clusters.caches))
        readyz.add("started", self.lifecycle.started)
        if self.options.block_limit:
            monitor = LoopMonitor(
                limit=self.options.block_limit, on_lag=self.telemetry.on_lag, on_block=self.telemetry.on_block
            )
            self.runnables.add(monitor, group=RunnableGroup.HTTP_SERVERS)
            healthz.add("loop", loop_turns(monitor))
        if self.elector is not None:
            healthz.add("leader-election", lease_kept(self.elector))

    def _add_webhook(self, webhook: WebhookDeclaration) -> None:
        if self.lifecycle.state != "new":
            state = self.lifecycle.state
            raise ConfigError(f"{webhook.name}: webhooks are added before the manager starts; it is {state}")
        if self.options.webhooks:
            self._webhooks.append(webhook)
            for kind in getattr(webhook, "reads", ()):
                self.clusters.follow(DEFAULT, kind)
