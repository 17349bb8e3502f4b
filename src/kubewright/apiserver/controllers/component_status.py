"""ComponentStatuses: the deprecated kind that shows the health of etcd, the scheduler and the controller manager.

kube-apiserver probes these components for each request. Here they are parts of one process, so each is reported
healthy once it runs: the store by the server, the controllers by the cluster. The objects have no version, and no watch
sees them.
"""

from __future__ import annotations

from kubewright.apiserver.storage.store import Entry, Store
from kubewright.apiserver.wire.responses import encode_json

__all__ = ("report_healthy",)


def report_healthy(store: Store, *names: str) -> None:
    """Report components as healthy."""
    for name in names:
        tree = {
            "kind": "ComponentStatus",
            "apiVersion": "v1",
            "metadata": {"name": name},
            "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
        }
        store.table("/componentstatuses").restore(Entry(name, encode_json(tree), 0))
