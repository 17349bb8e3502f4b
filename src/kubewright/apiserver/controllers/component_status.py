"""How the parts of a control plane are: the deprecated kind ComponentStatus, which some clients still ask for.

A real server asks the scheduler, the controller manager and etcd whenever it is asked. Here all of them live in one
process, so a part is as it says itself: well, once it runs. The server says so for its store, the cluster for its
controllers. What is said is kept with the objects, but has no version, and nobody is told of it.
"""

from __future__ import annotations

from kubewright.apiserver.storage.store import Entry, Store
from kubewright.apiserver.wire.responses import encode_json

__all__ = ("report_healthy",)


def report_healthy(store: Store, *names: str) -> None:
    """Say that these parts are well."""
    for name in names:
        tree = {
            "kind": "ComponentStatus",
            "apiVersion": "v1",
            "metadata": {"name": name},
            "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
        }
        store.table("/componentstatuses").restore(Entry(name, encode_json(tree), 0))
