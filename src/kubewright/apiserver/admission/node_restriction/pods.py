"""A node may create mirror pods of itself that refer to nothing, and report, delete and evict the pods bound to it.

Called by `plugin`. Upstream: `admitPod` and what follows it in plugin/pkg/admission/noderestriction/admission.go.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.api.go_text import quoted
from kubewright.api.kinds import GroupResource
from kubewright.apiserver.builtin.pod_references import api_object_reference
from kubewright.apiserver.builtin.trees import Tree, items, peek, semantic_equal, text
from kubewright.apiserver.kinds.admission import Attributes, admission_forbidden
from kubewright.apiserver.kinds.resources import key_of
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.status_errors import not_found

__all__ = ("PodRestriction", "stored_pod")

_MIRROR: Final = "kubernetes.io/config.mirror"
# The names that the listers of client-go give to what they do not find.
_POD: Final = GroupResource("", "pod")
_NODE: Final = GroupResource("", "node")


@final
class PodRestriction:
    """Checks what a node does to pods."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def check(self, node: str, attributes: Attributes) -> None:
        """Refuse a write of pods that are not the node's."""
        match attributes.subresource, attributes.operation:
            case "", "CREATE":
                self._check_create(node, attributes)
            case "", "DELETE":
                pod = stored_pod(self._store, attributes.namespace, attributes.name)
                if text(pod, "spec", "nodeName") != node:
                    why = f"node {quoted(node)} can only delete pods with spec.nodeName set to itself"
                    raise admission_forbidden(attributes, why)
            case "", operation:
                why = f'unexpected operation "{operation}", node {quoted(node)} can only create and delete mirror pods'
                raise admission_forbidden(attributes, why)
            case "status", "UPDATE":
                _check_status(node, attributes)
            case "status", operation:
                raise admission_forbidden(attributes, f'unexpected operation "{operation}"')
            case "eviction", "CREATE":
                pod = stored_pod(self._store, attributes.namespace, attributes.name)
                if text(pod, "spec", "nodeName") != node:
                    why = f"node {node} can only evict pods with spec.nodeName set to itself"
                    raise admission_forbidden(attributes, why)
            case "eviction", operation:
                raise admission_forbidden(attributes, f"unexpected operation {operation}")
            case subresource, _:
                why = f"unexpected pod subresource {quoted(subresource)}, only 'status' and 'eviction' are allowed"
                raise admission_forbidden(attributes, why)

    def _check_create(self, node: str, attributes: Attributes) -> None:
        pod = attributes.object or {}
        who = f"node {quoted(node)}"
        if _MIRROR not in (peek(pod, "metadata", "annotations") or {}):
            why = f"pod does not have {quoted(_MIRROR)} annotation, {who} can only create mirror pods"
            raise admission_forbidden(attributes, why)
        if text(pod, "spec", "nodeName") != node:
            raise admission_forbidden(attributes, f"{who} can only create pods with spec.nodeName set to itself")
        owners = items(pod["metadata"], "ownerReferences")
        if len(owners) > 1:
            why = f"{who} can only create pods with a single owner reference set to itself"
            raise admission_forbidden(attributes, why)
        if not owners or [owners[0].get(name) for name in ("apiVersion", "kind", "name")] != ["v1", "Node", node]:
            why = f"{who} can only create pods with an owner reference set to itself"
            raise admission_forbidden(attributes, why)
        if not owners[0].get("controller"):
            why = f"{who} can only create pods with a controller owner reference set to itself"
            raise admission_forbidden(attributes, why)
        if owners[0].get("blockOwnerDeletion"):
            raise admission_forbidden(attributes, f"{who} must not set blockOwnerDeletion on an owner reference")
        self._check_uid(node, attributes, text(owners[0], "uid"))
        reference = api_object_reference(pod)
        if reference:
            raise admission_forbidden(attributes, f"{who} can not create pods that reference {reference}")

    def _check_uid(self, node: str, attributes: Attributes, uid: str) -> None:
        entry = self._store.table("/nodes").get(node)
        if entry is None:
            raise not_found(_NODE, node)
        present = decode_json(entry.value)["metadata"]["uid"]
        if uid != present:
            raise admission_forbidden(attributes, f"node {node} UID mismatch: expected {uid} got {present}")


def stored_pod(store: Store, namespace: str, name: str) -> Tree:
    """A pod; `StatusError` (404) if there is none."""
    entry = store.table("/pods").get(key_of(namespace, name))
    if entry is None:
        raise not_found(_POD, name)
    pod: Tree = decode_json(entry.value)
    return pod


def _check_status(node: str, attributes: Attributes) -> None:
    new, old = attributes.object or {}, attributes.old or {}
    if text(old, "spec", "nodeName") != node:
        why = "can only update pod status for pods with spec.nodeName set to itself"
        raise admission_forbidden(attributes, f"node {quoted(node)} {why}")
    if (peek(new, "metadata", "labels") or {}) != (peek(old, "metadata", "labels") or {}):
        raise admission_forbidden(attributes, f"node {quoted(node)} cannot update labels through pod status")
    for field, what in (
        ("resourceClaimStatuses", "resource claim statues"),
        ("extendedResourceClaimStatus", "extended resource claim status"),
    ):
        if not semantic_equal(peek(new, "status", field), peek(old, "status", field)):
            raise admission_forbidden(attributes, f"node {quoted(node)} cannot update {what}")
