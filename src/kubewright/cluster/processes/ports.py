"""Pick free loopback ports for the components of a real control plane.

They lie below the kernel's range of ephemeral ports: a restarted component must find its port free again, and an
ephemeral port may have become the local end of a connection meanwhile.
"""

from __future__ import annotations

import random
import socket

from kubewright.errors import ClusterError

__all__ = ("free_ports",)

_FIRST, _LAST = 20_000, 32_000


def free_ports(count: int) -> list[int]:
    """Ports that are free on 127.0.0.1 now. Another process may take one before the caller does: be ready to retry."""
    ports: list[int] = []
    for port in random.sample(range(_FIRST, _LAST), k=_LAST - _FIRST):
        if _is_free(port):
            ports.append(port)
            if len(ports) == count:
                return ports
    raise ClusterError(f"No free port is left between {_FIRST} and {_LAST} on 127.0.0.1; stop something that listens.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
