"""An index from pods to the objects that select them by label: Services and PodDisruptionBudgets.

It keeps the selectors of one kind by namespace, so that a change of a pod costs a match of the selectors in its
namespace and no list. `objects_for_pod` is the mapper of a watch of pods, `update` that of a watch of the selecting
kind. Used by `services.endpoint_controllers` and `disruption`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar, final

from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.api.selectors import Selector
from kubewright.cache.changes import Change
from kubewright.controllers.predicates import Predicate
from kubewright.errors import DecodeError
from kubewright.k8s.core.v1 import Pod

__all__ = ("SelectorIndex", "pod_endpoints_changed")

K = TypeVar("K", bound=KubeObject)


@final
class SelectorIndex(Generic[K]):
    """The selectors of the objects of one kind."""

    def __init__(self, selector_of: Callable[[K], Selector | None]) -> None:
        """`selector_of` returns the selector of an object; None selects no pod."""
        self._selector_of = selector_of
        self._selectors: dict[str, dict[str, Selector]] = {}

    def update(self, change: Change[K]) -> Iterable[ObjectKey]:
        """Update the index from a change of the selecting kind; requeues nothing."""
        selectors = self._selectors.setdefault(change.key.namespace, {})
        selector: Selector | None = None
        if change.new is not None:
            try:
                selector = self._selector_of(change.new)
            except DecodeError:
                selector = None
        if selector is None:
            selectors.pop(change.key.name, None)
        else:
            selectors[change.key.name] = selector
        return ()

    def objects_for_pod(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """The objects that select a pod before or after its change."""
        selectors = self._selectors.get(change.key.namespace, {})
        label_sets = [
            metadata.labels for metadata in (change.old_metadata, change.new_metadata) if metadata is not None
        ]
        return [
            ObjectKey(change.key.namespace, name)
            for name, selector in selectors.items()
            if any(selector.matches(labels) for labels in label_sets)
        ]


def _pod_endpoints_changed(change: Change[Any]) -> bool:
    if change.old_metadata is None or change.new_metadata is None:
        return True
    return _endpoint_fields(change.old) != _endpoint_fields(change.new)


def _endpoint_fields(pod: Pod | None) -> object:
    if pod is None:
        return None
    ready = any(item.type == "Ready" and item.status == "True" for item in pod.status.conditions or ())
    terminating = pod.metadata.deletion_timestamp is not None
    addresses = [item.ip for item in pod.status.pod_ips or ()]
    return pod.metadata.uid, pod.metadata.labels, terminating, ready, pod.status.phase, addresses, pod.spec.node_name


pod_endpoints_changed = Predicate(_pod_endpoints_changed, "pod_matters")
"""Passes changes of pods that may change endpoints or disruption budgets, as podEndpointsChanged of upstream."""
