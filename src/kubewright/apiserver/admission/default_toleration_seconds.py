"""The DefaultTolerationSeconds plugin: pods stay five minutes on a node that is not ready or unreachable.

kube-apiserver: plugin/pkg/admission/defaulttolerationseconds/admission.go.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.apiserver.builtin.trees import Tree, items, section
from kubewright.apiserver.kinds.admission import Attributes

__all__ = ("DefaultTolerationSeconds",)

_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_SECONDS: Final = 300


@final
class DefaultTolerationSeconds:
    """Mutates pods that have no toleration of their own for these two taints."""

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.resource.table == "/pods"
            and not attributes.subresource
            and attributes.operation in ("CREATE", "UPDATE")
        )

    async def mutate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        spec = section(attributes.object, "spec")
        for taint in _TAINTS:
            tolerations = items(spec, "tolerations")
            if not any(_tolerates(toleration, taint) for toleration in tolerations):
                more = {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
                spec["tolerations"] = [*tolerations, more]


def _tolerates(toleration: Tree, taint: str) -> bool:
    return (toleration.get("key") or taint) == taint and (toleration.get("effect") or "NoExecute") == "NoExecute"
