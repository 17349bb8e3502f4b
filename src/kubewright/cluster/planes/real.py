"""A real Kubernetes control plane on loopback: etcd, kube-apiserver and kube-controller-manager.

    async with RealCluster(version="1.35") as cluster:
        ...  # cluster.kubeconfig is the path of an admin's kubeconfig

Ready means: the API server says so, and the `default` namespace has its `default` ServiceAccount, which the
controller manager makes. There is no kubelet and no scheduler, and pods stay Pending, unless `nodes` are asked
for: these are simulated, as in the embedded cluster. The processes cannot outlive this one (`processes`).
Components can be killed, paused and restarted, for tests of what a program does then.

`keeper` runs one for the command line; tests and programs make it with `Cluster.real()`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import signal
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, final, get_args

from kubewright._base.files import write_private
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.client.connect import connect
from kubewright.cluster.binaries import finder
from kubewright.cluster.pki.certificates import KeyPair
from kubewright.cluster.pki.files import Pki
from kubewright.cluster.planes import flags
from kubewright.cluster.planes.cluster import Cluster, Component
from kubewright.cluster.planes.home import Home
from kubewright.cluster.processes.ports import free_ports
from kubewright.cluster.processes.probe import Probe
from kubewright.cluster.processes.processes import Guardian, Process
from kubewright.cluster.processes.progress import Progress
from kubewright.errors import ClusterError, NotFound

if TYPE_CHECKING:
    from kubewright.cluster.kubelet.pods.timing import Timing

__all__ = ("RealCluster",)

_ATTEMPTS = 3
_POLL = 0.03
_CONTROLLER_MANAGER = "system:kube-controller-manager"
_DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


@final
class RealCluster(Cluster):
    """One control plane; `async with` starts and stops it. Attributes are there once it has started."""

    kubectl: Path
    """A kubectl of the same version."""
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
        """Options of the cluster; nothing is started yet.

        `version` as for `finder.find`. `data` is a folder whose contents survive: etcd's data, the CAs
        and the service-account key; without it all is thrown away. `audit_log` gets one JSON line per
        request. Flags are without dashes: yours replace ours of the same name, and an empty value drops
        one. `nodes` is how many nodes are simulated, in this process; `timing` is how long things take on them. They
        bring a default StorageClass whose volumes they make, unless there is to be no `storage`.
        """
        self._asked_version = version
        self._home = Home(folder=folder, data=data)
        self._audit_log = audit_log
        self._apiserver_flags = dict(apiserver_flags or {})
        self._controller_manager_flags = dict(controller_manager_flags or {})
        self._runtime_config = dict(runtime_config or {})
        self._nodes = nodes
        self._storage = storage
        self._timing = timing
        self._start_timeout = start_timeout
        self._progress = progress
        self._guardian: Guardian | None = None
        self._nodes_at_work = AsyncExitStack()
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
            # Whatever went wrong in the body most likely went wrong because of this.
            error.add_note(str(crash))

    # Starting and stopping

    async def start(self) -> None:
        """Start all components and wait until they are of use, else raise ClusterError with log lines."""
        found = await asyncio.to_thread(finder.find, self._asked_version, progress=self._progress)
        self.version, self.kubectl = found.version, found.kubectl
        try:
            self._prepare_folders()
            pki = await asyncio.to_thread(self._home.prepare_pki)
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    async with asyncio.timeout(self._start_timeout):
                        await self._start_components(found, pki)
                        await self._start_nodes()
                    return
                except TimeoutError:
                    raise self._too_slow() from None
                except ClusterError:
                    # Between finding a port free and using it, another process may have taken it.
                    if attempt == _ATTEMPTS or not self._port_was_taken():
                        raise
                    await self._stop_components(grace=0.0)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop all components and remove what is temporary; stopping twice is fine."""
        await self._nodes_at_work.aclose()
        await self._stop_components()
        await self._home.leave()
        if self._guardian is not None:
            self._guardian.close()
            self._guardian = None

    async def wait(self) -> None:
        """Wait until a component ends that nobody here asked to, and raise the ClusterError that says why."""
        while True:
            self.check()
            await asyncio.sleep(0.2)

    def check(self) -> None:
        """Raise ClusterError, with its last log lines, if a component has crashed."""
        crash = self._crash()
        if crash is not None:
            raise crash

    # Who talks to it

    @property
    def folder(self) -> Path:
        """Kubeconfigs, certificates and logs; removed at the end unless it was given."""
        return self._home.folder

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of `admin`, who may do everything."""
        return self._home.kubeconfig

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self._ports.apiserver}"

    @property
    def ca_data(self) -> bytes:
        """The CA certificate that clients are to trust, PEM."""
        return self._pki.ca

    async def user(self, name: str, groups: Iterable[str] = ()) -> Path:
        """The path of a new kubeconfig for another user, known to the server by a client certificate.

        RBAC decides what that user may do: nothing much, until a binding says otherwise.
        """
        return self._home.write_user(self._pki, name, tuple(groups), server=self.url)

    # Faults

    async def kill(self, component: Component, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a component a signal that ends it, and wait until it has ended; `restart` brings it back."""
        await self._process(component).stop(number=number)

    async def restart(self, component: Component = "apiserver") -> None:
        """Stop a component if it runs, start it on the same port and data, and wait until it is of use."""
        process = self._process(component)
        await process.stop()
        await process.start()
        try:
            async with asyncio.timeout(self._start_timeout):
                await self._until(self._ready_checks()[component])
        except TimeoutError:
            raise self._too_slow() from None

    async def pause(self, component: Component) -> None:
        """Stop a component's clock: it keeps its connections and answers nothing, as a hung process does."""
        await self._process(component).pause()

    async def resume(self, component: Component) -> None:
        """Let a paused component run on."""
        self._process(component).send(signal.SIGCONT)

    async def compact(self) -> int:
        """Make etcd forget every version before the present one, which is returned.

        Reading an older version from etcd is then answered 410. The API server goes on serving watches and
        lists from its own memory of recent versions; restart it to make it forget them too.
        """
        key = base64.b64encode(b"\0").decode()
        current = await self._ask_etcd("/v3/kv/range", {"key": key, "limit": "1"})
        header = current["header"]
        assert isinstance(header, dict)
        revision = int(header["revision"])
        if revision > self._compacted:  # etcd refuses to compact the same revision twice
            await self._ask_etcd("/v3/kv/compaction", {"revision": str(revision), "physical": True})
            self._compacted = revision
        return revision

    # Inside

    def _prepare_folders(self) -> None:
        home = self._home
        home.enter(logs=True)
        if home.given and home.data is None:
            # Only the data: whoever gave the folder wants the logs. A cluster that was killed may have left
            # some.
            home.disposable = home.folder / "etcd"
            shutil.rmtree(home.disposable, ignore_errors=True)
        self._guardian = Guardian(remove=home.disposable)

    async def _start_components(self, found: finder.Binaries, pki: Pki) -> None:
        self._pki = pki
        self._ports = flags.Ports(*free_ports(4))
        self._probes = self._make_probes()
        self.processes = self._make_processes(found)
        for process in self.processes.values():
            process.log.unlink(missing_ok=True)
        checks = self._ready_checks()
        for component, process in self.processes.items():
            await process.start()
            await self._until(checks[component])
        await self._until(self._default_account_exists)

    async def _start_nodes(self) -> None:
        self.client = await self._nodes_at_work.enter_async_context(connect(Config.load(kubeconfig=self.kubeconfig)))
        if not self._nodes:
            return
        from kubewright.cluster.planes.simulated_nodes import node_controllers  # a manager, for those who want nodes
        from kubewright.manager.manager import Manager
        from kubewright.manager.options import ManagerOptions

        devices = await self._has_devices(self.client)
        parts = node_controllers(
            self.client, count=self._nodes, storage=self._storage, devices=devices, timing=self._timing
        )
        options = ManagerOptions(name="simulated-nodes", health_address="0", metrics_address="0", block_limit=0)
        await self._nodes_at_work.enter_async_context(Manager(*parts, client=self.client, options=options))

    @staticmethod
    async def _has_devices(client: Client) -> bool:
        """Servers before 1.34 have none to give, nor have those that were told so."""
        try:
            await client.request("GET", "/apis/resource.k8s.io/v1")
        except NotFound:
            return False
        return True

    def _make_probes(self) -> dict[Component, Probe]:
        admin = self._home.write_admin(self._pki, server=self.url)
        tls = _tls(self._pki.ca, admin, self.folder / "pki" / "admin.pem")
        return {
            "etcd": Probe(self._ports.etcd),
            "apiserver": Probe(self._ports.apiserver, tls=tls),
            "controller-manager": Probe(self._ports.controller_manager, tls=tls),
        }

    def _make_processes(self, found: finder.Binaries) -> dict[Component, Process]:
        pki, ports = self._pki, self._ports
        manager = self._pki.authority.client(_CONTROLLER_MANAGER)
        manager_kubeconfig = self._home.write_kubeconfig(
            "controller-manager", _CONTROLLER_MANAGER, manager, ca=pki.ca, server=self.url
        )
        durable = self._home.data is not None
        etcd = flags.etcd_command(found.etcd, ports=ports, data=self._home.kept / "etcd", durable=durable)
        apiserver = flags.apiserver_command(
            found.kube_apiserver,
            ports=ports,
            pki=pki,
            audit=self._audit(),
            runtime_config=self._runtime_config,
            extra=self._apiserver_flags,
        )
        controllers = flags.controller_manager_command(
            found.kube_controller_manager,
            ports=ports,
            pki=pki,
            kubeconfig=manager_kubeconfig,
            extra=self._controller_manager_flags,
        )
        commands = zip(get_args(Component), (etcd, apiserver, controllers), strict=True)
        return {name: self._make_process(name, command) for name, command in commands}

    def _make_process(self, name: Component, command: list[str]) -> Process:
        assert self._guardian is not None
        title = name if name == "etcd" else f"kube-{name}"
        return Process(title, command, log=self.folder / "logs" / f"{title}.log", guardian=self._guardian)

    def _audit(self) -> tuple[Path, Path] | None:
        if self._audit_log is None:
            return None
        policy = self.folder / "audit-policy.yaml"
        policy.write_text(flags.AUDIT_POLICY, encoding="utf-8")
        return policy, self._audit_log.absolute()

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

    async def _until(self, check: Callable[[], Awaitable[bool]]) -> None:
        """Ask until the answer is yes; a component that crashes meanwhile is why it never will be."""
        while not await check():
            self.check()
            await asyncio.sleep(_POLL)

    async def _stop_components(self, *, grace: float = 10.0) -> None:
        """Clients before servers: an API server without etcd, or a manager without either, only complains."""
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

    def _too_slow(self) -> ClusterError:
        tails = [f"{process.name} ({process.log}):\n{process.tail(5)}" for process in self.processes.values()]
        return ClusterError(
            f"The control plane was not ready after {self._start_timeout:.0f} s; its logs end:\n" + "\n".join(tails)
        )

    async def _ask_etcd(self, path: str, body: Mapping[str, str | bool]) -> dict[str, object]:
        status, answer = await self._probes["etcd"].post(path, json.dumps(body).encode())
        if status != 200:
            raise ClusterError(f"etcd answered {path} with {status}: {answer.decode('utf-8', 'replace').strip()}.")
        decoded = json.loads(answer)
        assert isinstance(decoded, dict)
        return decoded


def _tls(ca: bytes, pair: KeyPair, file: Path) -> ssl.SSLContext:
    """A client context with a certificate, which the standard library only takes from a file."""
    context = ssl.create_default_context(cadata=ca.decode())
    write_private(file, pair.certificate + pair.key)
    context.load_cert_chain(file)
    return context
