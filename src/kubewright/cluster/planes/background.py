"""Run a named cluster until a signal arrives, in this process or in a background process.

`run_cluster` runs it here; `start_in_background` starts a process that runs this module as a script and returns when
the cluster is ready; `stop_cluster` ends either. A record in `state` tells other processes about it, and a lock per
name prevents two clusters of one name. `kubewright cluster up` and `down` call this; tests use `planes.real` or
`planes.embedded` directly.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import final

import msgspec

from kubewright._base.files import open_private, private_folder
from kubewright._base.loop import run
from kubewright.cluster.planes.cluster import Cluster
from kubewright.cluster.planes.state import ClusterRecord, StateFolder, process_start
from kubewright.cluster.processes.locks import FileLock
from kubewright.errors import ClusterError, KubewrightError

__all__ = ("ClusterOptions", "check_name_free", "record_of", "run_cluster", "start_in_background", "stop_cluster")


_START_TIMEOUT = 120.0
_STOP_TIMEOUT = 30.0
_POLL = 0.05


@final
class ClusterOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which cluster to run; passed to the background process as JSON."""

    name: str
    state: str
    """The state folder; see `state.state_folder`."""
    real: bool = False
    """etcd, kube-apiserver and kube-controller-manager instead of the embedded control plane."""
    version: str | None = None
    data: str | None = None
    port: int = 0
    """Where the embedded API server listens; any free port by default."""
    nodes: int = 1
    pods: bool = True
    audit_log: str | None = None


def check_name_free(state: StateFolder, name: str) -> None:
    """Raise ClusterError if a cluster of that name is running."""
    if state.find_running(name) is not None:
        raise _name_in_use(name)


async def run_cluster(options: ClusterOptions, *, ready: Callable[[ClusterRecord], None]) -> None:
    """Run the cluster until SIGINT, SIGTERM or SIGHUP; call `ready` when it can be used.

    Raises ClusterError if it cannot start, if a component dies, or if the name is in use.
    """
    state = StateFolder(Path(options.state))
    lock = FileLock(state.lock_file(options.name))
    if not lock.try_acquire():
        raise _name_in_use(options.name)
    with lock:
        try:
            await _run_until_signal(options, state, ready)
        finally:
            state.remove(options.name)
        # Only after an orderly end: after a crash the logs in there say why. And under the lock: the next cluster of
        # that name uses the same folder.
        shutil.rmtree(state.cluster_folder(options.name), ignore_errors=True)


async def _run_until_signal(
    options: ClusterOptions, state: StateFolder, ready: Callable[[ClusterRecord], None]
) -> None:
    cluster = _new_cluster(options, state.cluster_folder(options.name))
    loop = asyncio.get_running_loop()
    stop_requested = asyncio.Event()
    # A signal that is ignored, as SIGHUP is under nohup, stays ignored.
    stop_signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    numbers = [number for number in stop_signals if signal.getsignal(number) != signal.SIG_IGN]
    for number in numbers:
        loop.add_signal_handler(number, stop_requested.set)
    run_task = asyncio.create_task(_run_while_healthy(cluster, lambda: _publish_record(options, state, cluster, ready)))
    signal_task = asyncio.create_task(stop_requested.wait())
    try:
        await asyncio.wait((run_task, signal_task), return_when=asyncio.FIRST_COMPLETED)
    finally:
        # A second signal ends this process at once; the components cannot outlive it.
        for number in numbers:
            loop.remove_signal_handler(number)
        signal_task.cancel()
        run_task.cancel()
        (outcome,) = await asyncio.gather(run_task, return_exceptions=True)
    if isinstance(outcome, Exception):
        raise outcome


def _new_cluster(options: ClusterOptions, folder: Path) -> Cluster:
    data = None if options.data is None else Path(options.data)
    audit_log = None if options.audit_log is None else Path(options.audit_log)
    if options.real:
        nodes = options.nodes if options.pods else 0
        return Cluster.real(version=options.version, folder=folder, data=data, audit_log=audit_log, nodes=nodes)
    return Cluster.embedded(
        folder=folder, data=data, port=options.port, nodes=options.nodes, pods=options.pods, audit_log=audit_log
    )


async def _run_while_healthy(cluster: Cluster, ready: Callable[[], None]) -> None:
    async with cluster:
        ready()
        await cluster.wait()


def _publish_record(
    options: ClusterOptions, state: StateFolder, cluster: Cluster, ready: Callable[[ClusterRecord], None]
) -> None:
    data = None if options.data is None else Path(options.data)
    record = record_of(cluster, name=options.name, data=data, real=options.real)
    state.write(record)
    ready(record)


def record_of(cluster: Cluster, *, name: str, data: Path | None, real: bool = False) -> ClusterRecord:
    """The record of a cluster that this process runs."""
    return ClusterRecord(
        name=name,
        version=cluster.version,
        url=cluster.url,
        kubeconfig=str(cluster.kubeconfig),
        folder=str(cluster.folder),
        data=None if data is None else str(data),
        pid=os.getpid(),
        started=process_start(os.getpid()) or "",
        processes=_processes(cluster),
        type="real" if real else "embedded",
        ready_at=datetime.now(UTC).replace(microsecond=0),
    )


def _processes(cluster: Cluster) -> dict[str, int]:
    found = {str(name): process.pid for name, process in getattr(cluster, "processes", {}).items()}
    return {name: pid for name, pid in found.items() if pid is not None} or {"kubewright": os.getpid()}


def start_in_background(options: ClusterOptions, *, on_wait: Callable[[], None] | None = None) -> ClusterRecord:
    """Start the cluster in a process that outlives this one; return its record when it is ready."""
    state = StateFolder(Path(options.state))
    check_name_free(state, options.name)
    log = state.cluster_folder(options.name) / "background.log"
    private_folder(log.parent)
    with open_private(log, append=False) as output:
        child = subprocess.Popen(  # noqa: S603 - this very module
            [sys.executable, "-m", __name__, msgspec.json.encode(options).decode()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        return _wait_for_record(state, options.name, child, log, on_wait)
    except BaseException:
        child.terminate()
        child.wait()
        raise


def _wait_for_record(
    state: StateFolder, name: str, child: subprocess.Popen[bytes], log: Path, on_wait: Callable[[], None] | None
) -> ClusterRecord:
    deadline = time.monotonic() + _START_TIMEOUT
    while time.monotonic() < deadline:
        record = state.find_running(name)
        if record is not None and record.pid == child.pid:
            return record
        if child.poll() is not None:
            output = log.read_text(encoding="utf-8", errors="replace").strip()
            raise ClusterError(output or f"The cluster {name} did not start; see {log}.")
        if on_wait is not None:
            on_wait()
        time.sleep(_POLL)
    raise ClusterError(f"The cluster {name} was not ready after {_START_TIMEOUT:.0f} s; see {log}.")


def stop_cluster(record: ClusterRecord) -> None:
    """Stop a cluster that runs in another process, and wait until that process has ended."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(record.pid, number)
        except ProcessLookupError:
            return
        except PermissionError:
            raise ClusterError(
                f"The cluster {record.name} belongs to another user (process {record.pid}); ask them to stop it."
            ) from None
        deadline = time.monotonic() + _STOP_TIMEOUT
        while time.monotonic() < deadline:
            if not record.alive:
                return
            time.sleep(_POLL)
    raise ClusterError(f"The cluster {record.name} (process {record.pid}) does not stop, even when killed.")


def _name_in_use(name: str) -> ClusterError:
    return ClusterError(
        f"A cluster named {name} is running already; stop it with `kubewright cluster down --name {name}` "
        "or choose another --name."
    )


def _main() -> None:
    options = msgspec.json.decode(sys.argv[1], type=ClusterOptions)
    try:
        run(run_cluster(options, ready=lambda record: None))
    except KubewrightError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    _main()
