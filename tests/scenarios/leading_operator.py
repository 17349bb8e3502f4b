"""An operator with leader election, as a process of its own: `leading_operator.py KUBECONFIG NAMESPACE IDENTITY`.

For each widget it applies a ConfigMap that says who wrote it and how large the widget is. It prints `leading` when it
leads, and ends when it is told to or when it has lost the lease. Run by `test_leader_failover`; public names only.
"""

from __future__ import annotations

import asyncio
import sys

from kubewright import Config, Context, Manager, ManagerOptions, Resource, Spec, Status, controller
from kubewright.k8s.core.v1 import ConfigMap


class WidgetSpec(Spec):
    size: int = 1


class WidgetStatus(Status):
    ready: int = 0


class Widget(Resource[WidgetSpec, WidgetStatus], group="scenarios.example.io", version="v1"):
    """The same kind as in the tests; a program has its own class for it."""


async def main(kubeconfig: str, namespace: str, identity: str) -> None:
    @controller(Widget, owns=[ConfigMap], field_manager=identity)
    async def reconcile(widget: Widget, ctx: Context) -> None:
        data = {"size": str(widget.spec.size), "by": identity}
        await ctx.apply(ConfigMap.named(widget.metadata.name, data=data))
        widget.status.ready = widget.spec.size

    async def lead() -> None:
        print("leading", flush=True)

    options = ManagerOptions(
        name="leaders",
        namespace=namespace,
        leader_election=True,
        lease_duration=4.0,
        renew_deadline=3.0,
        retry_period=0.2,
        health_address="0",
        metrics_address="0",
    )
    manager = Manager(
        reconcile, lead, config=Config.load(kubeconfig=kubeconfig), options=options, namespaces=[namespace]
    )
    await manager.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
