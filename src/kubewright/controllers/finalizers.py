"""Finalizers: clean-up that is sure to happen before an object goes away.

Two rules, kept by `reconcile_handler`, which calls this: the finalizer is on the server before the first reconcile can
have an effect outside the cluster, and it is removed only after the clean-up succeeded.
"""

from __future__ import annotations

from typing import TypeVar

from kubewright.api.resource import KubeObject
from kubewright.cache.cached_client import CachedClient
from kubewright.errors import NotFound

__all__ = ("add_finalizer", "has_finalizer", "remove_finalizer")

K = TypeVar("K", bound=KubeObject)


def has_finalizer(obj: KubeObject, finalizer: str) -> bool:
    """Whether the object has this finalizer."""
    return finalizer in obj.metadata.finalizers


async def add_finalizer(client: CachedClient, obj: K, finalizer: str) -> K:
    """Add the finalizer and return the server's object. Conflict if somebody wrote the object since it was read."""
    return await _patch_finalizers(client, obj, [*obj.metadata.finalizers, finalizer])


async def remove_finalizer(client: CachedClient, obj: K, finalizer: str) -> None:
    """Remove the finalizer; the server deletes the object with its last one. That it is gone already is fine."""
    left = [name for name in obj.metadata.finalizers if name != finalizer]
    try:
        await _patch_finalizers(client, obj, left)
    except NotFound:
        return


async def _patch_finalizers(client: CachedClient, obj: K, finalizers: list[str]) -> K:
    # A merge patch replaces the whole list. With the resourceVersion it is based on, a finalizer that somebody else
    # added meanwhile is a conflict instead of lost.
    patch = {"metadata": {"finalizers": finalizers, "resourceVersion": obj.metadata.resource_version}}
    return await client.patch_by_name(type(obj), obj.key, patch)
