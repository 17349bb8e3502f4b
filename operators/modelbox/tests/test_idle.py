"""An operator to which nothing happens writes nothing."""

import asyncio
from typing import Any

import pytest
from kubewright import Cluster, Context, Quantity, Scope
from kubewright.k8s.core.v1 import Container, ContainerPort, EnvVar, ResourceRequirements
from kubewright.testing import running

from boxes import box, settled, told
from modelbox.api.v1.modelbox import ModelBox
from modelbox.api.v1.ports import ModelBoxPort
from modelbox.controllers.modelbox import reconcile


async def test_ten_resyncs_write_nothing(cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """T13, R12, W3: amounts in another spelling than the server's own included."""
    boxes = [
        box("plain", namespace),
        box("sized", namespace, resource_type="small", replicas=2, service_type="NodePort"),
        box(
            "rich",
            namespace,
            resources=ResourceRequirements(requests={"cpu": Quantity("0.001")}, limits={"cpu": Quantity("1000m")}),
            ports=[ModelBoxPort(port=80, name="http"), ModelBoxPort(port=81, name="admin", target_port="admin-port")],
            envs=[EnvVar(name="EMPTY", value="")],
            containers=[
                Container(name="helper", image="helper:1", ports=[ContainerPort(container_port=81, name="admin-port")])
            ],
        ),
    ]
    runs: asyncio.Queue[str] = asyncio.Queue()
    original = reconcile.reconcile

    async def counted(modelbox: ModelBox, ctx: Context) -> Any:
        answer: Any = original(modelbox, ctx)
        result = await answer
        if any(cause.event == "resync" for cause in ctx.causes):
            runs.put_nowait(modelbox.metadata.name)
        return result

    monkeypatch.setattr(reconcile, "reconcile", counted)
    scope = Scope(namespaces=(namespace,), resync=0.2)
    async with running("modelbox", on=cluster, scopes={ModelBox: scope}) as operator:
        for modelbox in boxes:
            await settled(operator.client, await operator.client.create(modelbox))
            for child in ("Deployment", "Service"):  # events are written when there is nothing else to do
                await told(operator.client, namespace, "Created", f"{child} {modelbox.metadata.name} ")
        for _ in boxes:
            await runs.get()
        before = len(operator.faults.requests)

        for _ in range(10 * len(boxes)):
            await runs.get()

        writes = [str(request) for request in operator.faults.requests[before:] if request.method != "GET"]
        assert writes == []
