"""The LimitRanger plugin: applies the LimitRanges of a namespace to its pods and volume claims.

kube-apiserver: plugin/pkg/admission/limitranger/admission.go. Containers without requests or limits get the defaults
when the plugin mutates; an object beyond the limits is refused when it validates. `limits` has the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from kubewright.apiserver.admission import limits
from kubewright.apiserver.builtin.trees import Tree, peek, section
from kubewright.apiserver.kinds.admission import Attributes, admission_forbidden
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("LimitRanger",)

_PODS: Final = "/pods"
_CLAIMS: Final = "/persistentvolumeclaims"


@final
class LimitRanger:
    """Handles new pods, resized pods, and new and changed volume claims."""

    def __init__(self, store: Store) -> None:
        self._limit_ranges = store.table("/limitranges")

    def handles(self, attributes: Attributes) -> bool:
        table = attributes.resource.table
        if not len(self._limit_ranges) or table not in (_PODS, _CLAIMS):
            return False
        if peek(attributes.old, "metadata", "deletionTimestamp"):
            return False
        if attributes.subresource:
            return table == _PODS and attributes.subresource == "resize" and attributes.operation == "UPDATE"
        # An update cannot change the resources of a pod's containers; only a resize can.
        return attributes.operation == "CREATE" or (table == _CLAIMS and attributes.operation == "UPDATE")

    async def mutate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        if attributes.resource.table != _PODS:
            return
        # A resize leaves no annotation about the defaults it was given.
        pod = {"spec": section(attributes.object, "spec")} if attributes.subresource else attributes.object
        for limit_range in self._all(attributes.namespace):
            limits.apply_defaults(limit_range, pod)

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        is_pod = attributes.resource.table == _PODS
        for limit_range in self._all(attributes.namespace):
            check = limits.pod_problems if is_pod else limits.claim_problems
            problems = check(limit_range, attributes.object)
            if problems:
                raise admission_forbidden(attributes, limits.summary(problems))

    def _all(self, namespace: str) -> Iterator[Tree]:
        for entry in self._limit_ranges.entries(namespace):
            yield decode_json(entry.value)
