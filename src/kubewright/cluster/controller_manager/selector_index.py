"""Which objects select a pod by its labels: the way back from a pod to Services and disruption budgets.

Books kept from changes of the selecting kind, so that a change of a pod costs a look at the selectors of its namespace
and nothing else. `by_pod` is the mapper of a watch of pods, `note` that of a watch of the selecting kind. Used by
`services` and `disruption`.
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

__all__ = ("SelectorIndex", "pod_matters")

K = TypeVar("K", bound=KubeObject)


@final
class SelectorIndex(Generic[K]):
    """The selectors of one kind, by namespace and name."""

    def __init__(self, selector_of: Callable[[K], Selector | None]) -> None:
        """`selector_of` reads an object's selector; None selects nothing."""
        self._selector_of = selector_of
        self._selectors: dict[str, dict[str, Selector]] = {}

    def note(self, change: Change[K]) -> Iterable[ObjectKey]:
        """Take note of a change of the selecting kind; it wakes nobody."""
        here = self._selectors.setdefault(change.key.namespace, {})
        selector: Selector | None = None
        if change.new is not None:
            try:
                selector = self._selector_of(change.new)
            except DecodeError:
                selector = None
        if selector is None:
            here.pop(change.key.name, None)
        else:
            here[change.key.name] = selector
        return ()

    def by_pod(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """Who selects a pod, before or after its change."""
        here = self._selectors.get(change.key.namespace, {})
        states = [metadata.labels for metadata in (change.old_metadata, change.new_metadata) if metadata is not None]
        return [
            ObjectKey(change.key.namespace, name)
            for name, selector in here.items()
            if any(selector.matches(labels) for labels in states)
        ]


def _matters(change: Change[Any]) -> bool:
    if change.old_metadata is None or change.new_metadata is None:
        return True
    return _facts(change.old) != _facts(change.new)


def _facts(pod: Pod | None) -> object:
    if pod is None:
        return None
    ready = any(item.type == "Ready" and item.status == "True" for item in pod.status.conditions or ())
    leaving = pod.metadata.deletion_timestamp is not None
    addresses = [item.ip for item in pod.status.pod_ips or ()]
    return pod.metadata.uid, pod.metadata.labels, leaving, ready, pod.status.phase, addresses, pod.spec.node_name


pod_matters = Predicate(_matters, "pod_matters")
"""A pod came or went, or changed in what those who select it look at."""
