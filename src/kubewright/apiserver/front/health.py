"""The named health checks of `/healthz`, `/livez` and `/readyz`.

A check has kube-apiserver's name for the same part, and exists if the part does. A post-start hook passes once its step
is done, the check of a controller as long as it runs. `server` and `identities` add the checks;
`nonresource` runs them. Upstream: k8s.io/apiserver/pkg/server/healthz/healthz.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

__all__ = ("Check", "Health")

Check = Callable[[], bool]

_HOOK: Final = "poststarthook/"
_ORDER: Final = (
    "ping",
    "log",
    "etcd",
    "etcd-readiness",
    "informer-sync",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
    "shutdown",
)
"""The order of the checks in kube-apiserver."""
_READINESS: Final = frozenset({"etcd-readiness", "informer-sync", "shutdown"})
"""Checks of `/readyz` alone."""


@final
class Health:
    """The named checks."""

    def __init__(self) -> None:
        # If the response arrives, the process serves and logs requests: these two always pass.
        self._checks: dict[str, Check] = {"ping": lambda: True, "log": lambda: True}

    def add(self, check: Check, *names: str) -> None:
        """Add a check under these names."""
        for name in names:
            self._checks[name] = check

    def add_hooks(self, check: Check, *names: str) -> None:
        """As `add`, for post-start hooks."""
        self.add(check, *(f"{_HOOK}{name}" for name in names))

    def checks_of(self, endpoint: str) -> dict[str, Check]:
        """The checks of an endpoint (healthz, livez or readyz), in order."""
        return {
            name: self._checks[name]
            for name in _ORDER
            if name in self._checks and (endpoint == "readyz" or name not in _READINESS)
        }
