"""The HTTP servers of a process: health, metrics and debug, as the options say.

Each has an address of its own; metrics may be served over TLS, and only to users that the cluster allows. `endpoints`
calls this if an option asks for a server. What they answer is in `handlers`, how they serve it in `server`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from kubewright._base.clock import Clock
from kubewright._base.metrics import Metrics
from kubewright.client.client import Client
from kubewright.errors import ConfigError
from kubewright.manager.addresses import parse_address
from kubewright.manager.endpoints.debug import DebugProvider
from kubewright.manager.endpoints.handlers import debug_handler, health_handler, metrics_handler
from kubewright.manager.endpoints.healthz import Checks
from kubewright.manager.endpoints.server import Handler, Server
from kubewright.manager.options import ManagerOptions
from kubewright.webhooks.certificates.sources import CertificateSource

__all__ = ("reporting_servers",)


def reporting_servers(
    options: ManagerOptions,
    *,
    health: tuple[Checks, ...],
    metrics: Metrics,
    debug: Mapping[str, DebugProvider],
    client: Client,
    on_certificate: Callable[[bool], None],
    clock: Clock,
) -> Iterator[Server]:
    """The servers that have an address. `client` asks the cluster who may read the metrics, if that is limited."""
    for name, text, handler in (
        ("health", options.health_address, health_handler(*health)),
        ("metrics", options.metrics_address, _metrics(options, metrics, client, clock)),
        ("debug", options.debug_address, debug_handler(debug)),
    ):
        address = parse_address(text, what=f"{name} address")
        if address is not None:
            source = _certificates(options, clock) if name == "metrics" else None
            yield Server(name, address, handler, certificates=source, on_certificate=on_certificate)


def _metrics(options: ManagerOptions, metrics: Metrics, client: Client, clock: Clock) -> Handler:
    if not options.metrics_access:
        return metrics_handler(metrics)
    from kubewright.manager.endpoints.metrics_authorizer import (
        MetricsAuthorizer,  # only those who limit it pay for it
    )

    return metrics_handler(metrics, authorizer=MetricsAuthorizer(client, clock=clock))


def _certificates(options: ManagerOptions, clock: Clock) -> CertificateSource | None:
    """The certificates metrics are served with; None for plain HTTP."""
    chosen = options.metrics_certificates
    if not chosen:
        return None
    if chosen == "self":
        from kubewright.webhooks.certificates.local import LocalCertificates  # only those who have TLS pay for it

        return LocalCertificates(_own_hosts(options), name=options.name, clock=clock)
    if not Path(chosen, "tls.crt").is_file():
        raise ConfigError(f"the metrics certificates {chosen!r} are no folder with a tls.crt; mount one, or write self")
    from kubewright.webhooks.certificates.files import FileCertificates  # as above

    return FileCertificates(chosen, clock=clock)


def _own_hosts(options: ManagerOptions) -> tuple[str, ...]:
    """This machine as it calls itself, and the Service that a scaffolded project has for metrics."""
    service = f"{options.name}-controller-manager-metrics-service"
    inside = (f"{service}.{options.namespace}.svc",) if options.namespace else ()
    return ("localhost", "127.0.0.1", *inside)
