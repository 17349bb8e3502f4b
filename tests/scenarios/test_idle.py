"""An operator to which nothing happens does nothing.

Covers: kubewright.manager
"""

from __future__ import annotations

import pytest
from tests.planes import faulty
from tests.scenarios.conftest import Journal, Widget, converged, widget

from kubewright import Client, Context, Manager, ManagerOptions, Scope, controller
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import ConfigMap

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(180)]


async def test_ten_resyncs_with_nothing_changed_write_nothing(
    client: Client, real_cluster: RealCluster, namespace: str
) -> None:
    journal = Journal()
    sizes = {f"w{number}": number for number in range(5)}
    for name, size in sizes.items():
        await client.create(widget(name, namespace, size=size))

    @controller(Widget, owns=[ConfigMap])
    async def reconcile(obj: Widget, ctx: Context) -> None:
        for cause in ctx.causes:
            journal.note(f"{cause.source} {cause.event}")
        await ctx.apply(ConfigMap.named(obj.metadata.name, data={"size": str(obj.spec.size)}))
        obj.status.ready = obj.spec.size
        ctx.condition("Ready", True, reason="Applied")

    scope = Scope(namespaces=(namespace,), resync=0.3)
    options = ManagerOptions(health_address="0", metrics_address="0")
    async with (
        faulty(real_cluster.kubeconfig) as (counted, faults),
        Manager(reconcile, client=counted, options=options, scopes={Widget: scope, ConfigMap: scope}),
    ):
        await converged(client, namespace, sizes)
        before, done = len(faults.requests), journal.entries.count("Widget resync")

        await journal.reach(lambda entries: entries.count("Widget resync") >= done + 10 * len(sizes))

        assert [str(request) for request in faults.requests[before:] if request.method != "GET"] == []
