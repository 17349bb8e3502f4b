"""Simulated nodes, their kubelet and a scheduler, as controllers for a manager.

    manager = Manager(*node_controllers(client, authority=authority, count=3), client=client)

`embedded` and `real` both use it: neither control plane has nodes of its own. The manager must use the same cluster and
the same clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubewright._base.certificates import Authority
from kubewright._base.clock import Clock
from kubewright.client.client import Client
from kubewright.cluster.kubelet.auth import KubeletAuth
from kubewright.cluster.kubelet.failure_injection import FailureInjection
from kubewright.cluster.kubelet.kubelet import Kubelet
from kubewright.cluster.kubelet.logs import ContainerLogs
from kubewright.cluster.kubelet.node_objects import Nodes, node_names
from kubewright.cluster.kubelet.pods.timing import Timing
from kubewright.cluster.kubelet.provisioner import provisioner_controllers
from kubewright.cluster.kubelet.sandbox.sandboxes import SandboxManager
from kubewright.cluster.kubelet.server import KubeletServer
from kubewright.cluster.scheduler.scheduler import Scheduler
from kubewright.controllers.declaration import Declaration
from kubewright.k8s.core.v1 import Taint
from kubewright.manager.runnables import Runnable

__all__ = ("node_controllers",)


def node_controllers(
    client: Client,
    *,
    authority: Authority,
    count: int = 1,
    names: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Taint] = (),
    capacity: Mapping[str, str] | None = None,
    timing: Timing | None = None,
    kubelet_port: int | None = 0,
    on_kubelet_listen: Callable[[str, int], None] = lambda host, port: None,
    scheduler: bool = True,
    storage: bool = True,
    devices: bool = True,
    clock: Clock | None = None,
) -> tuple[Runnable | Declaration[Any], ...]:
    """Node objects, a kubelet with its server for logs, exec, attach and port-forward, and a scheduler.

    `authority` is the cluster's CA: it signs the certificate of the kubelet server and those of its clients.
    `kubelet_port` 0 takes a free port; None runs no kubelet server. `on_kubelet_listen` is told its address. With
    `scheduler=False` another scheduler binds the pods, with `storage=False` there is no StorageClass and no
    provisioner. `devices=False` is for servers without `resource.k8s.io/v1`.
    """
    logs, sandboxes, failures = ContainerLogs(), SandboxManager(client), FailureInjection()
    names = node_names(count, names)
    server = None
    if kubelet_port is not None:
        auth = KubeletAuth(client, node_name=names[0] if len(names) == 1 else "", clock=clock)
        server = KubeletServer(
            logs,
            sandboxes,
            auth=auth,
            authority=authority,
            port=kubelet_port,
            clock=clock,
            on_listen=on_kubelet_listen,
        )
    nodes = Nodes(
        client,
        count,
        names=names,
        labels=labels,
        taints=taints,
        capacity=capacity,
        server=server,
        failures=failures,
        clock=clock,
    )
    kubelet = Kubelet(nodes, timing=timing, logs=logs, sandboxes=sandboxes, failures=failures, clock=clock)
    parts: list[Runnable | Declaration[Any]] = [] if server is None else [server]
    parts += [nodes, kubelet.declaration()]
    if scheduler:
        parts.append(Scheduler(devices=devices, clock=clock).declaration())
    if storage:
        parts.extend(provisioner_controllers(client))
    return tuple(parts)
