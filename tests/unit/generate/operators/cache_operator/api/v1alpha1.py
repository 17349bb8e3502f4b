"""The kinds as they were."""

from __future__ import annotations

from kubewright import Resource, Spec, Status


class CacheSpec(Spec):
    """What a cache is to be."""

    size: int = 1


class CacheStatus(Status):
    """What a cache is."""

    ready: int = 0


class Cache(
    Resource[CacheSpec, CacheStatus],
    group="cache.example.io",
    version="v1alpha1",
    short_names=("mc",),
    categories=("all",),
    storage=False,
    deprecated="cache.example.io/v1alpha1 Cache is deprecated; use v1",
):
    """A memcached cluster."""
