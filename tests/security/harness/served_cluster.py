"""The watched process of the API server: an embedded control plane as users start it, and a user of each standing.

Started by `watched_process`; prints one line of JSON when it is ready and runs until it is told to end.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import gc
import json
import resource
import signal
import sys
from pathlib import Path
from typing import Any, Final

from tests.security.harness.heartbeat import Heartbeat

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
        gc.collect()
        Heartbeat(options.heartbeat).start()
        print(json.dumps({"url": cluster.url, "users": {who: str(path) for who, path in kubeconfigs.items()}}))
        sys.stdout.flush()
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--heartbeat", type=Path, required=True)
    parser.add_argument("--memory", type=int, required=True, help="bytes of address space")
    parser.add_argument("--alone", action="store_true", help="the API server without controllers and nodes")
    options = parser.parse_args()
    faulthandler.register(signal.SIGUSR1)  # where it is now, to the log: the harness asks when the loop is held
    resource.setrlimit(resource.RLIMIT_AS, (options.memory, options.memory))
    run(serve(options))


if __name__ == "__main__":
    main()
