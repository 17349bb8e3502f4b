"""Whether the server is well: the named checks of `/healthz`, `/livez` and `/readyz`.

A check has the name that kube-apiserver gives to the same part, and is there if the part is. One of a step of the
start-up passes once that step is done; one of a part that works in the background, as long as it does. Parts add their
checks when they are put together (`server`, `auth.install`); `pages` asks.
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
"""In which they are told: that of kube-apiserver 1.35."""
_READINESS: Final = frozenset({"etcd-readiness", "informer-sync", "shutdown"})
"""Checks of `/readyz` alone."""


@final
class Health:
    """Named checks."""

    def __init__(self) -> None:
        # Who reads an answer has seen that the process answers and logs what it is asked.
        self._checks: dict[str, Check] = {"ping": lambda: True, "log": lambda: True}

    def add(self, check: Check, *names: str) -> None:
        """Tell of a part under these names."""
        for name in names:
            self._checks[name] = check

    def add_hooks(self, check: Check, *names: str) -> None:
        """As `add`, for steps of the start-up."""
        self.add(check, *(f"{_HOOK}{name}" for name in names))

    def of(self, page: str) -> dict[str, Check]:
        """The checks of `healthz`, `livez` or `readyz`, in order."""
        return {
            name: self._checks[name]
            for name in _ORDER
            if name in self._checks and (page == "readyz" or name not in _READINESS)
        }
