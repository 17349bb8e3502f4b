"""All controllers of the embedded control plane, as one list for one manager.

They do the work of kube-controller-manager (`controller_manager`), kube-scheduler (`scheduler`) and the kubelets
(`kubelet`). Called by `embedded`; a real control plane runs a kube-controller-manager of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubewright._base.certificates import Authority
from kubewright.client.client import Client
from kubewright.cluster.controller_manager.controllers import controller_manager_controllers
from kubewright.cluster.controller_manager.workloads.controllers import workload_controllers
from kubewright.cluster.kubelet.pods.timing import Timing
from kubewright.cluster.planes.simulated_nodes import node_controllers
from kubewright.controllers.declaration import Declaration
from kubewright.manager.runnables import Runnable

__all__ = ("cluster_controllers",)


def cluster_controllers(
    client: Client,
    *,
    authority: Authority,
    nodes: int,
    storage: bool = True,
    timing: Timing | None = None,
    on_kubelet_listen: Callable[[str, int], None] = lambda host, port: None,
) -> list[Runnable | Declaration[Any]]:
    """The controllers of kube-controller-manager and, if `nodes` is not 0, scheduler and simulated nodes."""
    parts: list[Runnable | Declaration[Any]] = [*workload_controllers()]
    parts.extend(controller_manager_controllers(client, root_certificate=authority.certificate, authority=authority))
    if nodes:
        parts.extend(
            node_controllers(
                client,
                authority=authority,
                count=nodes,
                storage=storage,
                timing=timing,
                on_kubelet_listen=on_kubelet_listen,
            )
        )
    return parts
