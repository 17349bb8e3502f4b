"""Scales: the scale subresource, for any kind that has it.

    await client.scales.set(Deployment, "web", 3, namespace="shop")

Reached as `client.scales`; works for dynamic kinds too.
"""

from __future__ import annotations

from typing import final

import msgspec

from kubewright.api.codec import decode
from kubewright.api.metadata import ObjectMeta
from kubewright.api.model import Model, field
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.client.rest import RestClient

__all__ = ("Scale", "Scales")


class ScaleSpec(Model):
    """The desired number of replicas."""

    replicas: int = 0


class ScaleStatus(Model):
    """The actual number of replicas, and the label selector of the pods counted."""

    replicas: int = 0
    selector: str | None = None


class Scale(Model):
    """An autoscaling/v1 Scale, the same for every kind."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ScaleSpec = field(default_factory=ScaleSpec)
    status: ScaleStatus = field(default_factory=ScaleStatus)


@final
class Scales:
    """Reads and sets the number of replicas."""

    def __init__(self, client: RestClient) -> None:
        self._client = client

    async def get(self, kind: type[KubeObject], name: str | ObjectKey, *, namespace: str | None = None) -> Scale:
        """The current scale; NotFound also if the kind has no such subresource."""
        path = await self._client.object_path(kind, name, namespace=namespace, subresource="scale")
        return decode(Scale, (await self._client.request("GET", path)).body)

    async def set(
        self,
        kind: type[KubeObject],
        name: str | ObjectKey,
        replicas: int,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
    ) -> Scale:
        """Set the desired number of replicas, whatever it was before."""
        path = await self._client.object_path(kind, name, namespace=namespace, subresource="scale")
        response = await self._client.request(
            "PATCH",
            path,
            query=(("dryRun", "All"),) if dry_run else (),
            body=msgspec.json.encode({"spec": {"replicas": replicas}}),
            content_type="application/merge-patch+json",
        )
        return decode(Scale, response.body)
