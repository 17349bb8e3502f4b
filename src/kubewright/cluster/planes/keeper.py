"""Keep a named cluster running for people: in this process, or in one of its own in the background.

`keep` runs until it is told to stop; `detach` starts a process that does the same and returns when the
cluster is ready; `stop` ends either. They meet in `state`, and a lock per name sees to it that there is one
of each. The command line is a thin skin over this; tests that only need a cluster use `real` directly.
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
from pathlib import Path
from typing import final

import msgspec

from kubewright._base.loop import run
from kubewright.cluster.planes.cluster import Cluster
from kubewright.cluster.planes.state import Record, State, process_start
from kubewright.cluster.processes.locks import FileLock
from kubewright.errors import ClusterError, KubewrightError

__all__ = ("Plan", "check_free", "detach", "keep", "stop")

_START_TIMEOUT = 120.0
_STOP_TIMEOUT = 30.0
_POLL = 0.05


@final
class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Which cluster to run."""

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


def check_free(state: State, name: str) -> None:
    """Raise ClusterError if a cluster of that name runs already."""
    if state.running(name) is not None:
        raise _taken(name)


async def keep(plan: Plan, *, ready: Callable[[Record], None]) -> None:
    """Run the cluster until SIGINT, SIGTERM or SIGHUP; `ready` is called once it can be used.

    Raises ClusterError if it cannot start, if a component dies, or if the name is taken.
    """
    state = State(Path(plan.state))
    lock = FileLock(state.lock_file(plan.name))
    if not lock.take():
        raise _taken(plan.name)
    with lock:
        try:
            await _keep(plan, state, ready)
        finally:
            state.remove(plan.name)
        # Only after an orderly end: when something died, the logs in there say why. And before the name is free: the
        # next cluster of that name has its files in the same place.
        shutil.rmtree(state.cluster_folder(plan.name), ignore_errors=True)


async def _keep(plan: Plan, state: State, ready: Callable[[Record], None]) -> None:
    cluster = _cluster(plan, state.cluster_folder(plan.name))
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    # One that is ignored, as SIGHUP is under nohup, stays so.
    asked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    numbers = [number for number in asked if signal.getsignal(number) != signal.SIG_IGN]
    for number in numbers:
        loop.add_signal_handler(number, told.set)
    running = asyncio.create_task(_run(cluster, lambda: _announce(plan, state, cluster, ready)))
    telling = asyncio.create_task(told.wait())
    try:
        await asyncio.wait((running, telling), return_when=asyncio.FIRST_COMPLETED)
    finally:
        # A second signal ends this process at once; the components cannot outlive it.
        for number in numbers:
            loop.remove_signal_handler(number)
        telling.cancel()
        running.cancel()
        (outcome,) = await asyncio.gather(running, return_exceptions=True)
    if isinstance(outcome, Exception):
        raise outcome


def _cluster(plan: Plan, folder: Path) -> Cluster:
    data = None if plan.data is None else Path(plan.data)
    audit_log = None if plan.audit_log is None else Path(plan.audit_log)
    if plan.real:
        nodes = plan.nodes if plan.pods else 0
        return Cluster.real(version=plan.version, folder=folder, data=data, audit_log=audit_log, nodes=nodes)
    return Cluster.embedded(
        folder=folder, data=data, port=plan.port, nodes=plan.nodes, pods=plan.pods, audit_log=audit_log
    )


async def _run(cluster: Cluster, ready: Callable[[], None]) -> None:
    async with cluster:
        ready()
        await cluster.wait()


def _announce(plan: Plan, state: State, cluster: Cluster, ready: Callable[[Record], None]) -> None:
    record = Record(
        name=plan.name,
        version=cluster.version,
        url=cluster.url,
        kubeconfig=str(cluster.kubeconfig),
        folder=str(cluster.folder),
        data=plan.data,
        pid=os.getpid(),
        started=process_start(os.getpid()) or "",
        processes=_processes(cluster),
    )
    state.write(record)
    ready(record)


def _processes(cluster: Cluster) -> dict[str, int]:
    found = {str(name): process.pid for name, process in getattr(cluster, "processes", {}).items()}
    return {name: pid for name, pid in found.items() if pid is not None} or {"kubewright": os.getpid()}


def detach(plan: Plan, *, waiting: Callable[[], None] | None = None) -> Record:
    """Start the cluster in a process of its own that stays when this one ends; its record, once it is ready."""
    state = State(Path(plan.state))
    check_free(state, plan.name)
    log = state.cluster_folder(plan.name) / "keeper.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        child = subprocess.Popen(  # noqa: S603 - this very module
            [sys.executable, "-m", __name__, msgspec.json.encode(plan).decode()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        return _await_record(state, plan.name, child, log, waiting)
    except BaseException:
        child.terminate()
        child.wait()
        raise


def _await_record(
    state: State, name: str, child: subprocess.Popen[bytes], log: Path, waiting: Callable[[], None] | None
) -> Record:
    deadline = time.monotonic() + _START_TIMEOUT
    while time.monotonic() < deadline:
        record = state.running(name)
        if record is not None and record.pid == child.pid:
            return record
        if child.poll() is not None:
            said = log.read_text(encoding="utf-8", errors="replace").strip()
            raise ClusterError(said or f"The cluster {name} did not start; see {log}.")
        if waiting is not None:
            waiting()
        time.sleep(_POLL)
    raise ClusterError(f"The cluster {name} was not ready after {_START_TIMEOUT:.0f} s; see {log}.")


def stop(record: Record) -> None:
    """Stop a cluster that runs in another process, and wait until that process is gone."""
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


def _taken(name: str) -> ClusterError:
    return ClusterError(
        f"A cluster named {name} is running already; stop it with `kubewright cluster down --name {name}` "
        "or choose another --name."
    )


def _main() -> None:
    plan = msgspec.json.decode(sys.argv[1], type=Plan)
    try:
        run(keep(plan, ready=lambda record: None))
    except KubewrightError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    _main()
