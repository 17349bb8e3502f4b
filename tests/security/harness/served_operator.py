"""The watched process of an operator: probes, metrics and webhooks as a manager serves them, on a stub of a cluster.

Started by `watched_process`; prints one line of JSON when it is ready and runs until it is told to end. The API server
that the operator watches runs in the same process, for it is not what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import signal
from pathlib import Path

from tests.security.harness.watched_program import report_ready, watched_options

from kubewright import mutate, validate
from kubewright._base.certificates import Authority
from kubewright._base.loop import run
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.processes.ports import free_ports
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.manager.manager import Manager
from kubewright.manager.options import ManagerOptions


@mutate(ConfigMap)
def mark(config_map: ConfigMap) -> None:
    config_map.metadata.labels["marked"] = "yes"


@validate(ConfigMap)
def check(config_map: ConfigMap) -> None:
    pass


async def serve(options: argparse.Namespace) -> None:
    """Start the operator, say where it is, run until a signal."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    folder: Path = options.heartbeat.parent
    authority = Authority.create("harness")
    pair = authority.server("served operator", hosts=("127.0.0.1",))
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    probes, metrics, webhooks = free_ports(3)
    settings = ManagerOptions(
        name="harness",
        health_address=f"127.0.0.1:{probes}",
        metrics_address=f"127.0.0.1:{metrics}",
        webhook_host="127.0.0.1",
        webhook_port=webhooks,
        webhook_certificates=str(folder),
        block_limit=0,
    )
    async with (
        EmbeddedCluster(controllers=False, nodes=0) as cluster,
        Manager(mark, check, client=cluster.client, options=settings),
    ):
        ready = {
            "probes": {"port": probes},
            "metrics": {"port": metrics},
            "webhooks": {"port": webhooks, "ca": base64.b64encode(authority.certificate).decode()},
        }
        report_ready(options, ready)
        await ended.wait()


if __name__ == "__main__":
    run(serve(watched_options()))
