"""Webhook servers: a mutating webhook for Pods, on Kubewright and on controller-runtime, asked by the same program.

Each server runs in a process of its own, over TLS on loopback. The load comes from a program in Go, so that it is not
the load that is measured:

- `per_s`, `busy_p99_ms`: 16 connections, each asking as soon as it is answered;
- `p50_ms`, `p99_ms`: 200 requests per second, timed from when each was due;
- `cpu_us`: CPU time of the server per request, in the first of the two.

Run as `python -m bench webhooks`. Without Go there is nothing to compare with, and nothing to ask with.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench.operators import say
from bench.peers.commands import go_binary
from bench.processes import MeasuredProcess
from bench.report import Budget, Table, medians
from kubewright._base.certificates import Authority
from kubewright.cluster.processes.ports import free_ports

__all__ = ("TABLE", "measure")

_ROOT: Final = Path(__file__).parent.parent
_GO_MODULE: Final = Path(__file__).parent / "peers" / "webhook_server"
_PATH: Final = "/mutate--v1-pod"
_CONNECTIONS: Final = 16
_SECONDS: Final = 5.0
_RATE: Final = 200.0

VARIANTS = {"kubewright": "Kubewright", "go": "controller-runtime"}
TABLE = Table(
    title="A mutating webhook for Pods",
    intro=(
        f"One label added to a Pod of 3 KB. {_CONNECTIONS} connections that ask without a pause, and {_RATE:g} "
        "requests per second."
    ),
    yardstick="go",
    budgets=(Budget("per_s", "go", least=0.5), Budget("p50_ms", "go", most=2.0)),
    variants=VARIANTS,
    columns={
        "per_s": "admissions per s",
        "busy_p99_ms": "busy p99, ms",
        "p50_ms": "p50, ms",
        "p99_ms": "p99, ms",
        "cpu_us": "CPU per admission, µs",
    },
)


def measure(*, rounds: int) -> dict[str, dict[str, float]]:
    """The figures of both servers."""
    return asyncio.run(_measure(rounds))


async def _measure(rounds: int) -> dict[str, dict[str, float]]:
    program = go_binary(_GO_MODULE, "webhook-server", say=say)
    gathered: dict[str, list[Mapping[str, float]]] = {variant: [] for variant in VARIANTS}
    with tempfile.TemporaryDirectory(prefix="kubewright-bench-") as name:
        folder = Path(name)
        _prepare(folder)
        for _ in range(rounds):
            for variant, figures in gathered.items():
                figures.append(await _one(variant, program, folder))
    return {variant: medians(figures) for variant, figures in gathered.items()}


def _prepare(folder: Path) -> None:
    authority = Authority.create("bench")
    pair = authority.server("bench", hosts=("127.0.0.1",))
    for name, content in {"ca.crt": authority.certificate, "tls.crt": pair.certificate, "tls.key": pair.key}.items():
        (folder / name).write_bytes(content)
    (folder / "body.json").write_text(json.dumps(_review()))


async def _one(variant: str, program: Path, folder: Path) -> dict[str, float]:
    (port,) = free_ports(1)
    options = (f"--port={port}", f"--certificates={folder}")
    python = (sys.executable, "-m", "bench.peers.kubewright_webhook")
    command = (str(program), "serve", *options) if variant == "go" else (*python, *options)
    environment = {"PYTHONPATH": f"{_ROOT}:{_ROOT / 'src'}"}
    async with MeasuredProcess(variant, command, environment=environment, log=folder / f"{variant}.log") as server:
        await _until_served(port)
        await _load(program, folder, port, seconds=1.0)
        before = await server.settled()
        busy = await _load(program, folder, port, seconds=_SECONDS)
        spent = await server.settled() - before
        steady = await _load(program, folder, port, seconds=_SECONDS, rate=_RATE)
    return {
        "per_s": busy["per_s"],
        "busy_p99_ms": busy["p99_ms"],
        "p50_ms": steady["p50_ms"],
        "p99_ms": steady["p99_ms"],
        "cpu_us": spent / busy["count"] * 1e6,
    }


async def _until_served(port: int) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            return


async def _load(program: Path, folder: Path, port: int, *, seconds: float, rate: float = 0.0) -> dict[str, float]:
    child = await asyncio.create_subprocess_exec(
        program,
        "load",
        f"--url=https://127.0.0.1:{port}{_PATH}?timeout=5s",
        f"--ca={folder / 'ca.crt'}",
        f"--body={folder / 'body.json'}",
        f"--connections={_CONNECTIONS}",
        f"--seconds={seconds}",
        f"--rate={rate}",
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await child.communicate()
    figures: dict[str, float] = json.loads(out)
    assert figures["failed"] == 0, f"{figures['failed']:g} of {figures['count']:g} requests failed"
    return figures


def _review() -> dict[str, Any]:
    """What an API server posts for a new Pod."""
    container = {
        "image": "registry.example.io/web:1.25",
        "env": [{"name": f"SETTING_{number}", "value": "some value of usual length"} for number in range(8)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/var/lib/data"}],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": "web-6d4b75cb6d-x2x5q",
            "generateName": "web-6d4b75cb6d-",
            "namespace": "shop",
            "labels": {"app.kubernetes.io/name": "web", "pod-template-hash": "6d4b75cb6d"},
            "annotations": {"example.io/checksum": "0" * 64},
        },
        "spec": {
            "containers": [{"name": name, **container} for name in ("web", "proxy", "logs")],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
        },
        "status": {},
    }
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    request = {
        "uid": "0df28fbd-5f5f-11e8-bc74-36e6bb280816",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "web-6d4b75cb6d-x2x5q",
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller", "groups": ["system:nodes"]},
        "object": pod,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
