"""connect(): from a configuration to a client that is ready to use.

It puts the parts together: a transport, an optional rate limit, retries, the client. The manager builds its own.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike

from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.client.routes import FieldValidation
from kubewright.client.transport.default import default_transport
from kubewright.client.transport.retries import RetryingTransport

__all__ = ("connect",)


def connect(
    config: Config | None = None,
    *,
    kubeconfig: str | PathLike[str] | None = None,
    context: str | None = None,
    namespace: str | None = None,
    field_manager: str | None = "kubewright",
    field_validation: FieldValidation | None = None,
    timeout: float = 30.0,
    qps: float | None = None,
    burst: int | None = None,
    on_warning: Callable[[str], None] | None = None,
) -> Client:
    """A client for a cluster: `async with connect() as client`.

    Without a configuration it uses `Config.load`: the kubeconfig named here, `$KUBECONFIG`, the pod's own service
    account, `~/.kube/config`. Nothing is sent before the first call. There is no rate limit unless `qps` sets one:
    servers protect themselves by priority and fairness.
    """
    if config is None:
        config = Config.load(kubeconfig=kubeconfig, context=context)
    transport = default_transport(config)
    if qps is not None:
        from kubewright.client.transport.rate_limit import RateLimitedTransport  # rarely used

        transport = RateLimitedTransport(transport, qps=qps, burst=burst or max(1, round(qps * 2)))
    return Client(
        RetryingTransport(transport),
        namespace=namespace or config.namespace,
        field_manager=field_manager,
        field_validation=field_validation,
        timeout=timeout,
        on_warning=on_warning,
    )
