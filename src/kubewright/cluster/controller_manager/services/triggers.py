"""When the change happened that an endpoints object was written for, which is said in an annotation of it.

The age of that time at the moment traffic follows is how slow the whole chain was; dashboards show it. The rules are
kube-controller-manager's: the earliest of the changes since the last look, or the creation of a service that is new.
Used by `services`, one for each controller.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, final

from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.times import format_time
from kubewright.cache.changes import Change
from kubewright.k8s.core.v1 import Pod, Service

__all__ = ("Triggers", "mark")

_ANNOTATION: Final = "endpoints.kubernetes.io/last-change-trigger-time"


@final
class Triggers:
    """What was seen of each service at the last look."""

    def __init__(self) -> None:
        self._pods: dict[ObjectKey, dict[str, datetime]] = {}

    def look(self, service: Service, pods: Iterable[Pod]) -> datetime | None:
        """The time of the change, or None if nothing has changed since."""
        before = self._pods.get(service.key)
        now = {pod.metadata.name: at for pod in pods if (at := _ready_since(pod)) is not None}
        self._pods[service.key] = now
        if before is None:
            return service.metadata.creation_timestamp
        return min((at for name, at in now.items() if name not in before or at > before[name]), default=None)

    def forget(self, change: Change[Service]) -> Iterable[ObjectKey]:
        """A service is gone. A mapper that wakes nobody."""
        self._pods.pop(change.key, None)
        return ()


def mark(metadata: ObjectMeta, at: datetime | None) -> None:
    """Say it in the annotation, or take that away; changes the metadata."""
    annotations = {name: value for name, value in metadata.annotations.items() if name != _ANNOTATION}
    if at is not None:
        annotations[_ANNOTATION] = format_time(at)
    metadata.annotations = annotations


def _ready_since(pod: Pod) -> datetime | None:
    return next((item.last_transition_time for item in pod.status.conditions or () if item.type == "Ready"), None)
