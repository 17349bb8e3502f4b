"""Keeps a Deployment for each cache."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubewright import Context, ObjectKey, controller, rbac
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import ConfigMap, Namespace, Secret

from ..api.v1 import Cache

rbac("pods/log", verbs="get")
rbac(Namespace, verbs=("get", "list", "watch"))
rbac("leases", group="coordination.k8s.io", verbs="delete", names="old-lock", namespace="kube-system")


def to_caches(change: Any) -> Iterable[ObjectKey]:
    """Which caches a ConfigMap is about."""
    return [change.key]


@rbac(urls="/metrics", verbs="get")
@controller(Cache, owns=[Deployment], watches=[(ConfigMap, to_caches)])
class CacheController:
    """The controller."""

    async def reconcile(self, cache: Cache, ctx: Context) -> None:
        """Bring the world in line."""
        secret = await ctx.client.get(Secret, "password", namespace=cache.metadata.namespace)
        deployment = Deployment.named(cache.metadata.name, labels={"of": secret.metadata.name})
        if not cache.spec.replicas:
            await ctx.delete(deployment)
            return
        await ctx.apply(deployment)
        labels: dict[str, str] = {}
        labels.update(cache.metadata.labels)

    async def finalize(self, cache: Cache, ctx: Context) -> None:
        """Clean up."""
