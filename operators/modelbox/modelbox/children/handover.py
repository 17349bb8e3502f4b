"""Hand the number of replicas over to somebody else without changing it.

A field that server-side apply leaves out goes back to its default if nobody else holds it: a Deployment of forty would
fall to one the moment an autoscaler is announced. So a second field manager takes hold of the number first.
"""

import json

from kubewright import Context, Dynamic
from kubewright.api import Unset
from kubewright.k8s.apps.v1 import Deployment

__all__ = ("FIELD_MANAGER", "HOLDER", "hand_over_replicas")

FIELD_MANAGER = "modelbox-controller"
HOLDER = "modelbox-replicas"
_PARTIAL = Dynamic("apps/v1", "Deployment", plural="deployments", namespaced=True)


async def hand_over_replicas(wanted: Deployment, ctx: Context) -> None:
    """Hold the number under another name, if the operator still holds it under its own."""
    # The cache keeps no managed fields.
    present = await ctx.client.live.find(Deployment, wanted.key)
    if present is None or not _holds_replicas(present):
        return
    number = {"spec": {"replicas": present.spec.replicas}}
    partial = _PARTIAL.named(wanted.metadata.name, wanted.metadata.namespace, content=number)
    await ctx.client.live.apply(partial, field_manager=HOLDER, force=True)


def _holds_replicas(deployment: Deployment) -> bool:
    return any(
        "f:replicas" in json.loads(bytes(entry.fields_v1)).get("f:spec", {})
        for entry in deployment.metadata.managed_fields
        if entry.manager == FIELD_MANAGER and not isinstance(entry.fields_v1, Unset)
    )
