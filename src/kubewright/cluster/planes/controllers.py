"""All controllers of a cluster, for a control plane that has none of its own.

What kube-controller-manager, kube-scheduler and the kubelets are to a real cluster; registered with one manager by
`embedded`. The groups are in `workloads`, `housekeeping` and `nodes`.
"""

from __future__ import annotations

from typing import Any

from kubewright.client.client import Client
from kubewright.cluster.controller_manager.controllers import controller_manager_controllers
from kubewright.cluster.controller_manager.workloads.factory import workload_controllers
from kubewright.cluster.kubelet.pods.timing import Timing
from kubewright.cluster.pki.certificates import Authority
from kubewright.cluster.planes.simulated_nodes import node_controllers
from kubewright.controllers.declaration import Declaration
from kubewright.manager.runnables import Runnable

__all__ = ("cluster_controllers",)


def cluster_controllers(
    client: Client, *, authority: Authority, nodes: int, storage: bool = True, timing: Timing | None = None
) -> list[Runnable | Declaration[Any]]:
    """Workloads, housekeeping and, unless there are to be none, simulated nodes."""
    parts: list[Runnable | Declaration[Any]] = [*workload_controllers()]
    parts.extend(controller_manager_controllers(client, root_certificate=authority.certificate, authority=authority))
    if nodes:
        parts.extend(node_controllers(client, count=nodes, storage=storage, timing=timing))
    return parts
