"""The annotation last-change-trigger-time of Endpoints and EndpointSlices: when the change happened that caused a
write.

Its age when traffic follows is the network programming latency, an SLI of Kubernetes. The trigger time is the earliest
change since the last sync, or the creation of a new Service. After TriggerTimeTracker of
staging/src/k8s.io/endpointslice. Used by `endpoint_controllers`, one instance per controller.
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

__all__ = ("TriggerTimeTracker", "set_trigger_time")

_ANNOTATION: Final = "endpoints.kubernetes.io/last-change-trigger-time"


@final
class TriggerTimeTracker:
    """The ready times of the pods of each Service at the last sync."""

    def __init__(self) -> None:
        self._pods: dict[ObjectKey, dict[str, datetime]] = {}

    def compute_trigger_time(self, service: Service, pods: Iterable[Pod]) -> datetime | None:
        """The time of the earliest change since the last sync; None if nothing changed."""
        previous = self._pods.get(service.key)
        current = {pod.metadata.name: ready_at for pod in pods if (ready_at := _ready_since(pod)) is not None}
        self._pods[service.key] = current
        if previous is None:
            return service.metadata.creation_timestamp
        return min(
            (ready_at for name, ready_at in current.items() if name not in previous or ready_at > previous[name]),
            default=None,
        )

    def service_deleted(self, change: Change[Service]) -> Iterable[ObjectKey]:
        """Remove a deleted Service. A mapper that requeues nothing."""
        self._pods.pop(change.key, None)
        return ()


def set_trigger_time(metadata: ObjectMeta, ready_at: datetime | None) -> None:
    """Set the annotation, or remove it if there is no time; changes the metadata."""
    annotations = {name: value for name, value in metadata.annotations.items() if name != _ANNOTATION}
    if ready_at is not None:
        annotations[_ANNOTATION] = format_time(ready_at)
    metadata.annotations = annotations


def _ready_since(pod: Pod) -> datetime | None:
    return next((item.last_transition_time for item in pod.status.conditions or () if item.type == "Ready"), None)
