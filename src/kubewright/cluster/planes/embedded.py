"""The embedded control plane: an API server, controllers and simulated nodes inside this process.

    async with Cluster.embedded() as cluster:
        deployment = await cluster.client.get(Deployment, "web")

It starts in a fraction of a second because it starts no process: everything runs on the caller's event loop. Any client
can use it over TLS on loopback with the kubeconfig it writes. With a data folder its objects and its CA survive a
restart. The parts are in `apiserver`, `cluster.controller_manager`, `cluster.scheduler` and `cluster.kubelet`. Tests
and programs use it through `kubewright.cluster.Cluster`, the command line through `background`.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from kubewright.apiserver.auth.access import RbacAccess
from kubewright.apiserver.auth.tokens import ServiceAccountTokens
from kubewright.apiserver.controllers.component_status import report_healthy
from kubewright.apiserver.front.audit import AuditLog
from kubewright.apiserver.front.router import RequestObserver
from kubewright.apiserver.outbound.kubelets import KubeletClientConfig
from kubewright.apiserver.server import ApiServer
from kubewright.apiserver.storage.journal import SqliteJournal
from kubewright.apiserver.storage.store import Store
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.client.connection import connect
from kubewright.client.transport.retries import RetryingTransport
from kubewright.cluster.planes.cluster import Cluster
from kubewright.cluster.planes.direct import DirectTransport
from kubewright.cluster.planes.kubelet_binding import kubelet_client_binding
from kubewright.cluster.planes.plane_folder import ADMIN, ADMIN_GROUP, PlaneFolder
from kubewright.errors import ClusterError
from kubewright.k8s.release import KUBERNETES_VERSION

if TYPE_CHECKING:
    from kubewright.cluster.kubelet.pods.timing import Timing

__all__ = ("EmbeddedCluster",)

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_HIGHEST_PORT = 65535


@final
class EmbeddedCluster(Cluster):
    """A whole cluster in this process; an async context manager."""

    version = KUBERNETES_VERSION
    server: ApiServer

    def __init__(
        self,
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
    ) -> None:
        """Keep the options; `start` starts the cluster.

        `data` is a folder whose contents survive: objects, CAs and the service-account key. `nodes` is the number of
        simulated nodes; without `pods` there are none and pods stay Pending; without `controllers` only the API server
        runs. With `storage` there is a default StorageClass and a provisioner for its volumes. `audit_log` gets one
        JSON line per request. With `http_port` (0 for any) the server also listens without TLS; requests on that port
        authenticate with a token or are anonymous.

        A kubelet that you run yourself accepts the server's client certificate if `ca_data` is its `--client-ca-file`.
        Its serving certificate is verified only with `kubelet_certificate_authority`, a file with the CA's certificate;
        those of the simulated nodes always are.
        """
        self._plane_folder = PlaneFolder(folder=folder, data=data)
        self._port = port
        self._http_port = http_port
        self._nodes = nodes
        self._pods = pods and nodes > 0
        self._controllers = controllers
        self._storage = storage
        self._audit_log = audit_log
        self._kubelet_certificate_authority = kubelet_certificate_authority
        self._timing = timing
        self._journal: SqliteJournal | None = None
        self._stack = AsyncExitStack()
        self._controllers_task: asyncio.Task[None] | None = None

    # Starting and stopping

    async def start(self) -> None:
        """Start the API server, then the controllers in a background task.

        The server answers requests when this returns. The controllers start within the next fraction of a second, as
        they do in any cluster; `wait_for_controllers` waits for them.
        """
        try:
            self._plane_folder.open()
            self._pki = await asyncio.to_thread(self._plane_folder.prepare_pki)
            await self._start_server(self._open_store())
            self._plane_folder.write_admin_kubeconfig(self._pki, server=self.url)
            self.client = await self._stack.enter_async_context(connect(Config.load(kubeconfig=self.kubeconfig)))
            await self.server.loopback.ensure(kubelet_client_binding())
            if self._controllers:
                await self._prepare_namespaces()
                self._controllers_task = asyncio.create_task(self._start_controllers(), name="cluster controllers")
        except BaseException:
            await self.stop()
            raise

    async def wait_for_controllers(self) -> None:
        """Return when the controllers run and the nodes exist; raise what keeps them from starting."""
        if self._controllers_task is not None:
            await asyncio.shield(self._controllers_task)

    async def stop(self) -> None:
        """Stop everything and remove temporary files; stopping twice is fine."""
        if self._controllers_task is not None:
            self._controllers_task.cancel()
            await asyncio.gather(self._controllers_task, return_exceptions=True)
            self._controllers_task = None
        await self._stack.aclose()
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        await self._plane_folder.close()

    async def wait(self) -> None:
        """Wait until cancelled; raise what keeps the controllers from starting."""
        await self.wait_for_controllers()
        await asyncio.Event().wait()

    # Addresses and credentials

    @property
    def folder(self) -> Path:
        """The folder with kubeconfig and certificates; removed at the end unless the caller chose it."""
        return self._plane_folder.folder

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of `admin`, a member of `system:masters`."""
        return self._plane_folder.kubeconfig

    @property
    def kubectl(self) -> Path:
        """A kubectl that is installed already, with the binaries of the real control plane; else ClusterError."""
        from kubewright.cluster.binaries.finder import find_installed  # an embedded cluster needs no binaries

        return find_installed().kubectl

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self._bound_port}"

    @property
    def http_url(self) -> str:
        """The address without TLS; ClusterError unless `http_port` was given."""
        if self._http_port is None:
            raise ClusterError("The embedded cluster listens with TLS only; give http_port to have both.")
        return f"http://127.0.0.1:{self._bound_http_port}"

    @property
    def ca_data(self) -> bytes:
        """The CA certificate that clients must trust, PEM."""
        return self._pki.ca

    async def user(self, name: str, groups: Iterable[str] = ()) -> Path:
        """The path of a new kubeconfig for another user, who authenticates with a client certificate."""
        return self._plane_folder.write_user_kubeconfig(self._pki, name, tuple(groups), server=self.url)

    # Faults

    async def compact(self) -> int:
        """Compact the store to its current resource version, which is returned; older versions are answered 410."""
        self.server.store.compact()
        return self.server.store.version

    async def restart(self, component: str = "apiserver") -> None:
        """Close every connection and listen again on the same port, as a restarted server does."""
        if component != "apiserver":
            raise ClusterError(f"The embedded cluster runs no {component}; its only component is the apiserver.")
        await self.server.stop()
        await self.server.start(port=self._bound_port, tls=self._tls())
        if self._http_port is not None:
            await self.server.start(port=self._bound_http_port)

    # Inside

    def _open_store(self) -> Store:
        store = Store()
        if self._plane_folder.data is not None:
            self._journal = SqliteJournal(self._plane_folder.data / "store")
            self._journal.restore(store)
            store.journal = self._journal
        return store

    async def _start_server(self, store: Store) -> None:
        pki = self._pki
        access = RbacAccess(
            store,
            signer=ServiceAccountTokens(_read_file(pki.key("service-account"))),
            client_ca=pki.ca,
            proxy_ca=_read_file(pki.certificate("front-proxy-ca")),
        )
        observers: list[RequestObserver] = []
        if self._audit_log is not None:
            audit = AuditLog(self._audit_log)
            observers.append(audit)
            self._stack.push_async_callback(audit.close)
        self.server = ApiServer(
            store=store,
            access=access,
            observers=observers,
            proxy_client_certificate=(
                str(pki.certificate("front-proxy-client")),
                str(pki.key("front-proxy-client")),
            ),
            kubelet_client=self._kubelet_client(),
        )
        self._stack.push_async_callback(self.server.stop)
        self._bound_port = await self._listen(self._port, tls=self._tls())
        if self._http_port is not None:
            self._bound_http_port = await self._listen(self._http_port)

    def _kubelet_client(self) -> KubeletClientConfig:
        name, file = "apiserver-kubelet-client", self._kubelet_certificate_authority
        try:
            authorities = b"" if file is None else file.read_bytes()
        except OSError as error:
            raise ClusterError(f"The CA of the kubelets cannot be read ({error}); choose another file.") from error
        return KubeletClientConfig(
            certificate=(self._pki.certificate(name), self._pki.key(name)), authorities=authorities
        )

    async def _listen(self, port: int, *, tls: ssl.SSLContext | None = None) -> int:
        if not 0 <= port <= _HIGHEST_PORT:  # some event loops silently use the port modulo 65536
            raise ClusterError(f"There is no port {port}; choose one up to {_HIGHEST_PORT}, or 0 for any.")
        try:
            return await self.server.start(port=port, tls=tls)
        except OSError as error:
            reason = "it is in use" if error.errno == errno.EADDRINUSE else (error.strerror or str(error)).lower()
            raise ClusterError(
                f"The embedded API server cannot listen on 127.0.0.1:{port}: {reason}; choose another port, or 0 for "
                "any."
            ) from error

    def _tls(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._pki.certificate("server"), self._pki.key("server"))
        context.load_verify_locations(self._pki.certificate("ca"))
        context.load_verify_locations(self._pki.certificate("front-proxy-ca"))
        # Optional: a client may authenticate with a token instead of a certificate.
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    async def _prepare_namespaces(self) -> None:
        for namespace in _NAMESPACES:
            # ServiceAccountController would create them a moment later, but a test may create a pod right away, which
            # the ServiceAccount admission plugin refuses without its account.
            meta = {"name": "default", "namespace": namespace}
            await self.server.loopback.ensure({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})

    async def _start_controllers(self) -> None:
        # Half of the import time, and the first request does not need it.
        from kubewright.cluster.planes.controllers import cluster_controllers
        from kubewright.manager.manager import Manager
        from kubewright.manager.options import ManagerOptions

        transport = RetryingTransport(DirectTransport(self.server.router, user=ADMIN, groups=(ADMIN_GROUP,)))
        client = await self._stack.enter_async_context(Client(transport, field_manager="kubewright"))
        parts = cluster_controllers(
            client,
            authority=self._pki.authority,
            nodes=self._nodes if self._pods else 0,
            storage=self._storage,
            timing=self._timing,
            on_kubelet_listen=partial(self.server.kubelets.register, authorities=self._pki.ca),
        )
        # No block limit: the event loop belongs to the caller, whose code may block it.
        options = ManagerOptions(name="kubewright-cluster", health_address="", metrics_address="", block_limit=0)
        await self._stack.enter_async_context(Manager(*parts, client=client, options=options))
        report_healthy(self.server.store, "controller-manager", "scheduler")
        if self._pods:
            await self.server.loopback.ensure(_system_pod())


def _system_pod() -> dict[str, Any]:
    """A pod in kube-system: every cluster has some there, and clients' tests look for one."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "kubewright-system",
            "namespace": "kube-system",
            "labels": {"app.kubernetes.io/name": "kubewright-system", "tier": "control-plane"},
        },
        "spec": {
            "containers": [{"name": "kubewright-system", "image": "registry.example.io/kubewright-system:1"}],
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
        },
    }


def _read_file(path: str) -> bytes:
    return Path(path).read_bytes()
