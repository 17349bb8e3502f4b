"""A real Kubernetes control plane on loopback: etcd, kube-apiserver and kube-controller-manager.

    async with RealCluster(version="1.35") as cluster:
        ...  # cluster.kubeconfig is the path of an admin's kubeconfig

It is ready when `/readyz` of the API server succeeds and the controller manager has created the `default`
ServiceAccount of the `default` namespace. There is no kubelet and no scheduler, so pods stay Pending, unless `nodes` is
given: these are simulated, as in the embedded cluster. The processes cannot outlive this one (`processes.process`).
Tests can kill, pause and restart components.

`background` runs one for the command line; tests and programs make it with `Cluster.real()`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import signal
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, final, get_args

from kubewright._base.certificates import KeyPair
from kubewright._base.files import open_private, write_private
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.client.connection import connect
from kubewright.cluster.binaries import finder
from kubewright.cluster.pki.files import Pki
from kubewright.cluster.planes import flags
from kubewright.cluster.planes.cluster import Cluster, Component
from kubewright.cluster.planes.kubelet_binding import kubelet_client_binding
from kubewright.cluster.planes.plane_folder import PlaneFolder
from kubewright.cluster.processes.ports import free_ports
from kubewright.cluster.processes.probe import Probe
from kubewright.cluster.processes.process import ParentWatch, Process
from kubewright.cluster.processes.progress import Progress
from kubewright.errors import AlreadyExists, ClusterError, NotFound

if TYPE_CHECKING:
    from kubewright.cluster.kubelet.pods.timing import Timing

__all__ = ("RealCluster",)

_ATTEMPTS = 3
_POLL = 0.03
_CONTROLLER_MANAGER = "system:kube-controller-manager"
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


@final
class RealCluster(Cluster):
    """One control plane; `async with` starts and stops it. Attributes are there once it has started."""

    processes: dict[Component, Process]
    """The running components, in the order they start."""

    def __init__(
        self,
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
    ) -> None:
        """Keep the options; `start` starts the cluster.

        `version` as for `finder.find`. `data` is a folder whose contents survive: etcd's data, the CAs and the
        service-account key. `audit_log` gets one JSON line per request. Flags are without dashes: yours replace the
        defaults of the same name, and an empty value drops one. `nodes` is the number of simulated nodes, which run in
        this process; `timing` is how long pods take to start and stop on them. With `storage` there is a default
        StorageClass and a provisioner for its volumes.
        """
        self._requested_version = version
        self._plane_folder = PlaneFolder(folder=folder, data=data)
        self._audit_log = audit_log
        self._apiserver_flags = dict(apiserver_flags or {})
        self._controller_manager_flags = dict(controller_manager_flags or {})
        self._runtime_config = dict(runtime_config or {})
        self._nodes = nodes
        self._storage = storage
        self._timing = timing
        self._start_timeout = start_timeout
        self._progress = progress
        self._parent_watch: ParentWatch | None = None
        self._node_stack = AsyncExitStack()
        self._compacted = 0
        self.processes = {}

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        crash = self._crash()
        await self.stop()
        if crash is not None:
            if error is None:
                raise crash
            # The crash most likely caused the error in the body.
            error.add_note(str(crash))

    # Starting and stopping

    async def start(self) -> None:
        """Start all components and wait until they are ready, else raise ClusterError with log lines."""
        binaries = await asyncio.to_thread(finder.find, self._requested_version, progress=self._progress)
        self.version, self._kubectl = binaries.version, binaries.kubectl
        try:
            self._prepare_folders()
            pki = await asyncio.to_thread(self._plane_folder.prepare_pki)
            await asyncio.to_thread(pki.write_etcd_files)
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    async with asyncio.timeout(self._start_timeout):
                        await self._start_components(binaries, pki)
                        await self._start_nodes()
                    return
                except TimeoutError:
                    raise self._timeout_error() from None
                except ClusterError:
                    # Another process may have taken the port since `free_ports` found it free.
                    if attempt == _ATTEMPTS or not self._port_was_taken():
                        raise
                    await self._stop_components(grace=0.0)
        except BaseException:
            await self.stop()
            raise

    async def wait_for_controllers(self) -> None:
        """Return at once: `start` has waited for the controller manager and the nodes."""

    async def stop(self) -> None:
        """Stop all components and remove temporary files; stopping twice is fine."""
        await self._node_stack.aclose()
        await self._stop_components()
        await self._plane_folder.close()
        if self._parent_watch is not None:
            self._parent_watch.close()
            self._parent_watch = None

    async def wait(self) -> None:
        """Wait until a component crashes, and raise the ClusterError that says why."""
        while True:
            self.check()
            await asyncio.sleep(0.2)

    def check(self) -> None:
        """Raise ClusterError, with its last log lines, if a component has crashed."""
        crash = self._crash()
        if crash is not None:
            raise crash

    # Addresses and credentials

    @property
    def folder(self) -> Path:
        """The folder with kubeconfigs, certificates and logs; removed at the end unless the caller chose it."""
        return self._plane_folder.folder

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of `admin`, a member of `system:masters`."""
        return self._plane_folder.kubeconfig

    @property
    def kubectl(self) -> Path:
        """A kubectl of the same version."""
        return self._kubectl

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self._ports.apiserver}"

    @property
    def ca_data(self) -> bytes:
        """The CA certificate that clients must trust, PEM."""
        return self._pki.ca

    async def user(self, name: str, groups: Iterable[str] = ()) -> Path:
        """The path of a new kubeconfig for another user, who authenticates with a client certificate.

        RBAC decides what that user may do: next to nothing without a binding.
        """
        return self._plane_folder.write_user_kubeconfig(self._pki, name, tuple(groups), server=self.url)

    # Faults

    async def kill(self, component: Component, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a component a signal that ends it, and wait until it has ended; `restart` brings it back."""
        await self._process(component).stop(number=number)

    async def restart(self, component: Component = "apiserver") -> None:
        """Stop a component if it runs, start it on the same port and data, and wait until it is ready."""
        process = self._process(component)
        await process.stop()
        await process.start()
        try:
            async with asyncio.timeout(self._start_timeout):
                await self._wait_until(self._ready_checks()[component])
        except TimeoutError:
            raise self._timeout_error() from None

    async def pause(self, component: Component) -> None:
        """Suspend a component with SIGSTOP: it keeps its connections and answers nothing, as a hung process does."""
        await self._process(component).pause()

    async def resume(self, component: Component) -> None:
        """Resume a paused component."""
        self._process(component).send(signal.SIGCONT)

    async def compact(self) -> int:
        """Compact etcd to its current revision, which is returned.

        The API server then answers 410 where it has to read an older one from etcd. It still serves watches and lists
        from its watch cache; restart it to empty the cache too.
        """
        key = base64.b64encode(b"\0").decode()
        current = await self._call_etcd("/v3/kv/range", {"key": key, "limit": "1"})
        header = current["header"]
        assert isinstance(header, dict)
        revision = int(header["revision"])
        if revision > self._compacted:  # etcd rejects a second compaction of one revision
            await self._call_etcd("/v3/kv/compaction", {"revision": str(revision), "physical": True})
            self._compacted = revision
        return revision

    # Inside

    def _prepare_folders(self) -> None:
        plane_folder = self._plane_folder
        plane_folder.open(logs=True)
        if plane_folder.is_given and plane_folder.data is None:
            # Only etcd's data: the caller wants the logs. A killed cluster may have left some data.
            plane_folder.temporary = plane_folder.folder / "etcd"
            shutil.rmtree(plane_folder.temporary, ignore_errors=True)
        self._parent_watch = ParentWatch(remove=plane_folder.temporary)

    async def _start_components(self, binaries: finder.Binaries, pki: Pki) -> None:
        self._pki = pki
        self._ports = flags.Ports(*free_ports(4))
        self._probes = self._make_probes()
        self.processes = self._make_processes(binaries)
        for process in self.processes.values():
            process.log.unlink(missing_ok=True)
        checks = self._ready_checks()
        for component, process in self.processes.items():
            await process.start()
            await self._wait_until(checks[component])
        await self._wait_until(self._default_account_exists)

    async def _start_nodes(self) -> None:
        self.client = await self._node_stack.enter_async_context(connect(Config.load(kubeconfig=self.kubeconfig)))
        with suppress(AlreadyExists):  # a data folder has it
            await self.client.request("POST", _BINDINGS, body=json.dumps(kubelet_client_binding()).encode())
        if not self._nodes:
            return
        from kubewright.cluster.planes.simulated_nodes import node_controllers  # imported only for nodes
        from kubewright.manager.manager import Manager
        from kubewright.manager.options import ManagerOptions

        devices = await self._serves_resource_claims(self.client)
        parts = node_controllers(
            self.client,
            authority=self._pki.authority,
            count=self._nodes,
            storage=self._storage,
            devices=devices,
            timing=self._timing,
        )
        options = ManagerOptions(name="simulated-nodes", health_address="0", metrics_address="0", block_limit=0)
        await self._node_stack.enter_async_context(Manager(*parts, client=self.client, options=options))

    @staticmethod
    async def _serves_resource_claims(client: Client) -> bool:
        """Whether `resource.k8s.io/v1` is served: not before 1.34, nor if `runtime_config` disables it."""
        try:
            await client.request("GET", "/apis/resource.k8s.io/v1")
        except NotFound:
            return False
        return True

    def _make_probes(self) -> dict[Component, Probe]:
        admin = self._plane_folder.write_admin_kubeconfig(self._pki, server=self.url)
        tls = _tls(self._pki.ca, admin, self.folder / "pki" / "admin.pem")
        etcd_tls = ssl.create_default_context(cafile=self._pki.certificate("etcd-ca"))
        etcd_tls.load_cert_chain(self._pki.certificate("etcd-client"), self._pki.key("etcd-client"))
        return {
            "etcd": Probe(self._ports.etcd, tls=etcd_tls),
            "apiserver": Probe(self._ports.apiserver, tls=tls),
            "controller-manager": Probe(self._ports.controller_manager, tls=tls),
        }

    def _make_processes(self, binaries: finder.Binaries) -> dict[Component, Process]:
        pki, ports = self._pki, self._ports
        manager = self._pki.authority.client(_CONTROLLER_MANAGER)
        manager_kubeconfig = self._plane_folder.write_kubeconfig(
            "controller-manager", _CONTROLLER_MANAGER, manager, ca=pki.ca, server=self.url
        )
        durable = self._plane_folder.data is not None
        etcd = flags.etcd_command(
            binaries.etcd, ports=ports, pki=pki, data=self._plane_folder.persistent / "etcd", durable=durable
        )
        apiserver = flags.apiserver_command(
            binaries.kube_apiserver,
            ports=ports,
            pki=pki,
            audit=self._audit(),
            runtime_config=self._runtime_config,
            simulated_nodes=self._nodes > 0,
            extra=self._apiserver_flags,
        )
        controllers = flags.controller_manager_command(
            binaries.kube_controller_manager,
            ports=ports,
            pki=pki,
            kubeconfig=manager_kubeconfig,
            extra=self._controller_manager_flags,
        )
        commands = zip(get_args(Component), (etcd, apiserver, controllers), strict=True)
        return {name: self._make_process(name, command) for name, command in commands}

    def _make_process(self, name: Component, command: list[str]) -> Process:
        assert self._parent_watch is not None
        title = name if name == "etcd" else f"kube-{name}"
        return Process(title, command, log=self.folder / "logs" / f"{title}.log", parent_watch=self._parent_watch)

    def _audit(self) -> tuple[Path, Path] | None:
        if self._audit_log is None:
            return None
        policy = self.folder / "audit-policy.yaml"
        write_private(policy, flags.AUDIT_POLICY.encode())
        log = self._audit_log.absolute()
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        open_private(log).close()  # kube-apiserver leaves a log that exists as it is
        return policy, log

    def _ready_checks(self) -> dict[Component, Callable[[], Awaitable[bool]]]:
        async def etcd() -> bool:
            return (await self._probes["etcd"].get("/health"))[0] == 200

        async def apiserver() -> bool:
            return (await self._probes["apiserver"].get("/readyz"))[0] == 200

        async def controller_manager() -> bool:
            return (await self._probes["controller-manager"].get("/healthz"))[0] == 200

        return {"etcd": etcd, "apiserver": apiserver, "controller-manager": controller_manager}

    async def _default_account_exists(self) -> bool:
        return (await self._probes["apiserver"].get(_DEFAULT_ACCOUNT))[0] == 200

    async def _wait_until(self, check: Callable[[], Awaitable[bool]]) -> None:
        """Poll until the check succeeds; raise ClusterError if a component crashes meanwhile."""
        while not await check():
            self.check()
            await asyncio.sleep(_POLL)

    async def _stop_components(self, *, grace: float = 10.0) -> None:
        """Stop clients before servers: without etcd the API server and the controller manager only log errors."""
        processes = self.processes
        users = [processes[name] for name in ("controller-manager", "apiserver") if name in processes]
        await asyncio.gather(*(process.stop(grace=grace) for process in users))
        if "etcd" in processes:
            await processes["etcd"].stop(grace=grace)

    def _process(self, component: Component) -> Process:
        try:
            return self.processes[component]
        except KeyError:
            names = ", ".join(get_args(Component))
            raise ClusterError(
                f"The cluster runs no {component}; components are {names}, once it has started."
            ) from None

    def _crash(self) -> ClusterError | None:
        crashed = [process for process in self.processes.values() if process.crashed]
        return crashed[0].failure() if crashed else None

    def _port_was_taken(self) -> bool:
        return any(
            process.crashed and "address already in use" in process.tail(200) for process in self.processes.values()
        )

    def _timeout_error(self) -> ClusterError:
        tails = [f"{process.name} ({process.log}):\n{process.tail(5)}" for process in self.processes.values()]
        return ClusterError(
            f"The control plane was not ready after {self._start_timeout:.0f} s; its logs end:\n" + "\n".join(tails)
        )

    async def _call_etcd(self, path: str, body: Mapping[str, str | bool]) -> dict[str, object]:
        status, answer = await self._probes["etcd"].post(path, json.dumps(body).encode())
        if status != 200:
            raise ClusterError(f"etcd answered {path} with {status}: {answer.decode('utf-8', 'replace').strip()}.")
        decoded = json.loads(answer)
        assert isinstance(decoded, dict)
        return decoded


def _tls(ca: bytes, pair: KeyPair, file: Path) -> ssl.SSLContext:
    """A client context with a certificate, which the standard library loads only from a file."""
    context = ssl.create_default_context(cadata=ca.decode())
    write_private(file, pair.certificate + pair.key)
    context.load_cert_chain(file)
    return context
