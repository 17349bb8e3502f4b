"""The node authorizer: what a kubelet may do, who is `system:node:NAME` in the group `system:nodes`.

A node may read its own Node, the pods bound to it and what they refer to (`node_graph`), and write its Lease, its
CSINode and its ResourceSlices. Everything else is decided by the rules of the role system:node, which nobody is bound
to. The admission plugin NodeRestriction checks what a path does not tell, such as the node of a new pod. `access` asks
this authorizer before RBAC. Upstream: plugin/pkg/auth/authorizer/node/node_authorizer.go.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final, final

import msgspec

from kubewright.api.go_text import quoted
from kubewright.api.selectors import FieldSelector
from kubewright.apiserver.auth.bootstrap import bootstrap_objects
from kubewright.apiserver.auth.node_graph import NodeGraph
from kubewright.apiserver.auth.policy_rules import PolicyRule, allows
from kubewright.apiserver.kinds.access import Decision
from kubewright.apiserver.kinds.resources import key_of
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.requests import RequestInfo
from kubewright.apiserver.wire.users import User, node_name
from kubewright.errors import DecodeError

__all__ = ("NodeAuthorizer",)

_ALLOWED: Final = Decision(True)
_NO_OPINION: Final = Decision(False)
_LEASES: Final = "kube-node-lease"
_OWN_VERBS: Final = ("get", "create", "update", "patch", "delete")


@final
class NodeAuthorizer:
    """Authorizes the requests of nodes; has no opinion about those of others."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @cached_property
    def _graph(self) -> NodeGraph:
        return NodeGraph(self._store)

    @cached_property
    def _rules(self) -> tuple[PolicyRule, ...]:
        """The rules of system:node, as a new server has them: an edited role gives nodes no more."""
        role = next(
            tree
            for tree in bootstrap_objects()
            if tree["kind"] == "ClusterRole" and tree["metadata"]["name"] == "system:node"
        )
        return msgspec.convert(role["rules"], tuple[PolicyRule, ...])

    def decide(self, user: User, info: RequestInfo) -> Decision:
        """Whether a node may make a request; the reason says why not."""
        node = node_name(user)
        if node is None:
            return _NO_OPINION
        if not node:
            return Decision(False, f"unknown node for user {quoted(user.name)}")
        authorize = self._SUBDIVIDED.get((info.group, info.resource)) if info.is_resource else None
        if authorize is not None:
            return authorize(self, node, info)
        return _ALLOWED if any(allows(rule, info) for rule in self._rules) else _NO_OPINION

    def _reach(self, node: str, info: RequestInfo) -> Decision:
        """Allow what belongs to the node."""
        if not info.name:
            return Decision(False, "No Object name found")
        if self._graph.reaches(node, info.resource, key_of(info.namespace, info.name)):
            return _ALLOWED
        return Decision(False, f"no relationship found between node '{node}' and this object")

    def _read(self, node: str, info: RequestInfo) -> Decision:
        if info.verb not in ("get", "list", "watch"):
            return Decision(False, "can only read resources of this type")
        if info.subresource:
            return Decision(False, "cannot read subresource")
        if not info.namespace:
            return Decision(False, "can only read namespaced object of this type")
        return self._reach(node, info)

    def _get(self, node: str, info: RequestInfo) -> Decision:
        if info.verb != "get":
            return Decision(False, "can only get individual resources of this type")
        if info.subresource:
            return Decision(False, "cannot get subresource")
        return self._reach(node, info)

    def _claim(self, node: str, info: RequestInfo) -> Decision:
        if info.subresource != "status":
            return self._get(node, info)
        if info.verb not in ("update", "patch"):
            return Decision(False, "can only get/update/patch this type")
        return self._reach(node, info)

    def _service_account(self, node: str, info: RequestInfo) -> Decision:
        if info.verb == "get" and not info.subresource:
            return self._read(node, info)
        if info.verb != "create" or not info.name:
            return Decision(False, "can only create tokens for individual service accounts")
        if info.subresource != "token":
            return Decision(False, "can only create token subresource of serviceaccount")
        return self._reach(node, info)

    def _lease(self, node: str, info: RequestInfo) -> Decision:
        if info.verb not in _OWN_VERBS:
            return Decision(False, "can only get, create, update, patch, or delete a node lease")
        if info.namespace != _LEASES:
            return Decision(False, f"can only access leases in the {quoted(_LEASES)} system namespace")
        # The name of a new one is in its body, which NodeRestriction checks.
        if info.verb != "create" and info.name != node:
            return Decision(False, "can only access node lease with the same name as the requesting node")
        return _ALLOWED

    def _csi_node(self, node: str, info: RequestInfo) -> Decision:
        if info.verb not in _OWN_VERBS:
            return Decision(False, "can only get, create, update, patch, or delete a CSINode")
        if info.subresource:
            return Decision(False, "cannot authorize CSINode subresources")
        if info.verb != "create" and info.name != node:
            return Decision(False, "can only access CSINode with the same name as the requesting node")
        return _ALLOWED

    def _resource_slice(self, node: str, info: RequestInfo) -> Decision:
        if info.subresource:
            return Decision(False, "cannot authorize ResourceSlice subresources")
        if info.verb == "create":
            return _ALLOWED
        if info.verb in ("get", "update", "patch", "delete"):
            return self._reach(node, info)
        if info.verb in ("watch", "list", "deletecollection"):
            if _selects(info, "spec.nodeName", node):
                return _ALLOWED
            why = "can only list/watch/deletecollection resourceslices with nodeName field selector"
            return Decision(False, why)
        verbs = "get, watch, list, create, update, patch, delete, deletecollection"
        return Decision(False, f"only the following verbs are allowed for a ResourceSlice: {verbs}")

    def _node(self, node: str, info: RequestInfo) -> Decision:
        if info.subresource == "status":
            return _ALLOWED if info.verb in ("update", "patch") else _NO_OPINION
        if info.subresource:
            return _NO_OPINION
        if info.verb in ("create", "update", "patch"):
            return _ALLOWED
        if info.verb not in ("get", "list", "watch"):
            return _NO_OPINION
        if info.name == node:
            return _ALLOWED
        what = f"'{info.name}'" if info.name else "all nodes"
        return Decision(False, f"node '{node}' cannot read {what}, only its own Node object")

    def _pod(self, node: str, info: RequestInfo) -> Decision:
        what = (info.subresource, info.verb)
        if what in (("", "create"), ("", "delete"), ("status", "update"), ("status", "patch"), ("eviction", "create")):
            return _ALLOWED
        if what == ("", "get"):
            return self._get(node, info)
        if what not in (("", "list"), ("", "watch")):
            return _NO_OPINION
        if _selects(info, "spec.nodeName", node):
            return _ALLOWED
        if info.name:
            return self._reach(node, info)
        return Decision(False, "can only list/watch pods with spec.nodeName field selector")

    def _pod_certificate_request(self, node: str, info: RequestInfo) -> Decision:
        """Nothing: the feature PodCertificateRequest is off by default."""
        return _NO_OPINION

    _SUBDIVIDED: Final = {
        ("", "secrets"): _read,
        ("", "configmaps"): _read,
        ("", "persistentvolumeclaims"): _claim,
        ("", "persistentvolumes"): _get,
        ("resource.k8s.io", "resourceclaims"): _get,
        ("storage.k8s.io", "volumeattachments"): _get,
        ("", "serviceaccounts"): _service_account,
        ("coordination.k8s.io", "leases"): _lease,
        ("storage.k8s.io", "csinodes"): _csi_node,
        ("resource.k8s.io", "resourceslices"): _resource_slice,
        ("", "nodes"): _node,
        ("", "pods"): _pod,
        ("certificates.k8s.io", "podcertificaterequests"): _pod_certificate_request,
    }


def _selects(info: RequestInfo, field: str, value: str) -> bool:
    """Whether the field selector selects only objects with this value."""
    try:
        return FieldSelector.parse(info.field_selector).required_value(field) == value
    except DecodeError:
        return False
