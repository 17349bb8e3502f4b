"""Endpoints: what a manager serves over HTTP, and on which ports.

It gathers the checks and debug pages that parts of the manager and its user add, and holds the servers from when they
are made until they are closed. It imports no HTTP server: `servers` makes those, if an option asks for one.
"""

from __future__ import annotations

from typing import Protocol, final

from kubewright._base.clock import Clock
from kubewright.client.client import Client
from kubewright.errors import ConfigError
from kubewright.manager.addresses import is_on
from kubewright.manager.endpoints.debug import DebugProvider
from kubewright.manager.endpoints.healthz import Checks
from kubewright.manager.options import ManagerOptions
from kubewright.manager.runnables import RunnableGroup, Runnables
from kubewright.manager.telemetry import Telemetry

__all__ = ("Endpoints", "PortHolder")


class PortHolder(Protocol):
    """A server that takes its port before it runs."""

    @property
    def name(self) -> str: ...

    @property
    def port(self) -> int: ...

    def open(self) -> None: ...

    def close(self) -> None: ...

    async def wait_ready(self) -> None: ...

    async def run(self) -> None: ...


@final
class Endpoints:
    """Health checks, debug pages and the servers of one manager."""

    def __init__(self, runnables: Runnables, *, clock: Clock) -> None:
        self.healthz = Checks("healthz", clock=clock)
        self.readyz = Checks("readyz", clock=clock)
        self.debug: dict[str, DebugProvider] = {}
        """What `/debug/<name>` shows."""
        self._runnables = runnables
        self._servers: list[PortHolder] = []
        self._clock = clock

    def add_servers(self, options: ManagerOptions, *, telemetry: Telemetry, client: Client) -> None:
        """Add the servers that have an address in the options."""
        if not any(map(is_on, (options.health_address, options.metrics_address, options.debug_address))):
            return
        from kubewright.manager.endpoints.servers import reporting_servers  # only those who are asked pay for answering

        for server in reporting_servers(
            options,
            health=(self.healthz, self.readyz),
            metrics=telemetry.metrics,
            debug=self.debug,
            client=client,
            on_certificate=telemetry.on_certificate,
            clock=self._clock,
        ):
            self.add(server)

    def add(self, server: PortHolder, *, group: RunnableGroup | None = None) -> None:
        """Run a server with its group."""
        self._servers.append(server)
        self._runnables.add(server, group=group)

    def open(self) -> None:
        """Take every port, so that one in use is noticed before anything else starts."""
        for server in self._servers:
            server.open()

    def close(self) -> None:
        for server in self._servers:
            server.close()

    def port(self, name: str) -> int:
        """The port that a server listens on."""
        for server in self._servers:
            if server.name == name:
                return server.port
        raise ConfigError(f"the {name} server is off; give it an address in the options")
