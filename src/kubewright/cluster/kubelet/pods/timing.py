"""The delays of simulated pods.

Real nodes need seconds for what these do in milliseconds, in the same order. Probes keep their initial delay and
back-off keeps the kubelet's values, because users observe both. A parameter of `Cluster.embedded` and `Cluster.real`.
"""

from __future__ import annotations

from typing import final

import msgspec

from kubewright.errors import ConfigError

__all__ = ("Timing",)


@final
class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds for each step; annotations of a pod override some of them (see `overrides`)."""

    start_delay: float = 0.005
    """From the binding of a pod until its sandbox is ready."""
    ready_delay: float = 0.0
    """From the start of a container until it is ready, on top of its probes' initial delay."""
    short_delay: float = 0.01
    """The run time of a short-lived program, and the delay before a first restart."""
    termination_delay: float = 0.1
    """From the start of termination until the containers have ended, if the grace period is not shorter."""
    restart_backoff: float = 10.0
    """Before the second restart of a container, and before the second pull of an image; doubled each time."""
    restart_backoff_limit: float = 300.0
    missing_retry: float = 0.1
    """Before a missing ConfigMap or Secret is read again; doubled each time, up to two seconds."""

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            if getattr(self, field) < 0:
                raise ConfigError(f"the timing {field} is {getattr(self, field):g} s; it cannot be below 0")
