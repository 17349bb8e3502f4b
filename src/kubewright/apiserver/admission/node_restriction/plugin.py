"""NodeRestriction: refuses what a kubelet writes about others than itself and the pods bound to it.

The node authorizer decides by the path of a request; this plugin looks at what is in it. Upstream:
plugin/pkg/admission/noderestriction/admission.go.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Final, final

from kubewright.api.go_text import quoted
from kubewright.apiserver.admission.node_restriction.nodes import check_node
from kubewright.apiserver.admission.node_restriction.pods import PodRestriction
from kubewright.apiserver.admission.node_restriction.tokens import TokenRestriction
from kubewright.apiserver.builtin.trees import Tree, semantic_equal, text
from kubewright.apiserver.kinds.access import Access
from kubewright.apiserver.kinds.admission import Attributes, admission_forbidden
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.users import node_name
from kubewright.errors import DecodeError

__all__ = ("NodeRestriction",)

_LEASES: Final = "kube-node-lease"
_KUBELET_SIGNERS: Final = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")
_CLAIM_STATUS: Final = ("capacity", "conditions", "allocatedResourceStatuses", "allocatedResources")


@final
class NodeRestriction:
    """Refuses writes of nodes; changes nothing."""

    def __init__(self, store: Store, access: Access) -> None:
        self._pods = PodRestriction(store)
        self._tokens = TokenRestriction(store, access)
        self._checks = {
            "/pods": self._pods.check,
            "/nodes": check_node,
            "/persistentvolumeclaims": _check_claim,
            "/serviceaccounts": self._tokens.check,
            "certificates.k8s.io/podcertificaterequests": _refuse_pod_certificate_request,
            "coordination.k8s.io/leases": _check_lease,
            "storage.k8s.io/csinodes": _check_csi_node,
            "resource.k8s.io/resourceslices": _check_resource_slice,
            "certificates.k8s.io/certificatesigningrequests": _check_certificate_request,
        }

    def handles(self, attributes: Attributes) -> bool:
        return node_name(attributes.user) is not None and attributes.operation != "CONNECT"

    async def mutate(self, attributes: Attributes) -> None:
        """Change nothing; raise `StatusError` if the write is not the node's."""
        node = node_name(attributes.user)
        if not node:
            raise admission_forbidden(attributes, f"could not determine node from user {quoted(attributes.user.name)}")
        check = self._checks.get(f"{attributes.resource.kind.group}/{attributes.resource.plural}")
        if check is not None:
            check(node, attributes)


def _check_claim(node: str, attributes: Attributes) -> None:
    if attributes.subresource != "status":
        raise admission_forbidden(attributes, "may only update PVC status")
    if attributes.operation != "UPDATE":
        raise admission_forbidden(attributes, f'unexpected operation "{attributes.operation}"')
    if not semantic_equal(_without_capacity(attributes.object), _without_capacity(attributes.old)):
        why = "is not allowed to update fields other than status.quantity and status.conditions"
        raise admission_forbidden(attributes, f"node {quoted(node)} {why}")


def _without_capacity(claim: Tree | None) -> Tree:
    """A claim without what a node may change."""
    claim = claim or {}
    meta = {
        name: value for name, value in claim["metadata"].items() if name not in ("resourceVersion", "managedFields")
    }
    status = {name: value for name, value in (claim.get("status") or {}).items() if name not in _CLAIM_STATUS}
    return {**claim, "metadata": meta, "status": status}


def _refuse_pod_certificate_request(node: str, attributes: Attributes) -> None:
    raise admission_forbidden(attributes, "PodCertificateRequest feature gate is disabled")


def _check_lease(node: str, attributes: Attributes) -> None:
    if attributes.namespace != _LEASES:
        raise admission_forbidden(attributes, f"can only access leases in the {quoted(_LEASES)} system namespace")
    if attributes.name != node:
        why = "can only access node lease with the same name as the requesting node"
        raise admission_forbidden(attributes, why)


def _check_csi_node(node: str, attributes: Attributes) -> None:
    if attributes.name != node:
        raise admission_forbidden(attributes, "can only access CSINode with the same name as the requesting node")


def _check_resource_slice(node: str, attributes: Attributes) -> None:
    if attributes.operation == "UPDATE":
        return  # the node authorizer has looked at the one that is there, and its node never changes
    tree, verb = (attributes.object, "create") if attributes.operation == "CREATE" else (attributes.old, "delete")
    if text(tree, "spec", "nodeName") != node:
        raise admission_forbidden(
            attributes, f"can only {verb} ResourceSlice with the same NodeName as the requesting node"
        )


def _check_certificate_request(node: str, attributes: Attributes) -> None:
    spec = (attributes.object or {}).get("spec") or {}
    if attributes.operation != "CREATE" or spec.get("signerName") not in _KUBELET_SIGNERS:
        return
    from kubewright._base.certificate_requests import parse_request  # imports cryptography, which is slow

    try:
        info = parse_request(b64decode(spec.get("request") or ""))
    except DecodeError as error:
        raise admission_forbidden(attributes, f"unable to parse csr: {error}") from None
    if info.common_names != (f"system:node:{node}",):
        raise admission_forbidden(attributes, f"can only create a node CSR with CN=system:node:{node}")
