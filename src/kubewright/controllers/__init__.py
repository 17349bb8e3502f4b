"""Controllers: from changes to reconcile calls. Declarations, sources, workers, and what a reconciler may do.

The decorator is `kubewright.controller`; here that name is the module of the class `Controller`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright._base.lazy import lazy

if TYPE_CHECKING:
    from kubewright.controllers.context import Context
    from kubewright.controllers.controller import Controller
    from kubewright.controllers.declaration import Declaration, Owned, Watch
    from kubewright.controllers.event_recorder import EventRecorder
    from kubewright.controllers.host_rate_limiter import HostRateLimiter
    from kubewright.controllers.mapping import by_index, for_each, to_all
    from kubewright.controllers.permissions import rbac
    from kubewright.controllers.predicates import (
        Predicate,
        annotations_changed,
        any_change,
        any_version,
        generation_changed,
        labels_changed,
        matches_labels,
        on,
        resource_version_changed,
        spec_or_metadata_changed,
    )
    from kubewright.controllers.reconcile import Cause, Result
    from kubewright.controllers.sources import Channel, Source, Timer
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "kubewright.controllers.context": ("Context",),
            "kubewright.controllers.controller": ("Controller",),
            "kubewright.controllers.declaration": ("Declaration", "Owned", "Watch"),
            "kubewright.controllers.event_recorder": ("EventRecorder",),
            "kubewright.controllers.host_rate_limiter": ("HostRateLimiter",),
            "kubewright.controllers.mapping": ("by_index", "for_each", "to_all"),
            "kubewright.controllers.permissions": ("rbac",),
            "kubewright.controllers.predicates": (
                "Predicate",
                "annotations_changed",
                "any_change",
                "any_version",
                "generation_changed",
                "labels_changed",
                "matches_labels",
                "on",
                "resource_version_changed",
                "spec_or_metadata_changed",
            ),
            "kubewright.controllers.reconcile": ("Cause", "Result"),
            "kubewright.controllers.sources": ("Channel", "Source", "Timer"),
        },
    )

__all__ = (
    "Cause",
    "Channel",
    "Context",
    "Controller",
    "Declaration",
    "EventRecorder",
    "HostRateLimiter",
    "Owned",
    "Predicate",
    "Result",
    "Source",
    "Timer",
    "Watch",
    "annotations_changed",
    "any_change",
    "any_version",
    "by_index",
    "for_each",
    "generation_changed",
    "labels_changed",
    "matches_labels",
    "on",
    "rbac",
    "resource_version_changed",
    "spec_or_metadata_changed",
    "to_all",
)
