"""Which sets look again when a pod or a namespace changes.

A pod concerns the sets that it was injected by and the sets whose selector it meets, before the change or after it: one
that loses a label has to be counted out, one that gains it counted in. To find those without reading every set for
every pod, the selectors are kept at hand, ready to be asked, and follow the sets as they change. They decide only who
is woken, never what is done.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from kubewright import ObjectKey
from kubewright.cache import Change
from kubewright.controllers import Predicate
from kubewright.errors import DecodeError
from kubewright.k8s.core.v1 import Namespace, Pod

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.census import is_ready
from sidecarset.records import GROUP, injected_sets
from sidecarset.selection import INJECTION, Selection

__all__ = ("Wakeups", "pod_matters")


class Wakeups:
    """The selectors of all sets, and the mappers that ask them."""

    def __init__(self) -> None:
        self._selections: dict[ObjectKey, Selection] = {}

    def note(self, change: Change[SidecarSet]) -> Iterable[ObjectKey]:
        """A set came, changed or went. It is woken by its own change anyway."""
        self._selections.pop(change.key, None)
        if change.new is not None:
            with suppress(DecodeError):  # such a set selects nothing
                self._selections[change.key] = Selection.of(change.new.spec)
        return ()

    def by_pod(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """The sets that a pod concerns, as it was and as it is."""
        found: set[ObjectKey] = set()
        for pod in (change.old_metadata, change.new_metadata):
            if pod is not None:
                found.update(ObjectKey("", name) for name in injected_sets(pod.annotations))
                found.update(key for key, item in self._selections.items() if item.pods.matches(pod.labels))
        return found

    def by_namespace(self, change: Change[Namespace]) -> Iterator[ObjectKey]:
        """The sets that ask for labels of namespaces; all of them, if the namespace was closed or opened."""
        marks = {
            namespace.labels.get(INJECTION)
            for namespace in (change.old_metadata, change.new_metadata)
            if namespace is not None
        }
        for key, selection in self._selections.items():
            if len(marks) > 1 or not selection.namespaces.selects_everything:
                yield key


def _seen(pod: Pod) -> tuple[Any, ...]:
    """What of a pod matters for a count or a rollout."""
    metadata, status = pod.metadata, pod.status
    return (
        metadata.uid,
        metadata.labels,
        {name: text for name, text in metadata.annotations.items() if name.startswith(GROUP)},
        metadata.deletion_timestamp,
        status.phase,
        is_ready(pod),
        {item.name: item.image_id for item in status.container_statuses or ()},
    )


def _pod_matters(change: Change[Pod]) -> bool:
    old, new = change.old, change.new
    return old is None or new is None or _seen(old) != _seen(new)


pod_matters = Predicate(_pod_matters, "pod_matters")
"""Pods that come or go, and changes that can alter a count."""
