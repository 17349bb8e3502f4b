"""The kinds as they are stored."""

from __future__ import annotations

from typing import Annotated

from kubewright import Column, Field, Resource, Spec, Status


class CacheSpec(Spec):
    """What a cache is to be."""

    replicas: Annotated[int, Field(ge=0, le=10)] = 1
    """How many pods to keep."""
    image: str = "memcached:1.6"


class CacheStatus(Status):
    """What a cache is."""

    ready: int = 0


class Cache(
    Resource[CacheSpec, CacheStatus],
    group="cache.example.io",
    version="v1",
    short_names=("mc",),
    categories=("all",),
    scale=("spec.replicas", "status.ready"),
    columns={
        "Ready": ".status.ready",
        "Image": Column(path=".spec.image", priority=1),
        "Age": ".metadata.creationTimestamp",
    },
    selectable_fields=("spec.image",),
    object_names=Field(max_length=40, pattern="^[a-z]"),
    crd_labels={"team": "storage"},
):
    """A memcached cluster."""


class PoolSpec(Spec):
    """What a pool is to be."""

    size: int = 1


class Pool(Resource[PoolSpec, None], group="cache.example.io", version="v1", scope="Cluster"):
    """Nodes that caches share."""
