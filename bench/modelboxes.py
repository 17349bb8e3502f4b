"""The reference operator ModelBox under load: 500 objects that wait for it, on the embedded control plane.

The operator runs in a process of its own, as its project starts it; the control plane, with its Deployment controller
and simulated nodes, in this one. Each ModelBox becomes a Deployment of one pod and a Service:

- `ready_s`: from the start of the operator's process until the last ModelBox is Ready;
- `cpu_ms_per_object`: CPU time of the operator by then and until it is idle, its start included;
- `rss_mb`: its resident memory then;
- `writes_per_object`: its requests that write: two children, two events that tell of them, and statuses.

Run as `python -m bench modelboxes`.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from aiohttp import ClientSession

from bench.processes import MeasuredProcess
from bench.report import Table, medians
from kubewright import Client, Cluster, Dynamic
from kubewright._base.loop import run
from kubewright.api import DynamicObject
from kubewright.cluster.install import install_crds
from kubewright.cluster.processes.ports import free_ports
from kubewright.errors import ClusterError
from kubewright.generate.project import operator_crds
from kubewright.k8s.core.v1 import Namespace
from kubewright.manager.operator import load_operator

__all__ = ("TABLE", "measure")

_ROOT: Final = Path(__file__).parent.parent
_PROJECT: Final = _ROOT / "operators" / "modelbox"
_NAMESPACE: Final = "bench"
_OBJECTS: Final = 500
_WRITERS: Final = 16
_TIMEOUT: Final = 300.0
"""Far more than it takes; a busy machine should still give figures."""
_WRITES: Final = re.compile(r'^rest_client_requests_total\{.*method="(?:POST|PUT|PATCH)".*\} (\d+)', re.MULTILINE)
_MODELBOX: Final = Dynamic("model.github.com/v1", "ModelBox", plural="modelboxes", namespaced=True)

TABLE = Table(
    title="500 ModelBoxes",
    intro=(
        "The reference operator of `operators/modelbox` with 500 objects waiting for it: a Deployment of one pod and a "
        "Service each, until the last is Ready. It has a process of its own; the control plane and its nodes "
        "are embedded. Probes and minReadySeconds are off, so that nothing waits by design."
    ),
    subject="modelbox",
    yardstick="",
    variants={"modelbox": "ModelBox operator"},
    columns={
        "ready_s": "all Ready after, s",
        "cpu_ms_per_object": "CPU per ModelBox, ms",
        "rss_mb": "RSS, MB",
        "writes_per_object": "writes per ModelBox",
    },
)


def measure() -> dict[str, dict[str, float]]:
    """The figures of the operator, of one round: it is long, and its figures are averages of 500 already."""
    return {"modelbox": medians([run(_round())])}


async def _round() -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="kubewright-bench-") as folder:
        async with Cluster.embedded() as cluster:
            await cluster.wait_for_controllers()
            await install_crds(cluster.client, *operator_crds(load_operator(str(_PROJECT))).values())
            await cluster.client.create(Namespace.named(_NAMESPACE))
            await _fill(cluster.client)
            return await _operated(cluster.client, cluster.kubeconfig, Path(folder))


async def _operated(client: Client, kubeconfig: Path, folder: Path) -> dict[str, float]:
    (port,) = free_ports(1)
    environment = {
        "KUBECONFIG": str(kubeconfig),
        "KUBEWRIGHT_HEALTH_ADDRESS": "0",
        "KUBEWRIGHT_METRICS_ADDRESS": f"127.0.0.1:{port}",
        "KUBEWRIGHT_WEBHOOKS": "false",
        "PYTHONPATH": f"{_PROJECT}:{_ROOT / 'src'}",
    }
    command = (sys.executable, "-m", "modelbox")
    async with MeasuredProcess("modelbox", command, environment=environment, log=folder / "log") as process:
        await _all_ready(client, process)
        ready = time.perf_counter() - process.started
        cpu = await process.settled()
        return {
            "ready_s": ready,
            "cpu_ms_per_object": cpu / _OBJECTS * 1e3,
            "rss_mb": process.memory_mb()[0],
            "writes_per_object": await _writes(port) / _OBJECTS,
        }


async def _fill(client: Client) -> None:
    waiting: Iterator[int] = iter(range(_OBJECTS))

    async def writer() -> None:
        for number in waiting:
            await client.create(_modelbox(number))

    async with asyncio.TaskGroup() as group:
        for _ in range(_WRITERS):
            group.create_task(writer())


def _modelbox(number: int) -> DynamicObject:
    spec: dict[str, Any] = {
        "image": "nginx:1.27",
        "ports": [{"port": 80, "targetPort": 8080, "name": "http"}],
        "serviceType": "ClusterIP",
        "envs": [{"name": "NUMBER", "value": str(number)}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        "defaultProbes": False,
        "minReadySeconds": 0,
    }
    return _MODELBOX.named(f"box-{number:03}", _NAMESPACE, content={"spec": spec})


async def _all_ready(client: Client, process: MeasuredProcess) -> None:
    """Returns when every ModelBox is Ready; raises what the operator ended with, if it did."""
    watching = asyncio.ensure_future(_watch(client))
    ended = asyncio.ensure_future(process.ended())
    try:
        async with asyncio.timeout(_TIMEOUT):
            await asyncio.wait((watching, ended), return_when=asyncio.FIRST_COMPLETED)
        if not watching.done():
            raise await ended
        watching.result()
    except TimeoutError:
        raise ClusterError(f"Not all of {_OBJECTS} ModelBoxes were Ready after {_TIMEOUT:g} s.") from None
    finally:
        watching.cancel()
        ended.cancel()


async def _watch(client: Client) -> None:
    ready: set[str] = set()
    async with client.watch(_MODELBOX, namespace=_NAMESPACE, initial_events=True) as events:
        async for event in events:
            conditions = event.object.get("status.conditions", [])
            if any(found["type"] == "Ready" and found["status"] == "True" for found in conditions):
                ready.add(event.object.metadata.name)
                if len(ready) == _OBJECTS:
                    return
    raise ClusterError("The watch of the ModelBoxes ended before all of them were Ready.")


async def _writes(port: int) -> int:
    async with ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        return sum(int(count) for count in _WRITES.findall(await answer.text()))
