"""Controllers: from what `@controller` declares to controllers that run on a cluster of a manager."""

from __future__ import annotations

from random import Random
from typing import Any, final

from kubewright._base.clock import Clock
from kubewright.api.resource import KubeObject
from kubewright.cache.cache import Cache
from kubewright.client.client import Client
from kubewright.controllers.controller import Controller
from kubewright.controllers.declaration import Declaration
from kubewright.controllers.event_recorder import EventRecorder
from kubewright.errors import ConfigError
from kubewright.manager.clusters import ManagedCluster
from kubewright.manager.runnables import RunnableGroup, Runnables
from kubewright.manager.telemetry import Telemetry

__all__ = ("Controllers",)


@final
class Controllers:
    """Builds the controllers of one manager, and the event recorders they write with."""

    def __init__(self, runnables: Runnables, *, telemetry: Telemetry, clock: Clock, rng: Random) -> None:
        self._runnables = runnables
        self._telemetry = telemetry
        self._clock = clock
        self._rng = rng
        self._built: set[tuple[str, str, type[KubeObject]]] = set()

    def build(self, declaration: Declaration[Any], cluster: ManagedCluster) -> Controller:
        """A controller on the client and the cache of a cluster. Refuses a second one of a name for one kind."""
        if not isinstance(cluster.cache, Cache):
            raise ConfigError(
                f"the controller {declaration.name} needs the framework's own cache; "
                "make a Controller by hand to run it on another"
            )
        identity = (cluster.name, declaration.name, declaration.kind)
        if identity in self._built:
            raise ConfigError(
                f"there are two controllers named {declaration.name} for {declaration.kind.__name__}; they would share "
                "metrics, fields and finalizers, so give one of them another name"
            )
        self._built.add(identity)
        metrics = self._telemetry.queue(declaration.name)
        client = cluster.client if declaration.needs_leader else cluster.open_client
        controller = Controller(
            declaration,
            client=client,
            cache=cluster.cache,
            recorder=self.recorder(declaration.name, client),
            clock=self._clock,
            observer=self._telemetry.controller(
                declaration.name, concurrency=declaration.concurrency, gauges=declaration.gauges
            ),
            queue_observer=metrics,
            metrics=self._telemetry.metrics,
        )
        metrics.follow(controller.queue)
        return controller

    def recorder(self, name: str, client: Client) -> EventRecorder:
        """An event recorder that stops after the controllers: with the caches, so that their last events are sent."""
        recorder = EventRecorder(client, controller=name, clock=self._clock, rng=self._rng)
        self._runnables.add(recorder, group=RunnableGroup.CACHES)
        return recorder
