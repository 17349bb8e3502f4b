"""The TaintNodesByCondition plugin: a new node is tainted as not ready until its conditions say otherwise.

kube-apiserver: plugin/pkg/admission/nodetaint/admission.go. The node lifecycle controller removes the taint.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.apiserver.builtin.trees import items, section
from kubewright.apiserver.kinds.admission import Attributes

__all__ = ("TaintNodesByCondition",)

_TAINT: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


@final
class TaintNodesByCondition:
    """Mutates new nodes."""

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.table == "/nodes" and attributes.operation == "CREATE" and not attributes.subresource

    async def mutate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        spec = section(attributes.object, "spec")
        taints = items(spec, "taints")
        if not any(all(present.get(name) == value for name, value in _TAINT.items()) for present in taints):
            spec["taints"] = [*taints, dict(_TAINT)]
