"""The cache: informers that list and watch kinds, and reads from their stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright._base.lazy import lazy

if TYPE_CHECKING:
    from kubewright.cache.cache import Cache
    from kubewright.cache.cached_client import CachedClient
    from kubewright.cache.changes import Change, change_of
    from kubewright.cache.reader import CacheReader
    from kubewright.cache.scope import Scope
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "kubewright.cache.cache": ("Cache",),
            "kubewright.cache.cached_client": ("CachedClient",),
            "kubewright.cache.changes": ("Change", "change_of"),
            "kubewright.cache.reader": ("CacheReader",),
            "kubewright.cache.scope": ("Scope",),
        },
    )

__all__ = ("Cache", "CacheReader", "CachedClient", "Change", "Scope", "change_of")
