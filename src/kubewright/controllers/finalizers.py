"""Finalizers: clean-up that is sure to run before an object goes away.

Two rules, kept here and nowhere else: the finalizer is on the server before the first reconcile can have an effect
outside, and it is removed only after the clean-up succeeded. Both writes carry the version they are based on, so the
finalizers of others survive. Called by `worker`.
"""

from __future__ import annotations

from typing import TypeVar

from kubewright.api.resource import KubeObject
from kubewright.cache.cached_client import CachedClient
from kubewright.errors import NotFound

__all__ = ("add_finalizer", "has_finalizer", "remove_finalizer")

K = TypeVar("K", bound=KubeObject)


def has_finalizer(obj: KubeObject, finalizer: str) -> bool:
    """Whether the object waits for this clean-up."""
    return finalizer in obj.metadata.finalizers


async def add_finalizer(client: CachedClient, obj: K, finalizer: str) -> K:
    """The object with the finalizer on it, as the server has it now. Conflict if somebody else wrote meanwhile."""
    return await _write(client, obj, [*obj.metadata.finalizers, finalizer])


async def remove_finalizer(client: CachedClient, obj: K, finalizer: str) -> None:
    """Let the object go. That it is gone already is fine."""
    left = [name for name in obj.metadata.finalizers if name != finalizer]
    try:
        await _write(client, obj, left)
    except NotFound:
        return


async def _write(client: CachedClient, obj: K, finalizers: list[str]) -> K:
    # A merge patch replaces the whole list, so it must be based on the list it replaces: hence the version.
    patch = {"metadata": {"finalizers": finalizers, "resourceVersion": obj.metadata.resource_version}}
    return await client.patch_by_name(type(obj), obj.key, patch)
