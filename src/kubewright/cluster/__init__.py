"""A local Kubernetes control plane, for development and tests.

    async with Cluster.embedded() as cluster:
        ...  # cluster.client, cluster.kubeconfig

    async with Cluster.real(version="1.35") as cluster:
        ...  # cluster.kubeconfig

`Cluster` is the public entry point. It imports `planes.embedded` or `planes.real` on first use, so that a program pays
only for the control plane it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from kubewright.cluster.kubelet.pods.timing import Timing
    from kubewright.cluster.planes.embedded import EmbeddedCluster
    from kubewright.cluster.planes.real import RealCluster
    from kubewright.cluster.processes.progress import Progress

__all__ = ("Cluster",)


@final
class Cluster:
    """Factory of local control planes; each is an async context manager."""

    @staticmethod
    def embedded(
        *,
        folder: Path | None = None,
        data: Path | None = None,
        port: int = 0,
        http_port: int | None = None,
        nodes: int = 1,
        pods: bool = True,
        controllers: bool = True,
        storage: bool = True,
        audit_log: Path | None = None,
        timing: Timing | None = None,
    ) -> EmbeddedCluster:
        """An API server, controllers and simulated nodes in this process; see `planes.embedded.EmbeddedCluster`."""
        from kubewright.cluster.planes.embedded import EmbeddedCluster

        return EmbeddedCluster(
            folder=folder,
            data=data,
            port=port,
            http_port=http_port,
            nodes=nodes,
            pods=pods,
            controllers=controllers,
            storage=storage,
            audit_log=audit_log,
            timing=timing,
        )

    @staticmethod
    def real(
        *,
        version: str | None = None,
        folder: Path | None = None,
        data: Path | None = None,
        audit_log: Path | None = None,
        apiserver_flags: Mapping[str, str] | None = None,
        controller_manager_flags: Mapping[str, str] | None = None,
        runtime_config: Mapping[str, str] | None = None,
        nodes: int = 0,
        storage: bool = True,
        timing: Timing | None = None,
        start_timeout: float = 60.0,
        progress: Progress | None = None,
    ) -> RealCluster:
        """etcd, kube-apiserver and kube-controller-manager as child processes; see `planes.real.RealCluster`."""
        from kubewright.cluster.planes.real import RealCluster

        return RealCluster(
            version=version,
            folder=folder,
            data=data,
            audit_log=audit_log,
            apiserver_flags=apiserver_flags,
            controller_manager_flags=controller_manager_flags,
            runtime_config=runtime_config,
            nodes=nodes,
            storage=storage,
            timing=timing,
            start_timeout=start_timeout,
            progress=progress,
        )
