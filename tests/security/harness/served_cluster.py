"""The watched process of the API server: an embedded control plane as users start it, and a user of each standing.

Started by `watched_process`; prints one line of JSON when it is ready and runs until it is told to end.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from typing import Any, Final

from tests.security.harness.watched_program import report_ready, watched_options

from kubewright._base.loop import run
from kubewright.cluster.planes.embedded import EmbeddedCluster

EDITED: Final = "edited"
"""The namespace in which the editor may edit."""


async def serve(options: argparse.Namespace) -> None:
    """Start the cluster, say where it is, run until a signal."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with EmbeddedCluster(controllers=not options.alone, nodes=0 if options.alone else 1) as cluster:
        await cluster.wait_for_controllers()
        for tree in _objects():
            await cluster.server.loopback.ensure(tree)
        kubeconfigs = {
            "admin": cluster.kubeconfig,
            "editor": await cluster.user("editor"),
            "nobody": await cluster.user("nobody"),
        }
        report_ready(options, {"users": {who: str(path) for who, path in kubeconfigs.items()}})
        await ended.wait()


def _objects() -> list[dict[str, Any]]:
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": EDITED}}]
    # Without controllers nobody else makes them, and no pod could be created.
    accounts = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}
        for namespace in (EDITED, "default")
    ]
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "edit", "namespace": EDITED},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "editor"}],
    }
    return [*namespaces, *accounts, binding]


if __name__ == "__main__":
    run(serve(watched_options("--alone")))
