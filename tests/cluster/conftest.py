"""Fixtures of the tests of whole clusters: what controllers, scheduler and nodes do, on every control plane.

The folders below have control planes of their own, on which parts of the embedded one do the work of the real ones.
"""

from __future__ import annotations

from tests.planes import client, namespace, plane

__all__ = ("client", "namespace", "plane")
