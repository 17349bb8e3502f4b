"""Fixtures of the tests of the generators: whether a server takes what they write, and does what it says."""

from __future__ import annotations

from tests.planes import client, kubectl, namespace, plane

__all__ = ("client", "kubectl", "namespace", "plane")
