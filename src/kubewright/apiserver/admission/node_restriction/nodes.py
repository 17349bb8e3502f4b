"""A node may change its own Node object, but not what would bring other pods to it: taints, owners, most labels.

Pure. Called by `plugin`. Upstream: `admitNode` of plugin/pkg/admission/noderestriction/admission.go, and
k8s.io/kubelet/pkg/apis/well_known_labels.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubewright.api.go_text import quoted
from kubewright.apiserver.builtin.trees import peek, semantic_equal
from kubewright.apiserver.kinds.admission import Attributes, admission_forbidden

__all__ = ("check_node",)

_RESTRICTED: Final = "node-restriction.kubernetes.io"
_KUBERNETES: Final = ("kubernetes.io", "k8s.io")
_KUBELET_NAMESPACES: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_KUBELET_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)


def check_node(node: str, attributes: Attributes) -> None:
    """Refuse a write of another Node, and of fields that are not the node's."""
    if attributes.name != node:
        raise admission_forbidden(
            attributes, f"node {quoted(node)} is not allowed to modify node {quoted(attributes.name)}"
        )
    new, old = attributes.object or {}, attributes.old or {}
    labels = _forbidden_labels(peek(new, "metadata", "labels") or {}, peek(old, "metadata", "labels") or {})
    if attributes.operation == "CREATE":
        if peek(new, "spec", "configSource") is not None:
            why = f"node {quoted(node)} is not allowed to create pods with a non-nil configSource"
            raise admission_forbidden(attributes, why)
        if labels:
            why = f"node {quoted(node)} is not allowed to set the following labels: {', '.join(labels)}"
            raise admission_forbidden(attributes, why)
    elif attributes.operation == "UPDATE":
        source = peek(new, "spec", "configSource")
        if source is not None and not semantic_equal(source, peek(old, "spec", "configSource")):
            why = f"node {quoted(node)} is not allowed to update configSource to a new non-nil configSource"
            raise admission_forbidden(attributes, why)
        for name, path in (("taints", ("spec", "taints")), ("ownerReferences", ("metadata", "ownerReferences"))):
            if not semantic_equal(peek(new, *path), peek(old, *path)):
                raise admission_forbidden(attributes, f"node {quoted(node)} is not allowed to modify {name}")
        if labels:
            raise admission_forbidden(attributes, f"is not allowed to modify labels: {', '.join(labels)}")


def _forbidden_labels(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """The changed labels that a node may not change, sorted."""
    changed = [key for key in {*new, *old} if key not in new or key not in old or new[key] != old[key]]
    return sorted(filter(_is_forbidden, changed))


def _is_forbidden(label: str) -> bool:
    namespace, slash, _ = label.partition("/")
    if not slash:
        return False
    if _is_within(namespace, _RESTRICTED):
        return True
    if not any(_is_within(namespace, domain) for domain in _KUBERNETES) or label in _KUBELET_LABELS:
        return False
    return not any(_is_within(namespace, domain) for domain in _KUBELET_NAMESPACES)


def _is_within(namespace: str, domain: str) -> bool:
    return namespace == domain or namespace.endswith(f".{domain}")
