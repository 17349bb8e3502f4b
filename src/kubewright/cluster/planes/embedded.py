"""The embedded control plane: an API server, controllers and simulated nodes inside this process.

    async with Cluster.embedded() as cluster:
        deployment = await cluster.client.get(Deployment, "web")

Ready in a fraction of a second, because nothing is spawned: everything runs on the caller's event loop. Real clients
talk to it over TLS on loopback with the kubeconfig it writes. With a data folder its objects and its CA survive;
without one all is gone at the end. The parts are in `apiserver`, `workloads`, `housekeeping` and `nodes`.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from kubewright.apiserver.auth.access import RbacAccess
from kubewright.apiserver.auth.tokens import ServiceAccountTokens
from kubewright.apiserver.controllers.component_status import report_healthy
from kubewright.apiserver.front.audit import AuditLog
from kubewright.apiserver.identities import install
from kubewright.apiserver.server import ApiServer
from kubewright.apiserver.storage.journal import SqliteJournal
from kubewright.apiserver.storage.store import Store
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.client.connect import connect
from kubewright.client.transport.retries import RetryingTransport
from kubewright.cluster.planes.cluster import Cluster
from kubewright.cluster.planes.direct import DirectTransport
from kubewright.cluster.planes.home import ADMIN, ADMIN_GROUP, Home
from kubewright.errors import ClusterError

if TYPE_CHECKING:
    from kubewright.cluster.kubelet.pods.timing import Timing

__all__ = ("VERSION", "EmbeddedCluster")

VERSION = "1.35.4"
"""The Kubernetes whose kinds and behaviour the embedded server has."""

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_HIGHEST_PORT = 65535


@final
class EmbeddedCluster(Cluster):
    """A whole cluster in this process; an async context manager."""

    version = VERSION
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
        timing: Timing | None = None,
    ) -> None:
        """Options of the cluster; nothing is started yet.

        `data` is a folder whose contents survive: objects, CAs and the service-account key. `nodes` is how many nodes
        are simulated; without `pods` there are none, and pods stay as they are made; without `controllers` there is
        only the API server. Nodes bring a default StorageClass whose volumes they make; not so without `storage`.
        `audit_log` gets one JSON line per request. With `http_port` (0 for any) it listens without
        TLS as well: who comes that way shows a token, or is anonymous.
        """
        self._home = Home(folder=folder, data=data)
        self._port = port
        self._http_port = http_port
        self._nodes = nodes
        self._pods = pods and nodes > 0
        self._controllers = controllers
        self._storage = storage
        self._audit_log = audit_log
        self._timing = timing
        self._journal: SqliteJournal | None = None
        self._stack = AsyncExitStack()
        self._starting: asyncio.Task[None] | None = None

    # Starting and stopping

    async def start(self) -> None:
        """Start the API server, and everything else behind it.

        Any request is answered when this returns. The controllers come up in the next fraction of a second, as they do
        in any cluster; `settled` waits for them.
        """
        try:
            self._home.enter()
            self._pki = await asyncio.to_thread(self._home.prepare_pki)
            await self._start_server(self._open_store())
            self._home.write_admin(self._pki, server=self.url)
            self.client = await self._stack.enter_async_context(connect(Config.load(kubeconfig=self.kubeconfig)))
            if self._controllers:
                await self._prepare_namespaces()
                self._starting = asyncio.create_task(self._start_controllers(), name="cluster controllers")
        except BaseException:
            await self.stop()
            raise

    async def settled(self) -> None:
        """Return when the controllers run and the nodes are there."""
        if self._starting is not None:
            await asyncio.shield(self._starting)

    async def stop(self) -> None:
        """Stop everything and remove what is temporary; stopping twice is fine."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
            self._starting = None
        await self._stack.aclose()
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        await self._home.leave()

    async def wait(self) -> None:
        """Wait for ever; raises what keeps the controllers from starting."""
        await self.settled()
        await asyncio.Event().wait()

    # Who talks to it

    @property
    def folder(self) -> Path:
        """The kubeconfig and certificates; removed at the end unless it was given."""
        return self._home.folder

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of `admin`, who may do everything."""
        return self._home.kubeconfig

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self._bound}"

    @property
    def http_url(self) -> str:
        """The address without TLS, if one was asked for."""
        if self._http_port is None:
            raise ClusterError("The embedded cluster listens with TLS only; give http_port to have both.")
        return f"http://127.0.0.1:{self._http_bound}"

    @property
    def ca_data(self) -> bytes:
        """The CA certificate that clients are to trust, PEM."""
        return self._pki.ca

    async def user(self, name: str, groups: Iterable[str] = ()) -> Path:
        """The path of a new kubeconfig for another user, known to the server by a client certificate."""
        return self._home.write_user(self._pki, name, tuple(groups), server=self.url)

    # Faults

    async def compact(self) -> int:
        """Forget every version before the present one, which is returned; asking for an older one is answered 410."""
        self.server.store.compact()
        return self.server.store.version

    async def restart(self, component: str = "apiserver") -> None:
        """Close every connection and listen again on the same port, as a server that is restarted does."""
        if component != "apiserver":
            raise ClusterError(f"The embedded cluster runs no {component}; its only component is the apiserver.")
        await self.server.stop()
        await self.server.start(port=self._bound, tls=self._tls())
        if self._http_port is not None:
            await self.server.start(port=self._http_bound)

    # Inside

    def _open_store(self) -> Store:
        store = Store()
        if self._home.data is not None:
            self._journal = SqliteJournal(self._home.data / "store")
            self._journal.restore(store)
            store.journal = self._journal
        return store

    async def _start_server(self, store: Store) -> None:
        pki = self._pki
        access = RbacAccess(store, signer=ServiceAccountTokens(_content(pki.key("service-account"))))
        self.server = ApiServer(store=store, access=access)
        if self._audit_log is not None:
            audit = AuditLog(self._audit_log)
            self.server.router.recorders.append(audit)
            self._stack.push_async_callback(audit.close)
        proxy_ca = _content(pki.certificate("front-proxy-ca"))
        identities = install(self.server, access, root_certificate=pki.ca, proxy_ca=proxy_ca)
        front_proxy = (str(pki.certificate("front-proxy-client")), str(pki.key("front-proxy-client")))
        self.server.extensions.aggregation.certificate = front_proxy
        self._stack.push_async_callback(self.server.stop)
        self._bound = await self._listen(self._port, tls=self._tls())
        if self._http_port is not None:
            self._http_bound = await self._listen(self._http_port)
            self.server.discovery.address = f"127.0.0.1:{self._bound}"
        identities.start(port=self._bound)
        self._stack.push_async_callback(identities.stop)

    async def _listen(self, port: int, *, tls: ssl.SSLContext | None = None) -> int:
        if not 0 <= port <= _HIGHEST_PORT:  # some event loops take what is left of it when divided by 65536
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
        # A certificate is one way to say who you are; a token is another.
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    async def _prepare_namespaces(self) -> None:
        for namespace in _NAMESPACES:
            # A controller would make them a moment later; a pod may be created as soon as there is a client.
            meta = {"name": "default", "namespace": namespace}
            await self.server.ensure({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})

    async def _start_controllers(self) -> None:
        # Half of what there is to import, and not needed to answer the first request.
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
        )
        # The loop is that of whoever runs a cluster: what blocks it is not for the controllers to say.
        options = ManagerOptions(name="kubewright-cluster", health_address="", metrics_address="", block_limit=0)
        await self._stack.enter_async_context(Manager(*parts, client=client, options=options))
        report_healthy(self.server.store, "controller-manager", "scheduler")
        if self._pods:
            await self.server.ensure(_system_pod())


def _system_pod() -> dict[str, Any]:
    """Every cluster runs something of its own; clients and their tests look for it."""
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


def _content(path: str) -> bytes:
    return Path(path).read_bytes()
