"""The ClusterRoleBinding by which the API server may call kubelets.

The API server shows kubelets a client certificate of its own; kubelets ask it (SubjectAccessReview) whether that user
may. The certificate is in no group of administrators, so that whoever makes the API server connect to something else
than a kubelet gains nothing by it. Called by `embedded` and `real` when their API server runs.
"""

from __future__ import annotations

from typing import Any

from kubewright.cluster.pki.files import KUBELET_CLIENT

__all__ = ("kubelet_client_binding",)


def kubelet_client_binding() -> dict[str, Any]:
    """The binding of the API server's user to the ClusterRole `system:kubelet-api-admin`."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"kubewright:{KUBELET_CLIENT}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": KUBELET_CLIENT}],
    }
