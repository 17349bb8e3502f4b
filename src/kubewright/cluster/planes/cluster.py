"""Cluster: the interface of every local control plane, embedded or real.

    async with Cluster.embedded() as cluster:
        ...  # cluster.client, cluster.kubeconfig

    async with Cluster.real(version="1.35") as cluster:
        ...

    def widgets_of(cluster: Cluster) -> ...: ...  # either of them

The two factory methods import `embedded` and `real`, which implement it, when they are called. Called by tests,
programs and `background`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NoReturn, Self, TypeAlias

from kubewright.errors import ClusterError

if TYPE_CHECKING:
    from kubewright.client.client import Client
    from kubewright.client.config.config import Config
    from kubewright.cluster.kubelet.pods.timing import Timing
    from kubewright.cluster.planes.embedded import EmbeddedCluster
    from kubewright.cluster.planes.real import RealCluster
    from kubewright.cluster.processes.progress import Progress

__all__ = ("Cluster", "Component")

Component: TypeAlias = Literal["etcd", "apiserver", "controller-manager"]


class Cluster(ABC):
    """A local control plane; `async with` starts and stops it. Attributes are set when it has started."""

    version: str
    """The Kubernetes version, without a leading v."""
    client: Client
    """The administrator's client."""

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
        kubelet_certificate_authority: Path | None = None,
        timing: Timing | None = None,
    ) -> EmbeddedCluster:
        """An API server, controllers and simulated nodes in this process; see `EmbeddedCluster`."""
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
            kubelet_certificate_authority=kubelet_certificate_authority,
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
        """etcd, kube-apiserver and kube-controller-manager as child processes; see `RealCluster`."""
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

    if not TYPE_CHECKING:  # a type checker would believe in any attribute

        def __getattr__(self, name: str) -> NoReturn:
            """For what is not set before the start, and for properties of that: say so instead of an AttributeError."""
            kind = type(self)
            if any(name in vars(base).get("__annotations__", {}) or name in vars(base) for base in kind.__mro__):
                raise ClusterError(
                    f"the cluster has not been started, so it has no {name} yet; "
                    f"write `async with {kind.__name__}(...) as cluster:`, or await cluster.start()"
                )
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @abstractmethod
    async def start(self) -> None:
        """Start it, and return when the API server responds."""

    @abstractmethod
    async def wait_for_controllers(self) -> None:
        """Return when the controllers run and the nodes exist; `start` may return before that."""

    @abstractmethod
    async def stop(self) -> None:
        """Stop everything and remove temporary files; stopping twice is fine."""

    @abstractmethod
    async def wait(self) -> None:
        """Wait until a part of it fails, and raise the ClusterError that says why."""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """The folder with kubeconfigs and certificates; removed at the end unless the caller chose it."""

    @property
    @abstractmethod
    def kubeconfig(self) -> Path:
        """The kubeconfig of `admin`, a member of `system:masters`."""

    @property
    def config(self) -> Config:
        """The configuration of a client for the kubeconfig, for a `Manager` or `connect`."""
        from kubewright.client.config.config import Config

        return Config.load(kubeconfig=self.kubeconfig)

    @property
    @abstractmethod
    def kubectl(self) -> Path:
        """A kubectl of the same version; ClusterError if none is found."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The address of the API server."""

    @property
    @abstractmethod
    def ca_data(self) -> bytes:
        """The CA certificate that clients must trust, PEM."""

    @abstractmethod
    async def user(self, name: str, groups: Iterable[str] = ()) -> Path:
        """The path of a new kubeconfig for another user, who authenticates with a client certificate.

        RBAC decides what that user may do: next to nothing without a binding.
        """

    @abstractmethod
    async def compact(self) -> int:
        """Compact the store to its current resource version, which is returned."""

    @abstractmethod
    async def restart(self, component: Component = "apiserver") -> None:
        """Stop a component and start it again on the same port, with the same data."""
