"""The webhooks of a manager: the server, and what registers it with the API server.

Where the certificate comes from, and who registers the webhooks, is in `webhook_certificates`.

With `webhook_registration` the operator writes its webhook configurations itself instead of relying on manifests. A
certificate source given to the manager in the program takes precedence; then the program registers the webhooks itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, final

from kubewright._base.clock import Clock
from kubewright._base.tasks import Tasks, cancel_and_wait
from kubewright.cache.cache import Cache
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.manager.options import ManagerOptions
from kubewright.manager.webhook_certificates import certificate_choice
from kubewright.webhooks.certificates.files import FileCertificates
from kubewright.webhooks.certificates.sources import CertificateSource
from kubewright.webhooks.serving.router import WebhookDeclaration, WebhookObserver, WebhookRouter
from kubewright.webhooks.serving.server import WebhookServer

__all__ = ("ServedWebhooks", "served_webhooks")


class _Registration(Protocol):
    """Registers the webhooks with the API server, and keeps them registered."""

    name: str

    async def wait_ready(self) -> None: ...

    async def run(self) -> None: ...


@final
class ServedWebhooks:
    """A runnable: serves, then registers; and stops in reverse, so that the API server never calls a closed port."""

    name = "webhooks"
    needs_leader = False

    def __init__(self, server: WebhookServer, registrations: Sequence[_Registration] = ()) -> None:
        self.server = server
        self._registrations = registrations
        self._ready = asyncio.Event()

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return self.server.port

    @property
    def problem(self) -> str | None:
        """Why the API server cannot call the webhooks yet; None if it can."""
        if self._ready.is_set() or self.server.problem:
            return self.server.problem
        problems = [str(getattr(part, "problem", "")) for part in self._registrations]
        return "; ".join(filter(None, problems)) or "the webhooks are not registered with the API server yet"

    async def wait_ready(self) -> None:
        """Return when the webhooks are served and registered."""
        await self._ready.wait()

    def open(self) -> None:
        """Take the port."""
        self.server.open()

    def close(self) -> None:
        """Give the port back."""
        self.server.close()

    async def run(self) -> None:
        """Serve until cancelled."""
        serving, registering = Tasks("webhooks"), Tasks("webhooks")
        serving.start(self.server.run(), name="server")
        failures = [asyncio.ensure_future(tasks.wait_failure()) for tasks in (serving, registering)]
        start = asyncio.ensure_future(self._register(registering))
        waiting: set[asyncio.Future[None]] = {start, *failures}
        try:
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            self._ready.clear()
            await cancel_and_wait(start)
            await registering.stop()
            await serving.stop()
            await cancel_and_wait(*failures)

    async def _register(self, tasks: Tasks) -> None:
        await self.server.wait_ready()
        for part in self._registrations:
            tasks.start(part.run(), name=part.name)
        for part in self._registrations:
            await part.wait_ready()
        self._ready.set()


def served_webhooks(
    declarations: Iterable[WebhookDeclaration],
    *,
    options: ManagerOptions,
    client: Client,
    cache: Cache | None,
    config: Config | None,
    certificates: CertificateSource | None,
    observer: WebhookObserver,
    on_certificate: Callable[[bool], None],
    clock: Clock,
) -> ServedWebhooks:
    """The webhooks, with a certificate and a registration as the options say. Takes the port.

    `cache` is for handlers that read from it, and follows the kinds that they read.
    """
    declared = list(declarations)
    webhooks = WebhookRouter(declared, client=client, cache=cache, observer=observer)
    server = WebhookServer(
        webhooks,
        certificates,
        host=options.webhook_host,
        port=options.webhook_port,
        clock=clock,
        on_certificate=on_certificate,
    )
    if certificates is not None:
        return ServedWebhooks(server)
    choice = certificate_choice(options, config)
    if choice == "local":
        from kubewright.webhooks.registration.local import (
            LocalWebhooks,  # each choice brings its own imports
        )

        server.open()  # a port that the system chose has to be known before it is registered
        local = LocalWebhooks(
            client,
            declared,
            operator=options.name,
            port=server.port,
            server=config.server if config is not None else "",
            address=options.webhook_address,
            clock=clock,
        )
        server.certificates = local.certificates
        return ServedWebhooks(server, [local])
    if choice == "secret":
        return _from_secret(server, declared, options=options, client=client, clock=clock)
    server.certificates = FileCertificates(choice, clock=clock)
    return ServedWebhooks(server)


def _from_secret(
    server: WebhookServer,
    declared: Sequence[WebhookDeclaration],
    *,
    options: ManagerOptions,
    client: Client,
    clock: Clock,
) -> ServedWebhooks:
    from kubewright.webhooks.certificates.secret import SecretCertificates
    from kubewright.webhooks.registration.ca_injector import CaInjector
    from kubewright.webhooks.registration.manifests import ServiceReference, configuration_name, converted_crds
    from kubewright.webhooks.registration.registrar import Registrar
    from kubewright.webhooks.registration.targets import Targets

    namespace = options.namespace or client.namespace
    service = ServiceReference(name=options.webhook_service or f"{options.name}-webhook-service", namespace=namespace)
    source = SecretCertificates(client, operator=options.name, namespace=namespace, hosts=service.hosts, clock=clock)
    server.certificates = source
    if options.webhook_registration:
        registration: _Registration = Registrar(
            client, declared, source, operator=options.name, service=service, clock=clock
        )
    else:
        types = {getattr(item, "type", "") for item in declared}
        targets = Targets(
            client,
            mutating=[configuration_name("mutating", options.name)] if "mutating" in types else [],
            validating=[configuration_name("validating", options.name)] if "validating" in types else [],
            crds=converted_crds(declared),
        )
        registration = CaInjector(client, source, targets, clock=clock)
    return ServedWebhooks(server, [registration])
