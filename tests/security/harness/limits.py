"""What one request may cost, and how large it may be for that to hold."""

from __future__ import annotations

from typing import Final

__all__ = ("CONNECTION_MEMORY", "HOLD_LIMIT", "MEMORY_LIMIT", "REQUEST_LIMIT")

HOLD_LIMIT: Final = 0.250
"""Seconds for which the event loop serves nobody else."""
MEMORY_LIMIT: Final = 100_000_000
"""Bytes of resident memory that it adds at its peak."""
CONNECTION_MEMORY: Final = 500_000
"""Bytes of an open connection: TLS reads into a buffer of 256 KiB, and there are a request and a response."""
REQUEST_LIMIT: Final = 3_000_000
"""Bytes of a request, as kube-apiserver limits a body to 3 MiB."""
