"""A real control plane with the Widget kind, filled and emptied between runs, and operators started against it."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self, final

from bench.peers.commands import Peer
from bench.processes import MeasuredProcess
from bench.statuses import Statuses
from bench.widgets import NAMESPACE, Widget
from kubewright import Client, Config, connect, controller_of
from kubewright.cluster.install import install_crds
from kubewright.cluster.planes.real import RealCluster
from kubewright.errors import ClusterError
from kubewright.k8s.core.v1 import ConfigMap, Namespace

__all__ = ("WidgetCluster",)

_WRITERS = 24
# Made again by the controller manager as soon as it is gone.
_KEPT_CONFIG_MAP = "kube-root-ca.crt"
_REQUESTS = re.compile(r"^apiserver_request_total\{(?P<labels>.*)\} (?P<count>\d+)$", re.MULTILINE)


@final
class WidgetCluster:
    """Made by `WidgetCluster.started`."""

    def __init__(self, client: Client, kubeconfig: Path, logs: Path) -> None:
        self.client = client
        self._kubeconfig = kubeconfig
        self._logs = logs

    @classmethod
    @asynccontextmanager
    async def started(cls) -> AsyncIterator[Self]:
        """A control plane of its own, with an empty namespace for Widgets."""
        # One worker deletes a collection object by object, which takes longer than a run.
        flags = {"delete-collection-workers": "16"}
        with tempfile.TemporaryDirectory(prefix="kubewright-bench-") as logs:
            async with (
                RealCluster(apiserver_flags=flags) as cluster,
                connect(Config.load(kubeconfig=cluster.kubeconfig), timeout=300.0) as client,
            ):
                await client.create(Namespace.named(NAMESPACE))
                await install_crds(client, Widget)
                yield cls(client, cluster.kubeconfig, Path(logs))

    async def fill(self, widgets: Iterable[Widget]) -> list[Widget]:
        """Create Widgets, several at a time; as the server has them."""
        waiting = iter(widgets)
        created: list[Widget] = []

        async def writer() -> None:
            # Not a comprehension: the writers share one iterator, and each takes the next when it is free.
            for widget in waiting:
                answer = await self.client.create(widget)
                created.append(answer)

        async with asyncio.TaskGroup() as group:
            for _ in range(_WRITERS):
                group.create_task(writer())
        return created

    async def clear(self) -> None:
        """Delete every Widget and every ConfigMap; children first, so that the garbage collector finds nothing."""
        await self.client.delete_collection(
            ConfigMap, namespace=NAMESPACE, fields=f"metadata.name!={_KEPT_CONFIG_MAP}", propagation="Background"
        )
        await self.client.delete_collection(Widget, namespace=NAMESPACE, propagation="Background")

    async def writes(self) -> int:
        """How many writes of Widgets and ConfigMaps the server has answered so far, of whoever made them."""
        metrics = await self.client.request("GET", "/metrics", accept="*/*")
        return sum(
            int(match["count"])
            for match in _REQUESTS.finditer(metrics.body.decode())
            if any(f'resource="{resource}"' in match["labels"] for resource in ("widgets", "configmaps"))
            and any(f'verb="{verb}"' in match["labels"] for verb in ("APPLY", "PATCH", "POST", "PUT"))
        )

    async def check_children(self) -> None:
        """Raise ClusterError unless each Widget has the ConfigMap that the operator owes it."""
        widgets = await self.client.list(Widget, namespace=NAMESPACE)
        listed = await self.client.list(ConfigMap, namespace=NAMESPACE)
        children = {child.metadata.name: child for child in listed}
        for widget in widgets:
            child = children.get(widget.metadata.name)
            owner = controller_of(child) if child is not None else None
            if child is None or owner is None or owner.uid != widget.metadata.uid:
                raise ClusterError(f"The operator made no ConfigMap for {widget.key}, so its figures mean nothing.")
            if child.data != {"size": str(widget.spec.size)}:
                raise ClusterError(f"The ConfigMap {child.key} is {child.data}, so the figures mean nothing.")

    @asynccontextmanager
    async def operated(self, peer: Peer) -> AsyncIterator[tuple[MeasuredProcess, Statuses]]:
        """Run an operator, and see what it writes from its start on."""
        present = await self.client.list(Widget, namespace=NAMESPACE, limit=1)
        statuses = Statuses(self.client)
        process = MeasuredProcess(
            peer.name,
            peer.arguments(self._kubeconfig),
            environment=peer.environment,
            log=self._logs / f"{peer.name}.log",
        )
        watching = asyncio.create_task(statuses.run(present.resource_version))
        try:
            async with process:
                yield process, statuses
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
