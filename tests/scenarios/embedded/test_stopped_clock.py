"""A test may stop the clock of an operator; the server does not know, and goes on ending watches.

Covers: kubewright.apiserver, kubewright.testing
"""

from __future__ import annotations

from kubewright import Cluster, Context, Resource, Spec, Status, controller
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.testing import VirtualClock, running, status, until


class Lamp(Resource[Spec, Status], group="stopped.example.io", version="v1"):
    """Something to look after."""


@controller(Lamp, owns=[ConfigMap])
async def reconcile(lamp: Lamp, ctx: Context) -> None:
    await ctx.apply(ConfigMap.named(lamp.metadata.name))


async def test_watches_reconnect_while_the_clock_is_stopped() -> None:
    async with (
        Cluster.embedded(pods=False) as cluster,
        running(reconcile, on=cluster, clock=VirtualClock()) as operator,
    ):
        refusals = iter([status(500, reason="InternalError")] * 2)
        operator.faults.answer = lambda request: next(refusals, None) if request.path.endswith("/lamps") else None
        operator.faults.cut_streams()

        await cluster.client.create(Lamp.named("desk", "default"))

        found = await until(cluster.client, ConfigMap, "desk")
        assert next(refusals, None) is None
        assert found.metadata.owner_references[0].name == "desk"
