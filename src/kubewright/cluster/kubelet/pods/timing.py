"""How fast simulated pods live.

Real nodes need seconds for what these do in milliseconds; what is kept is the order of things. Probes keep their
initial delay, back-off keeps the kubelet's numbers, because both are what people look at. Given to `node_controllers`.
"""

from __future__ import annotations

from typing import final

import msgspec

from kubewright.errors import ConfigError

__all__ = ("Timing",)


@final
class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds for each step; annotations of a pod overrule some of them (see `wishes`)."""

    start_delay: float = 0.005
    """From the pod's arrival on the node until its sandbox is there."""
    ready_delay: float = 0.0
    """From the start of a container until it is ready, on top of its probes' initial delay."""
    moment: float = 0.01
    """How long a program runs of which no more is known than that it ends, and what a first restart waits for."""
    termination_delay: float = 0.1
    """From the request to end until the containers have ended, if the grace period is not shorter."""
    restart_backoff: float = 10.0
    """Before the second restart of a container, and before an image is asked for again; doubled each time."""
    restart_backoff_limit: float = 300.0
    missing_retry: float = 0.1
    """Before a ConfigMap or Secret that was not there is looked for again; doubled each time, up to two seconds."""

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            if getattr(self, field) < 0:
                raise ConfigError(f"the timing {field} is {getattr(self, field):g} s; it cannot be below 0")
