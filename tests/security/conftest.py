"""Fixtures of the security tests: what an attacker tries, and what the server, the operator or a command answers.

Covers: kubewright
"""

from __future__ import annotations

from tests.planes import client, kubectl, namespace, plane

__all__ = ("client", "kubectl", "namespace", "plane")
