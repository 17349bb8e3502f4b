"""Which pods a set is about: by their labels, by their namespace, and by what their owners say.

The webhook asks before it injects, the controller before it counts; both have to come to the same answer. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kubewright import Selector
from kubewright.k8s.core.v1 import Namespace, Pod
from kubewright.k8s.meta.v1 import LabelSelector

from sidecarset.api.v1alpha1.sidecarset import SidecarSetSpec
from sidecarset.records import GROUP, INJECT

__all__ = ("IGNORED_NAMESPACES", "INJECTION", "Selection", "is_open", "takes_part")

IGNORED_NAMESPACES = frozenset({"kube-public", "kube-system", "sidecarset-system"})
"""The cluster's own, and the operator's: one that is down must not keep itself from coming back."""
INJECTION = f"{GROUP}injection"
"""The label with which a namespace is closed to injection: `disabled`."""
_MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True)
class Selection:
    """The selectors of one set, ready to be asked."""

    pods: Selector
    namespaces: Selector

    @classmethod
    def of(cls, spec: SidecarSetSpec) -> "Selection":
        """From the spec; a DecodeError if a selector is not well-formed. An empty selector selects no pod."""
        pods = Selector.from_structured(spec.selector)
        return cls(
            pods=Selector.nothing() if pods.selects_everything else pods,
            namespaces=_or_everything(spec.namespace_selector),
        )

    def covers(self, labels: Mapping[str, str], namespace: Namespace | None) -> bool:
        """Whether a pod with these labels, in that namespace, is meant. A namespace nobody knows has no labels."""
        if not self.pods.matches(labels):
            return False
        return self.namespaces.matches({} if namespace is None else namespace.metadata.labels)


def takes_part(pod: Pod) -> bool:
    """Whether a pod may be injected at all: not if its owner says no, nor if it only mirrors what a node runs."""
    annotations = pod.metadata.annotations
    return annotations.get(INJECT) != "false" and _MIRROR not in annotations


def is_open(name: str, namespace: Namespace | None) -> bool:
    """Whether pods of a namespace are injected at all."""
    if name in IGNORED_NAMESPACES:
        return False
    return namespace is None or namespace.metadata.labels.get(INJECTION) != "disabled"


def _or_everything(selector: LabelSelector | None) -> Selector:
    return Selector.everything() if selector is None else Selector.from_structured(selector)
